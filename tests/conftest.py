from __future__ import annotations

import gc
import os
import shutil
import signal
import ssl
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from graph import server_clients
from graph.embedding import bert as bert_module
from graph.embedding.bert import MiniLMEmbedder
from graph.environment import refresh_environment
from tests.builders import HashEmbedder
from tests.postgres_server import PostgresServer

# The same examples in every run, however busy the machine is; `--hypothesis-profile=default` looks for new and more.
settings.register_profile("suite", derandomize=True, deadline=None, max_examples=20)
settings.load_profile("suite")

# What is imported and collected stays: looking through it for garbage again and again is a tenth of the suite's time.
gc.disable()

# A suite that was started in the background ignores Ctrl-C, and so would every command that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MEMORY = Path("/dev/shm")
_ROOM = 4 * 2**30
_FOLDER = pytest.StashKey[Path]()

# The embedded model is read once, which takes a second, and so are the certificates that every client begins with.
_opened = cache(lambda package, read=bert_module._open_model: read())
pytest.MonkeyPatch().setattr(bert_module, "_open_model", lambda: _opened(bert_module._PACKAGE))
pytest.MonkeyPatch().setattr(ssl, "create_default_context", cache(ssl.create_default_context))


def _then_reads(change: Callable[..., None]) -> Callable[..., None]:
    """A change of the environment whose values count at once, as if a command, a run or a server began with it."""

    @wraps(change)
    def changed(*args: Any, **kwargs: Any) -> None:
        change(*args, **kwargs)
        refresh_environment()

    return changed


for _name in ("setenv", "delenv", "undo"):
    setattr(pytest.MonkeyPatch, _name, _then_reads(getattr(pytest.MonkeyPatch, _name)))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests' files in memory where it has room: half of the time of a commit is waiting for the disk."""
    if config.option.basetemp or hasattr(config, "workerinput") or config.option.markexpr == "slow":
        return
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        folder = Path(tempfile.mkdtemp(prefix="mara-tests-", dir=_MEMORY))
        config.stash[_FOLDER] = folder
        config.option.basetemp = folder / "files"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give the memory back; `--basetemp` keeps the files."""
    folder = session.config.stash.get(_FOLDER, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


# Features outside of the core: their tests are slow ones, all of them.
OUTSIDE = (
    "benchmarks",
    "graph/relationships/cypher",
    "workflows/cli/test_live_answer.py",
    "workflows/cli/test_watch.py",
    "workflows/evaluation",
    "workflows/serving/page",
    "workflows/test_dev_server_chat.py",
    "workflows/tuning",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of features outside of the core, and run tests of SQLite's files with SQLite alone."""
    outside = {Path(__file__).parent / path for path in OUTSIDE}
    for item in items:
        if not outside.isdisjoint((item.path, *item.path.parents)):
            item.add_marker(pytest.mark.slow)
    items[:] = [item for item in items if not (item.get_closest_marker("sqlite_file") and "[postgres" in item.name)]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


CONFIGURING = ("OPENAI_", "MARA_", "LANGSMITH_", "LANGCHAIN_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the tests marked soak whole, not a tenth of them")


@pytest.fixture(scope="session")
def soak_share(request: pytest.FixtureRequest) -> float:
    """The share of a soak test's work that this run does: 1.0 under `make soak`, a tenth in the slow suite."""
    return 1.0 if request.config.getoption("--soak") else 0.1


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a Postgres server, which runs for as long as the tests do."""
    pytest.importorskip("psycopg", reason="The extra `postgres` is not installed")
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, unconfigured: None) -> str:
    """Run a test with records in SQLite, and under `make test-slow` with records in Postgres, too."""
    if request.param == "postgres":
        monkeypatch.setenv("MARA_RECORD_URL", str(request.getfixturevalue("postgres_url")))
    return str(request.param)


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(CONFIGURING):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setattr(server_clients, "_SERVES", False)


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The embedded model: loading it takes seconds."""
    return MiniLMEmbedder()
