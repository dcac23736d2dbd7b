"""The events of a turn: what runs is told in words, void words are taken back, silence keeps the turn alive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.roles import Turn
from tests.workflows.serving.page.site import events_in
from workflows import mara, ragenta
from workflows.context import Context
from workflows.conversation.kept import CUT_AFTER_S, TOUCHED_EVERY_S, Conversations
from workflows.serving.metrics import Metrics
from workflows.serving.page import turns
from workflows.serving.page.turns import STEPS, answer
from workflows.streaming import FANNED_OUT, Event, NodeStarted, Progress, Token

INNER = {"predict_answer", "skip_prediction", "score_passage", "leave_unjudged"}
"""Nodes that run once a passage: they are told as a count."""


def nodes(graph: Any) -> set[str]:
    """The names of a workflow's nodes, those of its subgraphs among them."""
    return {name.rpartition(":")[2] for name in graph.get_graph(xray=True).nodes} - {"__start__", "__end__"}


@pytest.mark.parametrize("workflow", [mara.graph, ragenta.graph])
def test_every_node_has_words(workflow: Any) -> None:
    assert nodes(workflow) - set(FANNED_OUT) - INNER <= set(STEPS)


def test_no_words_are_left_over() -> None:
    assert set(STEPS) <= nodes(mara.graph) | nodes(ragenta.graph)


def test_a_turn_under_way_is_touched_long_before_it_counts_as_cut() -> None:
    assert 3 * TOUCHED_EVERY_S < CUT_AFTER_S


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what the page is told of a run with these events and pauses, and the state that its turn is kept in."""

    def run(*happening: Event | Exception | None) -> tuple[list[dict[str, Any]], str, Any]:
        async def scripted(
            question: str, context: Context, turns: Sequence[Turn], pause_s: float
        ) -> AsyncIterator[Event | None]:
            for each in happening:
                if isinstance(each, Exception):
                    raise each
                yield each

        monkeypatch.setattr(turns, "aask_with_pauses", scripted)
        store = Conversations(tmp_path)
        turn, _ = store.begin("me", "conversation-1", "turn-0001", "Who?", {})

        async def collected() -> str:
            parts = [each async for each in answer(store, "me", turn, Context(), [], str, Metrics())]
            return "".join(parts)

        stream = asyncio.run(collected())
        return events_in(stream), stream, store.turn("me", "turn-0001")

    return run


def test_words_that_a_node_began_anew_are_taken_back(told: Any) -> None:
    events, _, _ = told(
        NodeStarted("write_answer", 1), Token("It"), NodeStarted("write_answer", 2), Token("No"), ValueError("enough")
    )
    assert [event["kind"] for event in events] == ["begun", "step", "token", "void", "step", "token", "ended"]
    assert events[4]["text"] == "Writing the answer, attempt 2"


def test_the_draft_stays_while_its_claims_are_checked(told: Any) -> None:
    checking = Progress("judge_claims", "started", {})
    events, _, kept = told(
        NodeStarted("write_answer", 1), Token("It"), NodeStarted("check_claims", 1), checking, ValueError("enough")
    )
    assert [event["kind"] for event in events] == ["begun", "step", "token", "step", "ended"]
    assert events[3]["text"] == "Checking each claim"
    assert kept.answer == "It"


def test_passages_that_are_judged_are_counted(told: Any) -> None:
    events, _, _ = told(
        Progress("line_up_passages", "finished", {"to_judge": 2}),
        Progress("score_passage", "finished", {}),
        Progress("score_passage", "malformed", {}),
        Progress("leave_unjudged", "fallback", {}),
        ValueError("enough"),
    )
    steps = [(event["text"], event["replaces"]) for event in events if event["kind"] == "step"]
    assert steps == [("Judging passages: 1 of 2", False), ("Judging passages: 2 of 2", True)]


def test_a_silent_model_is_waited_for_and_the_turn_stays_alive(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[str] = []
    touch = Conversations.touch

    def noted(store: Conversations, turn: str) -> None:
        touched.append(turn)
        touch(store, turn)

    monkeypatch.setattr(Conversations, "touch", noted)
    _, stream, _ = told(NodeStarted("write_answer", 1), None, ValueError("enough"))
    assert ": at work\n\n" in stream
    assert set(touched) == {"turn-0001"}


def test_a_failure_is_kept_with_what_was_written(told: Any) -> None:
    events, _, kept = told(Token("It was"), ValueError("the model is gone"))
    assert (kept.state, kept.answer, kept.error) == ("failed", "It was", "the model is gone")
    assert events[-1]["turn"]["error"] == "the model is gone"
    assert json.dumps(events[-1]["turn"])
