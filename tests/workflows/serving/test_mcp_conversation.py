"""A conversation over MCP: results name it, later questions lean on it, and what is open is asked of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from tests.builders import HashEmbedder
from tests.scripted_server import ScriptedServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER, FOUNDER_OF_MARN, well_behaved
from tests.workflows.hashed_world import hashed_world
from tests.workflows.remembering import copy_of, messages
from workflows.runtime.resources import close_indexes
from workflows.serving.mcp_server import make_server

FOUNDED = "When was Marn founded?"

Call = Mapping[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hashed_world(tmp_path_factory.mktemp("mcp-conversation"))


@pytest.fixture(autouse=True)
def agents(embedder: HashEmbedder, chat_server: ScriptedServer) -> Iterator[ScriptedServer]:
    chat_server.script(well_behaved(answerer=["In 1203 [1].", "Duke Orlo [1].", "In Lisk [1]."]))
    yield chat_server
    close_indexes()


def told(result: CallToolResult) -> dict[str, Any]:
    found: dict[str, Any] | None = result.structured_content
    assert found is not None, text_of(result)
    return found


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def talk(root: Path, *calls: Call, tool: str = "ask", user: str = "", **client: Any) -> list[CallToolResult]:
    """Call a tool of one server again and again, each call in the conversation of the last unless it names one."""

    async def held() -> list[CallToolResult]:
        results: list[CallToolResult] = []
        key = ""
        async with Client(make_server(root, user=user), **client) as session:
            for call in calls:
                results.append(await session.call_tool(tool, {"conversation": key, **call}))
                key = (results[-1].structured_content or {"conversation": key})["conversation"]
        return results

    return asyncio.run(held())


def questions(*asked: str) -> list[Call]:
    return [{"question": question} for question in asked]


def test_a_question_leans_on_the_earlier_ones_of_its_conversation_and_on_no_others(
    served: Path, agents: ScriptedServer
) -> None:
    first, second = map(told, talk(served, *questions(FOUNDED, FOUNDER)))
    assert (first["understood"], first["choices"], first["answer_kind"]) == ("", [], "answer")
    assert (second["understood"], second["answer"]) == (FOUNDER_OF_MARN, "Duke Orlo [1].")
    assert first["conversation"] == second["conversation"]
    first, second = map(told, talk(served, {"question": FOUNDED}, {"question": FOUNDER, "conversation": ""}))
    assert second["understood"] == ""
    assert first["conversation"] != second["conversation"]
    assert len(agents.requests_of("rewriter")) == 1


def test_an_unknown_conversation_or_one_of_another_filter_is_an_error(served: Path) -> None:
    for tool in ("ask", "retrieve"):
        (result,) = talk(served, {"question": FOUNDER, "conversation": "made-up"}, tool=tool)
        assert result.is_error
        says = "BadInput: This server knows no such conversation. Begin a new one without `conversation`"
        assert says in text_of(result)
    calls: list[Call] = [{"question": FOUNDED, "where": {"source": "corpus.jsonl"}}, {"question": FOUNDER}]
    _, refused = talk(served, *calls)
    assert refused.is_error
    assert "begun with another `where`" in text_of(refused)


class TestAQuestionThatIsOpen:
    def test_its_choices_are_told_and_one_of_them_settles_it(self, served: Path) -> None:
        for choice in ("2", BIRTHS[1]):
            _, open_one, settled = map(told, talk(served, *questions(FOUNDED, BIRTH, choice)))
            assert (open_one["answer_kind"], open_one["choices"]) == ("clarification", list(BIRTHS))
            assert open_one["citations"] == []
            assert (settled["answer_kind"], settled["choices"], settled["understood"]) == ("answer", [], "")


class TestHistory:
    @pytest.fixture
    def root(self, served: Path, tmp_path: Path) -> Path:
        return copy_of(served, tmp_path)

    def test_a_conversation_goes_on_after_the_server_was_started_anew(self, root: Path) -> None:
        (begun,) = talk(root, {"question": FOUNDED}, user="ada")
        key = told(begun)["conversation"]
        (later,) = talk(root, {"question": FOUNDER, "conversation": key}, user="ada")
        assert (told(later)["understood"], told(later)["conversation"]) == (FOUNDER_OF_MARN, key)
        assert [message.content for message in messages(root, key)][::2] == [FOUNDED, FOUNDER]
        assert {message.user for message in messages(root, key)} == {"ada", ""}

    def test_a_client_may_name_a_conversation_which_only_its_user_goes_on_with(self, root: Path) -> None:
        (named,) = talk(root, {"question": FOUNDED, "conversation": "marn"}, user="ada")
        assert told(named)["conversation"] == "marn"
        (refused,) = talk(root, {"question": FOUNDER, "conversation": "marn"}, user="ben")
        assert refused.is_error
        assert "NoAccess" in text_of(refused)
        (found,) = talk(root, {"question": FOUNDER, "conversation": "marn"}, tool="retrieve", user="ada")
        assert told(found)["understood"] == FOUNDER_OF_MARN
        assert len(messages(root, "marn")) == 2, "retrieving writes nothing"
