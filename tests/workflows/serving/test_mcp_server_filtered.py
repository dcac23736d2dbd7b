"""A filter that is fixed on the MCP server: no client is told a word of what it hides, whatever it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from typer.testing import CliRunner

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from graph.schema import entity_id
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.small_world import MALFORMED, well_behaved
from tests.workflows.workspaces import use_embedder
from workflows.cli.app import app
from workflows.runtime.resources import close_indexes
from workflows.serving.mcp_server import make_server

QUESTION = "Where does Lake Sund lie, and who drains it?"
OPEN: dict[str, Any] = {"owner": {"$in": ["open"]}}
PASSAGES = [
    passage_of("open-1", "Lake Sund", "Lake Sund lies near Marn.", owner="open", day="2020-05-31"),
    passage_of("open-2", "Marn", "Marn was founded in 1203.", owner="open", day="2021-01-01"),
    passage_of("closed-1", "LAKE SUND", "LAKE SUND was drained by Project Ember.", owner="closed", day="2020-06"),
    passage_of("closed-2", "Project Ember", "Project Ember was paid by Ida Brandt of MARN.", owner="closed"),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "open-1": [("Lake Sund", "lies near", "Marn")],
    "open-2": [("Marn", "founded in", "1203")],
    "closed-1": [("LAKE SUND", "drained by", "Project Ember"), ("LAKE SUND", "LIES NEAR", "MARN")],
    "closed-2": [("Project Ember", "paid by", "Ida Brandt")],
}
SAID = ("closed", "LAKE", "MARN", "Ember", "drained", "paid", "Brandt")
HIDDEN = (*SAID, "LIES", "ember", entity_id("Project Ember"))
"""Words that hidden passages and their facts alone say, in that spelling."""


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        yield publish_workspace(tmp_path_factory.mktemp("owned") / "workspace", PASSAGES, TRIPLES).root
    close_indexes()


class Talk:
    """A client's talk with a server.

    Attributes:
        results: of each call, in order.
    """

    def __init__(self, server: MCPServer[None], *calls: Mapping[str, Any]) -> None:
        self.results: list[CallToolResult] = []
        self._told: list[str] = []
        asyncio.run(self._talk(server, calls))

    async def _talk(self, server: MCPServer[None], calls: tuple[Mapping[str, Any], ...]) -> None:
        async with Client(server) as client:
            self._told.append(client.instructions or "")
            for listed in (client.list_tools, client.list_resources, client.list_resource_templates):
                self._told.append((await listed()).model_dump_json())
            for uri in ("closed-1", "file:///closed-1.txt"):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                self._told.append(str(refused.value).replace(uri, ""))
            for call in calls:
                for name in ("ask", "retrieve"):
                    arguments = {"question": QUESTION, **call}
                    result = await client.call_tool(name, arguments, progress_callback=self._hear)
                    self._told.append(result.model_dump_json())
                    self.results.append(result)

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        self._told.append(message or "")

    @property
    def leaked(self) -> list[str]:
        """The hidden words that it was told."""
        return [word for word in HIDDEN if any(word in each for each in self._told)]

    @property
    def seen(self) -> list[set[str]]:
        """The passages of each call that was not refused: those cited, those found."""
        found = [result.structured_content for result in self.results if result.structured_content]
        return [
            {hit["passage_id"] for hit in each["citations"]} if "citations" in each else {hit["id"] for hit in ranked}
            for each in found
            for ranked in [each.get("passages", [])]
        ]


def test_nothing_hidden_is_told_in_any_mode(root: Path) -> None:
    for mode in Mode:
        talk = Talk(make_server(root, OPEN), {"mode": mode.value}, {"mode": mode.value, "top_k": 1})
        assert talk.leaked == [], mode
        assert talk.seen[1] == ({"open-1", "open-2"} if mode is not Mode.SPARSE else {"open-1"})
        assert not any(result.is_error for result in talk.results), mode


def test_nothing_hidden_is_told_when_models_are_asked_or_go_wrong(root: Path, chat_server: ScriptedServer) -> None:
    scripts: list[Any] = [
        well_behaved(),
        {role: [MALFORMED] for role in ("fact filter", "manager", "answerer")},
        [Reply("no", status=401)],
    ]
    for script in scripts:
        chat_server.script(script)
        assert Talk(make_server(root, OPEN), {}).leaked == [], script
        assert chat_server.requests, script
        for request in chat_server.requests:
            assert [word for word in HIDDEN if word in str(request.body["messages"][1:])] == [], script


def test_what_a_client_asks_for_holds_beside_the_servers_conditions(root: Path) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
        (OPEN, {"owner": "open"}, {"open-1", "open-2"}),
        (OPEN, {"owner": "closed"}, set()),
        (OPEN, OPEN, {"open-1", "open-2"}),
        (OPEN, {"source": "open-2.txt"}, {"open-2"}),
        (OPEN, {"day": {"$lt": "2021"}}, {"open-1"}),
        ({"day": {"$gte": "2020"}}, {"day": {"$lt": "2021"}}, {"open-1", "closed-1"}),
        ({"day": {"$gte": "2020-06"}}, {"owner": {"$in": ["open", "closed"]}, "day": {"$ne": "2020-06"}}, {"open-2"}),
        ({"owner": "open"}, {"owner": {"$in": ["closed", "open"]}}, {"open-1", "open-2"}),
    ]
    for fixed, own, both in cases:
        assert Talk(make_server(root, fixed), {"mode": "dense", "where": own}).seen[1] == both


def test_an_operator_of_the_server_s_own_and_one_that_cannot_be_used_are_refused_by_name(root: Path) -> None:
    for result in Talk(make_server(root, OPEN), {"where": {"owner": {"$in": ["closed"]}}}).results:
        assert result.is_error
        assert "a condition with $in on 'owner'" in result.model_dump_json()
    with pytest.raises(BadInput, match="'owner' cannot be used"):
        make_server(root, {"owner": {"$or": ["open"]}})


def answers(root: Path, where: dict[str, Any]) -> list[str]:
    """Return the whole answers of an open server to a filter of a client's own."""
    return [result.model_dump_json() for result in Talk(make_server(root, OPEN), {"where": where}).results]


