from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.evaluation.river_run import Orders, Runs, Watch, index_rows, order_of, run_order
from tests.workflows.workspaces import use_embedder
from workflows.resources import close_indexes


@pytest.fixture(scope="session")
def rivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The small rows, indexed once without any model and read by every test."""
    yield index_rows(tmp_path_factory.mktemp("rivers"))
    close_indexes()


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
