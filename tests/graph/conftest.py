from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.storage.workspace import Workspace
from tests.builders import publish_workspace
from tests.chroma_server import ChromaServer
from tests.damages import PASSAGES, TRIPLES, read_at_once, refuse_to_embed


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ChromaServer(tmp_path_factory.mktemp("server")) as server:
        yield server.url


@pytest.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with each Chroma: ``embedded``, or the address of a server, which is then the configured one.

    With the server only under `make test-slow`, but for tests that ask for `tests.cases.EITHER_CHROMA`.
    """
    if request.param == "embedded":
        return "embedded"
    url = str(request.getfixturevalue("chroma_url"))
    monkeypatch.setenv("MARA_VECTORS", f"chroma+{url}")
    return url


@pytest.fixture
def no_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the doctor work without an embedding model, and without a process that tries the search index."""
    refuse_to_embed(monkeypatch)
    read_at_once(monkeypatch)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace that ``workspace`` copies, unless a file makes its own: that of the doctor's tests."""
    root = tmp_path_factory.mktemp("template") / "workspace"
    return publish_workspace(root, PASSAGES, TRIPLES).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    """A workspace of the test's own, to be damaged."""
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))
