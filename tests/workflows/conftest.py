from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import graph.walk.engines
from tests.builders import HashEmbedder
from tests.scripted_server import ScriptedServer, scripted
from tests.trace_server import TraceServer
from tests.workflows import conversing, ragenta_world
from tests.workflows.command_line import CORPUS, Mara, command_line
from tests.workflows.dev_server import Server, dev_server
from tests.workflows.reading_world import read, reading_world, talk
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import quick_graph, well_behaved, write_corpus, write_lines
from tests.workflows.velmora_shop import load_history
from tests.workflows.workspaces import Indexer, Row, use_embedder
from workflows import mara as mara_workflow
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.indexing_run.report import IndexReport
from workflows.runtime import resources
from workflows.runtime.resources import close_indexes
from workflows.settings.ragenta import RagentaContext


@contextmanager
def unconfigured_process() -> Iterator[None]:
    """Hide the caller's own configuration from what a session's fixture does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def small_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The small world, indexed once with the embedded model and read by every test."""
    folder = tmp_path_factory.mktemp("small-world")
    corpus, triples = write_corpus(folder)
    with unconfigured_process():
        index_sources([corpus], folder / "workspace", triples)
    yield folder / "workspace"
    close_indexes()


@pytest.fixture(scope="session")
def dev_model() -> Iterator[ScriptedServer]:
    """The chat model of the server that LangGraph develops with."""
    with scripted(conversing.well_behaved()) as server:
        yield server


@pytest.fixture(scope="session")
def dev(tmp_path_factory: pytest.TempPathFactory, small_workspace: Path, dev_model: ScriptedServer) -> Iterator[Server]:
    """A ``langgraph dev`` on the small workspace, which all tests share that need no settings of their own."""
    folder = tmp_path_factory.mktemp("server")
    with dev_server(small_workspace, folder, OPENAI_BASE_URL=dev_model.base_url) as running:
        yield running


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The workspace of the shop, with its three states."""
    folder = tmp_path_factory.mktemp("shop")
    with unconfigured_process():
        load_history(folder / "papers", folder / "workspace")
    yield folder / "workspace"
    close_indexes()


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two tenants' passages, embedded by hashes.

    Mia read of Project Zember and asked of the Amstel Office; a conversation of no user cites Project Zember.
    """
    world = reading_world(tmp_path_factory.mktemp("reading"))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        read(world, "mia", "of-b-two")
        talk(world, "of mia", "Who founded the Amstel Office?", "mia", ["of-a-two"])
        talk(world, "of nobody", "Who paid for Project Zember?", cited=["of-b-two"])
    yield world
    close_indexes()


@pytest.fixture
def settings(small_workspace: Path) -> Callable[..., Context]:
    """Make a context on the small workspace."""

    def make(**changes: Any) -> Context:
        return Context(**{"workspace": str(small_workspace), **changes})

    return make


@pytest.fixture
def ragenta_settings(small_workspace: Path) -> Callable[..., RagentaContext]:
    """Make a context of workflow ragenta on the small workspace; few passages, so that few are judged."""

    def make(**changes: Any) -> RagentaContext:
        return RagentaContext(**{"workspace": str(small_workspace), "top_k": 2, "follow_up_passages": 2, **changes})

    return make


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> HashEmbedder:
    """The configured embedding model of tests that need no weights."""
    made = HashEmbedder()
    use_embedder(monkeypatch, made)
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a workspace of the test's own may be."""
    return tmp_path / "workspace"


@pytest.fixture
def index(tmp_path: Path, root: Path) -> Indexer:
    """Index rows as a corpus file, always of the same name."""

    def once(rows: Sequence[Row], place: Path = root, **how: Any) -> IndexReport:
        corpus = tmp_path / "corpus.jsonl"
        write_lines(corpus, list(rows))
        return index_sources([corpus], place, **how)

    return once


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make numba, and what was compiled with it, impossible to import."""
    monkeypatch.delitem(sys.modules, "graph.walk.engines.compiled", raising=False)
    monkeypatch.delattr(graph.walk.engines, "compiled", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)


@pytest.fixture
def chat_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A chat endpoint that the environment names; the test gives it its script."""
    resources._open_chat_model.cache_clear()  # An earlier server, whose model thought, may have had the same port.
    with scripted({}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("MARA_TIMEOUT_S", "5")
        yield server


@pytest.fixture
def in_mara(chat_server: ScriptedServer, settings: Callable[..., Context]) -> Scripted:
    """Workflow mara with scripted models, which behave at first."""
    chat_server.script(well_behaved())
    return Scripted(chat_server, settings, quick_graph, well_behaved)


@pytest.fixture
def in_ragenta(chat_server: ScriptedServer, ragenta_settings: Callable[..., RagentaContext]) -> Scripted:
    """Workflow ragenta with scripted models, which behave at first."""
    chat_server.script(ragenta_world.well_behaved())
    return Scripted(chat_server, ragenta_settings, ragenta_world.quick_ragenta, ragenta_world.well_behaved)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the workflow take up a broken stream without the pause before it."""
    monkeypatch.setattr(mara_workflow, "graph", quick_graph)


@pytest.fixture
def traces() -> Iterator[TraceServer]:
    """A LangSmith of our own, to trace to."""
    with TraceServer() as server:
        yield server


@pytest.fixture
def mara(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mara:
    """Run the command line in this process."""
    return command_line(monkeypatch, capsys)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three passages that the tests of the command line index."""
    path = tmp_path_factory.mktemp("cli") / "corpus.jsonl"
    path.write_text(CORPUS, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def workspace(corpus: Path) -> Path:
    """These passages, indexed once with the embedded model and read by every test."""
    index_sources([corpus], corpus.parent / "workspace")
    return corpus.parent / "workspace"
