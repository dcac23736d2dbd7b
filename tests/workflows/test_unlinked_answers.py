"""No answer names an image or a foreign link, whatever its author, by whichever workflow and door it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.rewriter import Rewriting
from agents.roles import Turn
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows import ragenta_world
from tests.workflows.conversing import BIRTH, FOUNDER, ScriptedRewriter, said
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import QUESTION, well_behaved
from workflows import chat, mara, ragenta
from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.indexing import index_sources
from workflows.streaming import NodeStarted, ask_stream

PIECES = ("It was founded !", "[x](https://ev", 'il.example/?q=a "t") in [1', "203](https://evil.example/a) ", "[1].")
WRITTEN = "It was founded  in 1203 [1]."


@pytest.fixture
def hostile(chat_server: ScriptedServer) -> ScriptedServer:
    """A server whose answers name an image and a link, cut in the middle of both."""
    reply = Reply("".join(PIECES), pieces=PIECES)
    roles = ragenta_world.well_behaved(judge=[ragenta_world.YES], claim_judge=ragenta_world.accepts)
    scripts = {**well_behaved(), **roles, "answerer": [reply], "final predictor": [reply]}
    chat_server.script(scripts)
    return chat_server


def heard_of(graph: Any, given: Any, context: Any) -> str:
    """Return the words that a graph streams, as Studio and the LangGraph API pass it on."""
    stream = graph.stream(given, context=context, stream_mode="messages", subgraphs=True)
    return "\n".join(str(message.content) for _, (message, _) in stream)


@pytest.mark.usefixtures("hostile")
class TestModels:
    def test_answers_their_tokens_and_what_the_graphs_stream(self, small_workspace: Path) -> None:
        for workflow in (mara, ragenta):
            context = make_context(workflow.WORKFLOW, workspace=str(small_workspace), top_k=2)
            events = list(ask_stream(QUESTION, context))
            words = "".join("\n" if isinstance(event, NodeStarted) else getattr(event, "text", "") for event in events)
            assert words.splitlines()[-1] == WRITTEN
            result = ask(QUESTION, context)
            assert (result["answer"], result["plain_answer"]) == (WRITTEN, "It was founded  in 1203.")
            assert "evil" not in json.dumps(result)
            heard = heard_of(workflow.graph, {"question": QUESTION}, context)
            assert "founded" in heard
            assert not [foreign for foreign in ("evil", "![") if foreign in heard]

    def test_what_graph_chat_says(self, settings: MakeContext) -> None:
        heard = heard_of(chat.graph, {"messages": QUESTION}, settings())
        assert "".join(heard.partition("**Sources**")[0].splitlines()) == WRITTEN
        assert "evil" not in heard


def test_a_question_back(settings: MakeContext) -> None:
    for door in (ask, lambda *asked: said(ask_stream(*asked))):
        choices = ("Where was ![x](https://evil.example/o) Orlo born?", "Where was Ada born?")
        rewriter = ScriptedRewriter({BIRTH: Rewriting(BIRTH, choices=choices)})
        result = door(BIRTH, settings().with_agents(rewriter=rewriter), [Turn(FOUNDER, "Duke Orlo. [1]", ("marn",))])
        assert result["answer_kind"] == "clarification", door
        assert "evil" not in json.dumps(result), door


def test_what_a_question_was_understood_as(settings: MakeContext) -> None:
    portal = "https://hr.example/portal"
    rewriting = Rewriting(
        f"Where was ![x](https://evil.example/o) Orlo of {portal} born?", ("![](https://evil.example)",)
    )
    context = settings().with_agents(rewriter=ScriptedRewriter({BIRTH: rewriting}))
    result = ask(BIRTH, context, [Turn(f"Who is Orlo of {portal}?", "Duke Orlo. [1]", ("marn",))])
    assert result["question"] == f"Where was  Orlo of {portal} born?"
    assert "evil" not in json.dumps(result)


def test_a_link_to_the_source_of_a_passage_and_an_address_in_its_words_stay(
    tmp_path: Path, chat_server: ScriptedServer
) -> None:
    booked = "https://hr.example/portal"
    row = {"id": "trips", "title": "Trips", "text": f"Trips are booked at {booked} by everybody."}
    (tmp_path / "trips.jsonl").write_text(json.dumps(row) + "\n")
    index_sources([tmp_path / "trips.jsonl"], tmp_path / "workspace")
    chat_server.script({**well_behaved(), "answerer": ["Trips are booked [1]."]})
    context = Context(workspace=str(tmp_path / "workspace"))
    source = ask("Where are trips booked?", context)["passages"][0]["source"]
    linked = f"[Trips]({source}) are booked at {booked} [1]."
    chat_server.script({**well_behaved(), "answerer": [linked]})
    assert ask("Where are trips booked?", context)["answer"] == linked