def test_a_client_cannot_learn_which_keys_hidden_passages_have(tmp_path: Path) -> None:
    for key in ["budget", "dyas"]:
        for wanted in [3, {"$ne": 3}, {"$gte": 3}]:
            told = []
            for name, more in (("with", {key: 3}), ("without", {})):
                hidden = passage_of("closed-1", "Sund", "Ember drains it.", owner="closed", **more)
                told.append(
                    answers(publish_workspace(tmp_path / name, [*PASSAGES[:2], hidden], {}).root, {key: wanted})
                )
            assert told[0] == told[1], wanted
            assert all("No passage has metadata called" in each for each in told[0]), wanted


def test_where_the_servers_own_filter_is_misspelt_a_client_is_told_no_key(root: Path) -> None:
    for fixed in ({"onwer": "open"}, {"onwer": {"$ne": "open"}}):
        talk = Talk(make_server(root, fixed), {}, {"where": {"dya": "2020"}})
        assert talk.leaked == []
        for result in talk.results:
            assert result.is_error
            assert "The server's own filter asks for metadata that no passage has" in result.model_dump_json()
            assert "onwer" not in result.model_dump_json()


class TestCommand:
    def serve(self, monkeypatch: pytest.MonkeyPatch, root: Path, *conditions: str) -> tuple[list[MCPServer[None]], str]:
        """Run the command up to where it would serve; return what it would, and what it said."""
        served: list[MCPServer[None]] = []

        async def serve(server: MCPServer[None]) -> None:
            served.append(server)

        monkeypatch.setattr(MCPServer, "run_stdio_async", serve)
        done = CliRunner().invoke(
            app, ["serve", "mcp", "-w", str(root), *(word for each in conditions for word in ("--where", each))]
        )
        assert done.exit_code == (0 if served else 2)
        return served, " ".join(done.output.split())

    def test_its_conditions_are_those_of_every_call(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (server,), _ = self.serve(monkeypatch, root, "owner=open", "day>=2021")
        talk = Talk(server, {}, {"where": {"owner": "closed"}})
        assert talk.leaked == []
        assert talk.seen[1::2] == [{"open-2"}, set()]
