"""The events of a turn: what runs is told in words, void words are taken back, silence keeps the turn alive."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.roles import Turn
from tests.workflows.serving.page.site import events_in
from workflows.context import Context
from workflows.conversation.kept import RUNNING, Conversations, Report
from workflows.serving.page import runs
from workflows.serving.page.runs import Question
from workflows.serving.service import Service
from workflows.streaming import Answered, Event, NodeStarted, Progress, Token


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what the page is told of a run with these events, the whole stream, and its turn as it is kept."""

    def run(*happening: Event | Exception | Callable[[], Awaitable[object]]) -> tuple[list[dict[str, Any]], str, Any]:
        async def scripted(question: str, context: Context, turns: Sequence[Turn]) -> AsyncIterator[Event]:
            for each in happening:
                if isinstance(each, Exception):
                    raise each
                if isinstance(each, NodeStarted | Progress | Token | Answered):
                    yield each
                else:
                    await each()

        monkeypatch.setattr(runs, "aask_stream", scripted)
        store = Conversations(tmp_path)
        question = Question(
            lambda: (store.begin("me", "conversation-1", "turn-0001", "Who?", {})[0], ()), Context(), str
        )

        async def collected() -> str:
            under_way = runs.Runs(store)
            turn = await under_way.begin(question, Service(at_once=1))
            return "".join([each async for each in under_way.follow("me", turn)])

        stream = asyncio.run(collected())
        return events_in(stream), stream, store.turn("me", "turn-0001")

    return run


def test_words_that_a_node_began_anew_are_taken_back(told: Any) -> None:
    events, _, _ = told(
        NodeStarted("write_answer", 1), Token("It"), NodeStarted("write_answer", 2), Token("No"), ValueError("enough")
    )
    assert [event["kind"] for event in events] == ["begun", "step", "token", "void", "step", "token", "ended"]
    assert events[4]["text"] == "Write answer, attempt 2"


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
    silent, tell = threading.Event(), Conversations.tell

    def noted(store: Conversations, *reports: Report) -> None:
        tell(store, *reports)
        if any(not report.events and report.state == RUNNING for report in reports):
            silent.set()

    monkeypatch.setattr(Conversations, "tell", noted)
    monkeypatch.setattr(runs, "TOUCHED_EVERY_S", 0.01)
    _, stream, _ = told(NodeStarted("write_answer", 1), partial(asyncio.to_thread, silent.wait, 20), ValueError("now"))
    assert silent.is_set()
    assert ": at work\n\n" in stream


def test_a_failure_is_kept_with_what_was_written(told: Any) -> None:
    events, _, kept = told(Token("It was"), ValueError("the model is gone"))
    assert (kept.state, kept.answer, kept.error) == ("failed", "It was", "the model is gone")
    assert events[-1]["turn"]["error"] == "the model is gone"
    assert json.dumps(events[-1]["turn"])
