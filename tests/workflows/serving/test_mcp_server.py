"""A workspace over MCP: two described tools, structured results, readable errors, and nothing but the protocol."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent, Tool
from typer.testing import CliRunner

from tests.builders import HashEmbedder
from tests.dictation import PATIENCE_S, Dictation, wait_for_the_end
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.hashed_world import hashed_world
from tests.workflows.small_world import QUESTION, well_behaved
from workflows.answering import ask
from workflows.cli.app import app
from workflows.context import Context
from workflows.runtime.resources import close_indexes
from workflows.serving.mcp_server import make_server

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SERVE = "import sys; from workflows.cli.app import app; app(['serve', 'mcp', *sys.argv[1:]])"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hashed_world(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(autouse=True)
def quick_embedding(embedder: HashEmbedder) -> Iterator[None]:
    yield
    close_indexes()


def call(root: Path, name: str, **arguments: Any) -> CallToolResult:
    """Call a tool of a server in this process, as a client does."""

    async def once() -> CallToolResult:
        async with Client(make_server(root)) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(once())


def exchange(program: str, root: Path, lines: Iterable[str], n_answers: int) -> tuple[list[Any], str, str]:
    """Return so many answers of a server over stdio, and what else it wrote on its two outputs until its end."""
    with subprocess.Popen(
        [sys.executable, "-c", program, "-w", str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.writelines(f"{line}\n" for line in lines)
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(n_answers)]
        server.stdin.close()
        rest, told = server.stdout.read(), server.stderr.read()
        assert server.wait(PATIENCE_S) == 0
    return answers, rest, told


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def tools_of(root: Path) -> dict[str, Tool]:
    async def listed() -> dict[str, Tool]:
        async with Client(make_server(root)) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return asyncio.run(listed())


def test_there_are_two_tools_that_only_read_with_every_argument_typed_and_described(served: Path) -> None:
    tools = tools_of(served)
    assert set(tools) == {"ask", "retrieve"}
    for tool in tools.values():
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        arguments = tool.input_schema["properties"]
        assert list(arguments) == ["question", "mode", "top_k", "where", "conversation", "as_of"]
        assert tool.input_schema["required"] == ["question"]
        assert tool.input_schema["additionalProperties"] is False
        assert all(len(argument["description"]) > 20 for argument in arguments.values())
        assert (arguments["top_k"]["minimum"], arguments["top_k"]["maximum"]) == (1, 200)
        assert "dense" in json.dumps(tool.input_schema["$defs"])
        assert len(json.dumps(tool.input_schema)) < 2500, "an agent reads all of it before each of its steps"


def test_asking_gives_the_answer_of_ask_with_the_sentences_it_cites_and_retrieving_its_passages(served: Path) -> None:
    answer = call(served, "ask", question=QUESTION).structured_content
    expected = ask(QUESTION, Context(workspace=str(served)))
    assert answer is not None
    assert (answer["answer"], answer["refused"]) == (expected["answer"], expected["refused"])
    texts = {hit["id"]: hit["text"] for hit in expected["passages"]}
    assert [mark["passage_id"] for mark in answer["citations"]] == [c["passage_id"] for c in expected["citations"]]
    for mark in answer["citations"]:
        assert mark["quote"] in texts[mark["passage_id"]]
    found = call(served, "retrieve", question=QUESTION, top_k=3, mode="sparse").structured_content
    expected = ask(QUESTION, Context(workspace=str(served), top_k=3, mode="sparse"))
    assert found is not None
    assert found["passages"] == [{**hit, "superseded_at": None} for hit in expected["passages"]]
    assert found["ranked_by"] == "sparse"


def test_what_cannot_be_asked_is_a_tool_error_that_says_why(served: Path, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"question": " "}, "BadInput: The question is empty. Ask something"),
        ({"question": "Who?", "where": {"$or": 1}}, "cannot ask for"),
        ({"question": "Who?", "where": {"owner": None}}, "on 'owner' cannot be used"),
    ]
    for name in ("ask", "retrieve"):
        for arguments, says in cases:
            result = call(served, name, **arguments)
            assert (result.is_error, result.structured_content) == (True, None), arguments
            assert says in text_of(result)
            assert len(text_of(result).splitlines()) == 1
        for wrong in ("wher", "client", "workspace", "model", "top_k", "mode"):
            result = call(served, name, question="Who?", **{wrong: {"source": "none"}})
            assert result.is_error
            assert wrong in text_of(result)
        missing = call(tmp_path / "none", name, question=QUESTION)
        assert missing.is_error
        assert "WorkspaceMissing: There is no workspace at none." in text_of(missing)
        assert "mara index" in text_of(missing)
        assert tmp_path.name not in text_of(missing)


def test_a_client_chooses_neither_workspace_nor_model(
    chat_server: ScriptedServer, served: Path, tmp_path: Path
) -> None:
    chat_server.script(well_behaved())
    for chosen in ({"workspace": str(tmp_path / "other")}, {"model": "expensive"}):
        assert call(served, "ask", question=QUESTION, **chosen).is_error
    assert chat_server.requests == []
    assert not list(tmp_path.iterdir())
    assert not call(served, "ask", question=QUESTION).is_error
    assert {request.body["model"] for request in chat_server.requests} == {"gpt-6-luna"}
    chat_server.script([Reply("no", status=401)])
    assert "ModelUnavailable" in text_of(call(served, "ask", question=QUESTION))


def test_a_call_that_is_cancelled_stops_the_run(chat_server: ScriptedServer, served: Path) -> None:
    dictation = Dictation()
    chat_server.script({**well_behaved(), "answerer": [Reply(pieces=dictation)]})

    async def cancel_while_it_writes() -> None:
        async with Client(make_server(served)) as client:
            task = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
            await asyncio.to_thread(dictation.began.wait, PATIENCE_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            dictation.go_on.set()
            await asyncio.to_thread(dictation.hung_up.wait, PATIENCE_S)
            assert (await client.call_tool("retrieve", {"question": QUESTION})).is_error is False

    asyncio.run(cancel_while_it_writes())
    assert dictation.hung_up.is_set()
    wait_for_the_end()
    assert len(chat_server.requests_of("answerer")) == 1


def test_the_command_says_what_to_install_where_the_sdk_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "workflows.serving.mcp_server")
    done = CliRunner().invoke(app, ["serve", "mcp", "-w", str(tmp_path)])
    assert done.exit_code == 2
    assert "pip install 'mara-rag[mcp]'" in " ".join(done.stderr.split())
    assert done.stdout == ""


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_standard_output(small_workspace: Path) -> None:
    noisy = (
        "import os; from workflows.serving import mcp_server; quiet = mcp_server._found\n"
        "def found(*asked): print('noise'); os.write(1, b'noise'); return quiet(*asked)\n"
        f"mcp_server._found = found; {SERVE}"
    )
    asked = {"name": "retrieve", "arguments": {"question": QUESTION, "mode": "sparse"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        INITIALIZED,
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    answers, rest, told = exchange(noisy, small_workspace, map(json.dumps, messages), 2)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["passages"]
    assert rest == ""
    assert told.count("noise") == 2
