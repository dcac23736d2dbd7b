"""Asking event by event: the answer as it is written, the result of ``ask``, and no work for a stream that was left."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from agents.fact_filter import FactChoice
from graph.errors import BadInput, ModelUnavailable, TransportFault, WorkspaceMissing
from tests.chatting import ask_text, messages, model_on
from tests.dictation import PATIENCE_S, Dictation, every, result_in, screens, starts, wait_for_the_end
from tests.scripted_server import Fault, Reply
from tests.workflows.scripted import MakeContext, Scripted
from tests.workflows.small_world import ANSWERED, MALFORMED, QUESTION, quick_graph, well_behaved
from workflows import mara as mara_workflow
from workflows.answering import ask
from workflows.streaming import (
    Answered,
    Event,
    Token,
    aask_stream,
    aask_with_pauses,
    ask_stream,
    event_json,
)

pytestmark = pytest.mark.usefixtures("quick_retries")


def test_the_last_event_holds_what_ask_returns_and_all_can_be_written_as_json(settings: MakeContext) -> None:
    for mode in ("mara", "dense"):
        asked = ask(QUESTION, settings(mode=mode))
        events = list(ask_stream(QUESTION, settings(mode=mode)))
        streamed = result_in(events)
        assert list(streamed) == list(asked), mode
        assert streamed["timings_ms"].keys() == asked["timings_ms"].keys()
        assert {**streamed, "timings_ms": {}} == {**asked, "timings_ms": {}}, mode
    written = [event_json(event) for event in events]
    assert written == json.loads(json.dumps(written))
    assert written[0] == {"kind": "node_started", "node": "encode_question", "attempt": 1}
    assert {event["kind"] for event in written} <= {"node_started", "progress", "token", "answered"}
    assert next(iter(written[-1])) == "kind"


def test_the_answer_comes_word_by_word_and_the_replies_of_other_agents_do_not(in_mara: Scripted) -> None:
    events = list(ask_stream(QUESTION, in_mara.settings()))
    tokens = [event.text for event in events if isinstance(event, Token)]
    assert tokens == ["It", " was", " founded", " in", " 1203", " [1]."]
    assert result_in(events)["answer"] == ANSWERED
    assert all(request.body["stream"] for request in in_mara.server.requests)


def test_attempts_are_counted_and_what_was_shown_of_a_malformed_answer_is_void(in_mara: Scripted) -> None:
    answers = ["In 1203.", "In 1203 [9].", ANSWERED]
    filters = [MALFORMED, MALFORMED, '{"facts": []}']
    in_mara.server.script({**well_behaved(), "fact filter": filters, "answerer": answers})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert [attempt for node, attempt in starts(events) if node == "filter_facts"] == [1, 2, 3]
    assert starts(events)[-3:] == [("write_answer", 1), ("write_answer", 2), ("write_answer", 3)]
    assert screens(events) == answers


def test_a_refusal_is_no_words_of_an_answer(in_mara: Scripted) -> None:
    refusals = ("NOT IN THE PASSAGES", "Not in the passages.", "**NOT IN THE PASSAGES**")
    for refusal, where in (*((each, {}) for each in refusals), (ANSWERED, {"source": "nowhere"})):
        in_mara.server.script({**well_behaved(), "answerer": [refusal]})
        events = list(ask_stream(QUESTION, in_mara.settings(where=where)))
        assert result_in(events)["refused"], refusal
        assert not [event for event in events if isinstance(event, Token)], refusal
    in_mara.server.script({**well_behaved(), "answerer": ["Not in 1204, but in 1203 [1]."]})
    assert screens(list(ask_stream(QUESTION, in_mara.settings()))) == ["Not in 1204, but in 1203 [1]."]


def test_a_stream_that_breaks_off_is_taken_up_anew_whether_or_not_nodes_tell_progress(
    in_mara: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = mara_workflow.build().compile()
    whole_stream = quick_graph.stream

    def without_custom(*args: Any, **how: Any) -> Iterator[Any]:
        return (chunk for chunk in whole_stream(*args, **how) if chunk[0] != "custom")

    monkeypatch.setattr(silent, "stream", without_custom)
    for graph in (quick_graph, silent):
        monkeypatch.setattr(mara_workflow, "graph", graph)
        broken = Reply("It was in the year 1203 or so [1].", fault=Fault.TRUNCATED)
        in_mara.server.script({**well_behaved(), "answerer": [broken, ANSWERED]})
        events = list(ask_stream(QUESTION, in_mara.settings()))
        assert starts(events)[-2:] == [("write_answer", 1), ("write_answer", 2)]
        assert len(screens(events)) == 2
        assert screens(events)[-1] == ANSWERED == result_in(events)["answer"]


def test_thinking_that_looked_like_the_answer_is_void(
    in_mara: Scripted,
) -> None:
    in_mara.server.script({**well_behaved(), "answerer": [f"Is it so? Yes. </think> {ANSWERED}"]})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert screens(events) == ["Is it so? Yes.", ANSWERED]
    assert starts(events)[-2:] == [("write_answer", 1), ("write_answer", 1)]


def test_a_question_that_cannot_be_asked_is_refused_at_once_and_a_missing_workspace_told(settings: MakeContext) -> None:
    for stream in (ask_stream, aask_stream):
        with pytest.raises(BadInput, match="empty"):
            stream(" ", settings())
    with pytest.raises(WorkspaceMissing):
        list(ask_stream(QUESTION, settings(workspace="/nowhere")))
    with pytest.raises(WorkspaceMissing):
        asyncio.run(every(settings(workspace="/nowhere")))


def test_errors_are_those_of_ask(in_mara: Scripted) -> None:
    for reply, error in ((Reply("no", status=401), ModelUnavailable), (Reply("no", status=500), TransportFault)):
        in_mara.server.script({**well_behaved(), "answerer": [reply]})
        stream = ask_stream(QUESTION, in_mara.settings())
        with pytest.raises(error):
            list(stream)
        assert list(stream) == [], reply


def test_a_pause_is_told_again_and_again_until_something_happens(settings: MakeContext) -> None:
    async def asked() -> list[Event | None]:
        return [event async for event in aask_with_pauses(QUESTION, settings(), (), 0.0001)]

    events = asyncio.run(asked())
    assert None in events
    assert isinstance(events[-1], Answered)


def test_a_stream_that_is_never_asked_for_anything_asks_for_nothing(in_mara: Scripted) -> None:
    ask_stream(QUESTION, in_mara.settings()).close()
    wait_for_the_end()
    assert in_mara.server.requests == []


def test_a_model_that_is_writing_is_broken_off_when_the_stream_is_left(in_mara: Scripted) -> None:
    dictation = Dictation()
    in_mara.server.script({**well_behaved(), "answerer": [Reply(pieces=dictation)]})
    stream = ask_stream(QUESTION, in_mara.settings())
    assert any(event == Token("It") for event in stream)
    stream.close()  # at once, although the model has fallen silent
    assert not dictation.hung_up.is_set()
    dictation.go_on.set()
    assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert len(in_mara.requests_of("answerer")) == 1


def test_work_between_two_requests_is_the_last_of_a_stream_that_was_left(in_mara: Scripted) -> None:
    class Slow:
        def __init__(self, then: Callable[[], object]) -> None:
            self.began, self.go_on = threading.Event(), threading.Event()
            self.calls: list[str] = []
            self._then = then

        def choose(self, question: str, *asked: Any) -> FactChoice:
            self.calls.append(question)
            self.began.set()
            self.go_on.wait(PATIENCE_S)
            self._then()
            return FactChoice(())

    def is_busy() -> None:
        raise TransportFault("The endpoint is busy")

    async def leave_while_it_works(slow: Slow) -> None:
        context = in_mara.settings(model="offline", weigh_relations=False).with_agents(fact_filter=slow)
        task = asyncio.create_task(every(context))
        await asyncio.to_thread(slow.began.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for then in (lambda: ask_text(model_on(in_mara.server), messages()), is_busy):
        in_mara.server.script(["Whatever."])
        slow = Slow(then)
        asyncio.run(leave_while_it_works(slow))
        slow.go_on.set()
        wait_for_the_end()
        assert slow.calls == [QUESTION]
        assert in_mara.server.requests == []


def test_closing_the_async_twin_stops_the_run_without_waiting(in_mara: Scripted) -> None:
    dictation = Dictation()
    in_mara.server.script({**well_behaved(), "answerer": [Reply(pieces=dictation)]})

    async def leave_early() -> None:
        async with aclosing(aask_stream(QUESTION, in_mara.settings())) as stream:
            async for event in stream:
                if isinstance(event, Token):
                    break

    asyncio.run(leave_early())
    assert not dictation.hung_up.is_set()
    dictation.go_on.set()
    assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert len(in_mara.requests_of("answerer")) == 1
