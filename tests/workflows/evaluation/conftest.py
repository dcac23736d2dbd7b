from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.evaluation.river_run import Orders, Runs, Watch, index_rows, order_of, run_order
from tests.workflows.workspaces import use_embedder
from workflows.runs.run_folder import Run
from workflows.runtime.resources import close_indexes


@pytest.fixture(scope="session")
def rivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The small rows, indexed once without any model and read by every test."""
    yield index_rows(tmp_path_factory.mktemp("rivers"))
    close_indexes()


@pytest.fixture(scope="session")
def whole(rivers: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of all systems over all questions, read by every test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        use_embedder(patch, HashEmbedder())
        return run_order(patch, order_of(rivers, tmp_path_factory.mktemp("whole")))


@pytest.fixture
def finished(whole: Run, tmp_path: Path) -> Run:
    """A copy of it where an order of the test's own goes, to be gone on with."""
    shutil.copytree(whole.folder, tmp_path / "run")
    return whole


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Run an order without a report."""
    use_embedder(monkeypatch, HashEmbedder())
    return lambda order, **how: run_order(monkeypatch, order, **how)


@pytest.fixture
def order(rivers: Path, tmp_path: Path) -> Orders:
    """Make an order on the small rows."""
    return lambda **changes: order_of(rivers, tmp_path, **changes)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watch what is asked."""
    return Watch(monkeypatch)
