"""Keys and passwords authenticate requests and stand nowhere else: no trace, error, log, result or file has them."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from langsmith.utils import get_env_var
from mcp import Client
from mcp.types import TextContent

from tests.chroma_server import ChromaServer, Gate
from tests.scripted_server import Reply, ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.command_line import Mara, Outcome
from tests.workflows.ragenta_world import TWO_THINGS, well_behaved
from tests.workflows.small_world import QUESTION, write_corpus, write_lines
from workflows.runtime.resources import close_indexes
from workflows.serving.mcp_server import make_server

KEY = "sk-secret-of-openai"
LANGSMITH_KEY = "lsv2-secret-of-langsmith"
PASSWORDS = {name: f"secret/of {name}" for name in ("chat", "embedding", "chroma", "langsmith", "proxy")}
TOKEN = "secret-in-a-query"


def basic(name: str) -> str:
    """The credentials of a server as they are sent."""
    return base64.b64encode(f"{name}:{PASSWORDS[name]}".encode()).decode()


SECRETS = [
    *(KEY, LANGSMITH_KEY, TOKEN),
    *PASSWORDS.values(),
    *(quote(password, safe="") for password in PASSWORDS.values()),
    *map(basic, PASSWORDS),
]
"""All that must not be told, in every form that it is sent or configured in."""

ECHO = f"You sent {KEY}, {basic('chat')}, {PASSWORDS['chat']}, {basic('embedding')}, {PASSWORDS['embedding']}"
"""The answer of a server that means to help."""


def with_password(name: str, url: str) -> str:
    return url.replace("http://", f"http://{name}:{quote(PASSWORDS[name], safe='')}@")


def leaks(told: str | bytes) -> list[str]:
    """The secrets within a text or a file."""
    raw = told.encode() if isinstance(told, str) else told
    return [secret for secret in SECRETS if secret.encode() in raw]


class World:
    """A workspace, and servers that all want credentials; hears all that is told anywhere."""

    def __init__(self, mara: Mara, folder: Path, traces: TraceServer, log: pytest.LogCaptureFixture) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.traces = traces
        self.told: list[str] = []
        self._mara = mara
        self._log = log

    def run(self, *arguments: str | Path) -> Outcome:
        """Run a command and keep what it tells."""
        done = self._mara(*arguments)
        self.told += [done.out, done.err]
        return done

    def indexed(self) -> None:
        """Index the small world."""
        corpus, triples = write_corpus(self.folder)
        assert self.run("index", corpus, "--triples", triples, "-w", self.workspace, "--json").code == 0

    def over_mcp(self, tool: str) -> str:
        """Call a tool of the MCP server and keep what it answers."""

        async def once() -> str:
            async with Client(make_server(self.workspace)) as client:
                result = await client.call_tool(tool, {"question": QUESTION})
                return f"{result.structured_content} {[c.text for c in result.content if isinstance(c, TextContent)]}"

        self.told.append(asyncio.run(once()))
        return self.told[-1]

    def found(self) -> dict[str, list[str]]:
        """Return the secrets that leaked, by place."""
        close_indexes()
        self.traces.trees()
        places: dict[str, list[str]] = {f"told {i}": leaks(text) for i, text in enumerate(self.told)}
        places |= {f"trace {i}": leaks(body) for i, body in enumerate(self.traces.bodies)}
        places |= {str(path): leaks(path.read_bytes()) for path in self.folder.rglob("*") if path.is_file()}
        places["log"] = leaks(self._log.text)
        return {place: found for place, found in places.items() if found}


@pytest.fixture
def world(
    mara: Mara,
    tmp_path: Path,
    chat_server: ScriptedServer,
    traces: TraceServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """Everything that takes a secret is given one."""
    caplog.set_level(logging.INFO)
    environment = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": with_password("chat", chat_server.base_url),
        "MARA_EMBEDDING_MODEL": "embedder",
        "MARA_EMBEDDING_BASE_URL": with_password("embedding", chat_server.base_url),
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_ENDPOINT": traces.url,
        "LANGSMITH_API_KEY": LANGSMITH_KEY,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cast(Any, get_env_var).cache_clear()
    chat_server.script(well_behaved())
    yield World(mara, tmp_path, traces, caplog)
    close_indexes()
    cast(Any, get_env_var).cache_clear()


def use_everything(world: World) -> None:
    """Index, ask in every way there is, and write what can be written."""
    world.indexed()
    questions = world.folder / "questions.jsonl"
    write_lines(questions, [{"id": "q", "question": QUESTION, "answers": ["1203"], "gold_ids": ["marn"]}])
    place = ("-w", world.workspace, "--json")
    for arguments in (
        ("ask", QUESTION, "--explain", world.folder / "page.html"),
        ("ask", TWO_THINGS, "--workflow", "ragenta"),
        ("batch", questions, "--format", "debug", "--out", world.folder / "batch"),
        ("eval", questions, "--mode", "mara", "--out", world.folder / "eval"),
        ("show",),
        ("doctor",),
    ):
        assert world.run(*arguments, *place).code == 0, world.told[-2:]
    assert "1203" in world.over_mcp("ask")


def test_requests_carry_the_credentials_and_nothing_else_does(world: World, chat_server: ScriptedServer) -> None:
    world.indexed()
    assert world.run("ask", QUESTION, "-w", world.workspace, "--json").code == 0
    sent = {(each.role == "embeddings", each.headers["authorization"]) for each in chat_server.requests}
    assert sent == {(False, f"Basic {basic('chat')}"), (True, f"Basic {basic('embedding')}")}
    assert any(b"ChatOpenAI" in body for body in world.traces.bodies)
    assert world.found() == {}


@pytest.mark.slow
def test_so_it_is_with_a_chroma_server(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    header = ("Authorization", f"Basic {basic('chroma')}")
    with (
        ChromaServer(tmp_path_factory.mktemp("chroma")) as server,
        Gate(server.url, "", header) as gate,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("MARA_VECTORS", f"chroma+{with_password('chroma', gate.url)}")
        use_everything(world)
        gate.failing = 500
        assert world.run("ask", "Who is Orlo?", "-w", world.workspace).code == 3
        assert world.found() == {}


@pytest.mark.slow
def test_a_server_that_echoes_them_makes_no_other_tell_them(
    world: World, chat_server: ScriptedServer, quick_retries: None
) -> None:
    assert leaks(json.dumps({"error": ECHO})) == [each for each in SECRETS if each in ECHO]
    world.indexed()
    for status in (400, 401, 404, 422, 500):
        echo = [Reply(ECHO, status=status)]
        for scripts in ({"embeddings": echo}, echo):
            chat_server.script(scripts)
            assert world.run("ask", "Who was Ada Brandt?", "-w", world.workspace, "--json").code == 3
            assert "endpoint" in world.over_mcp("ask")
    assert world.found() == {}


UNREACHABLE = "http://127.0.0.1:9"
UNUSABLE = (
    ("OPENAI_BASE_URL", with_password("chat", UNREACHABLE)),
    ("OPENAI_BASE_URL", f"{UNREACHABLE}/v1?token={TOKEN}"),
    ("OPENAI_BASE_URL", f"{with_password('chat', UNREACHABLE)}:port"),
    ("OPENAI_PROXY", with_password("proxy", UNREACHABLE)),
    ("OPENAI_PROXY", with_password("proxy", UNREACHABLE).replace("http", "gopher")),
    ("MARA_EMBEDDING_BASE_URL", f"{UNREACHABLE}/v1?token={TOKEN}"),
    ("MARA_VECTORS", f"chroma+{with_password('chroma', UNREACHABLE)}"),
    ("MARA_VECTORS", f"chroma+{UNREACHABLE}?token={TOKEN}"),
    ("MARA_VECTORS", f"chroma+http://me:{TOKEN}@{TOKEN}@127.0.0.1:9/v1"),
    ("MARA_VECTORS", f"http://me:{TOKEN}@127.0.0.1:9"),
    ("OPENAI_API_KEY", f"{KEY}\n{KEY}"),
    *(
        (name, f"http://me:{password}@127.0.0.1:9/v1")
        for name in ("OPENAI_BASE_URL", "OPENAI_PROXY", "MARA_EMBEDDING_BASE_URL")
        for password in (f"{TOKEN}@{TOKEN}", f"1/{TOKEN}")
    ),
)
"""Variables, and addresses and keys in them that nothing can be reached with."""


@pytest.mark.slow
def test_what_cannot_be_reached_or_used_is_told_without_them(
    world: World, quick_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.indexed()
    for variable, address in UNUSABLE:
        with monkeypatch.context() as patch:
            patch.setenv(variable, address)
            asked = ("ask", "Who was Duke Orlo?", "--model", variable, "-w", world.workspace, "--json")
            assert world.run(*asked).code in (2, 3)
            world.over_mcp("ask")
    assert world.found() == {}


@pytest.mark.slow
def test_a_langsmith_that_takes_nothing_is_told_without_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.indexed()
    for address in (world.traces.url, UNREACHABLE):
        monkeypatch.setenv("LANGSMITH_ENDPOINT", with_password("langsmith", address))
        world.run("show", "-w", world.workspace)
        assert world.run("ask", QUESTION, "-w", world.workspace, "--json").code == 0
    monkeypatch.setenv("LANGSMITH_ENDPOINT", f"http://me:1/{TOKEN}@{TOKEN}@127.0.0.1:9/v1")
    assert world.run("ask", QUESTION, "-w", world.workspace, "--json").code == 0
    assert any("Traces are not sent: LANGSMITH_ENDPOINT is no address" in text for text in world.told)
    assert any(f"Traces were not sent to {UNREACHABLE}" in text for text in world.told)
    assert world.found() == {}
