from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graph.store import VectorStore
from tests.chroma_server import ChromaServer

MakeStore = Callable[[], VectorStore]


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ChromaServer(tmp_path_factory.mktemp("server")) as server:
        yield server.url


@pytest.fixture(params=["embedded", "server"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with each Chroma: ``embedded``, or the address of a server, which is then the configured one."""
    if request.param == "embedded":
        return "embedded"
    url = str(request.getfixturevalue("chroma_url"))
    monkeypatch.setenv("MARA_CHROMA_URL", url)
    return url


@pytest.fixture
def connect(where: str, tmp_path: Path) -> Iterator[MakeStore]:
    """Opens one store as often as it is called."""
    workspace_id = uuid.uuid4().hex
    opened: list[VectorStore] = []

    def another() -> VectorStore:
        embedded = where == "embedded"
        opened.append(
            VectorStore.embedded(tmp_path / "chroma") if embedded else VectorStore.server(where, workspace_id)
        )
        return opened[-1]

    yield another
    for store in opened:
        store.close()


@pytest.fixture
def store(connect: MakeStore) -> VectorStore:
    return connect()
