"""Asking event by event: the answer as it is written, the result of ``ask``, and no work for a stream that was left."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path
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
    NodeStarted,
    Progress,
    Token,
    aask_stream,
    aask_with_pauses,
    ask_stream,
    event_json,
)

pytestmark = pytest.mark.usefixtures("quick_retries")


def test_the_events_of_a_run_offline(settings: MakeContext) -> None:
    events = list(ask_stream(QUESTION, settings()))
    assert starts(events)[0] == ("encode_question", 1)
    assert set(starts(events)[1:3]) == {("retrieve_facts", 1), ("retrieve_passages", 1)}
    assert [node for node, _ in starts(events)[-3:]] == ["seed_graph", "walk_graph", "write_answer"]
    result = result_in(events)
    assert [event.text for event in events if isinstance(event, Token)] == [result["answer"]]


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


def test_words_that_were_shown_stay_where_only_a_citation_that_leads_nowhere_is_dropped(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "answerer": [Reply("In 1203 [1, 9]. Or [1", finish_reason="length")]})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert screens(events) == ["In 1203 [1, 9]. Or [1"]
    assert result_in(events)["answer"] == "In 1203 [1]. Or"


def test_a_refusal_is_no_words_of_an_answer(in_mara: Scripted) -> None:
    refusals = ("NOT IN THE PASSAGES", "Not in the passages.", "**NOT IN THE PASSAGES**")
    for refusal, where in (*((each, {}) for each in refusals), (ANSWERED, {"source": "nowhere"})):
        in_mara.server.script({**well_behaved(), "answerer": [refusal]})
        events = list(ask_stream(QUESTION, in_mara.settings(where=where)))
        assert result_in(events)["refused"], refusal
        assert not [event for event in events if isinstance(event, Token)], refusal
    in_mara.server.script({**well_behaved(), "answerer": ["Not in 1204, but in 1203 [1]."]})
    assert screens(list(ask_stream(QUESTION, in_mara.settings()))) == ["Not in 1204, but in 1203 [1]."]


def test_the_fallback_of_the_answerer_comes_as_one_token(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "answerer": ["Nothing is cited."]})
    events = list(ask_stream(QUESTION, in_mara.settings(max_json_retries=1)))
    assert starts(events)[-1] == ("quote_passages", 1)
    assert screens(events) == [*["Nothing is cited."] * 2, result_in(events)["answer"]]
    assert isinstance(events[-2], Token)


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


def test_what_a_model_thinks_is_not_shown(in_mara: Scripted) -> None:
    for piece in (1, 4, 1000):
        text = f"<think>Is it [1]? I think so.</think>\n\n{ANSWERED}"
        pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
        in_mara.server.script({**well_behaved(), "answerer": [Reply(text, pieces=pieces)]})
        assert screens(list(ask_stream(QUESTION, in_mara.settings()))) == [ANSWERED], piece


def test_thinking_that_looked_like_the_answer_is_void_unless_the_server_swallowed_the_tag_before(
    in_mara: Scripted,
) -> None:
    in_mara.server.script({**well_behaved(), "answerer": [f"Is it so? Yes. </think> {ANSWERED}"]})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert screens(events) == ["Is it so? Yes.", ANSWERED]
    assert starts(events)[-2:] == [("write_answer", 1), ("write_answer", 1)]
    fact_filter, answerer = 'None fits.</think>{"facts": []}', f"Is it so? Yes.</think> {ANSWERED}"
    in_mara.server.script({**well_behaved(), "fact filter": [fact_filter], "answerer": [answerer]})
    assert screens(list(ask_stream(QUESTION, in_mara.settings()))) == [ANSWERED]


def test_progress_of_nodes_and_of_anyone_else_is_passed_on(settings: MakeContext) -> None:
    from langgraph.config import get_stream_writer

    class Talkative:
        def choose(self, *asked: Any) -> FactChoice:
            get_stream_writer()({"node": "filter_facts", "event": "chosen", "kept": 0})
            get_stream_writer()("anything")
            return FactChoice(())

    events = list(ask_stream(QUESTION, settings().with_agents(fact_filter=Talkative())))
    assert Progress("filter_facts", "chosen", {"kept": 0}) in events
    assert Progress("", "custom", {"value": "anything"}) in events


def test_a_run_sees_the_context_variables_of_its_caller(settings: MakeContext) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    seen: list[str] = []

    class Recorder:
        def choose(self, *asked: Any) -> FactChoice:
            seen.append(tenant.get())
            return FactChoice(())

    token = tenant.set("orlo")
    list(ask_stream(QUESTION, settings().with_agents(fact_filter=Recorder())))
    tenant.reset(token)
    assert seen == ["orlo"]


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


def test_the_async_twin_tells_the_same(in_mara: Scripted) -> None:
    events = asyncio.run(every(in_mara.settings()))
    assert screens(events) == [ANSWERED]
    assert sorted(starts(events)) == sorted(starts(list(ask_stream(QUESTION, in_mara.settings()))))
    assert list(result_in(events)) == list(ask(QUESTION, in_mara.settings()))


def test_a_pause_is_told_again_and_again_until_something_happens(settings: MakeContext) -> None:
    async def asked() -> list[Event | None]:
        return [event async for event in aask_with_pauses(QUESTION, settings(), (), 0.0001)]

    events = asyncio.run(asked())
    assert None in events
    assert isinstance(events[-1], Answered)


def test_the_event_loop_goes_on_while_a_model_is_waited_for(in_mara: Scripted) -> None:
    async def talk() -> tuple[str, list[str]]:
        loop, asked, answer = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def reply_when_told(body: Mapping[str, Any]) -> str:
            loop.call_soon_threadsafe(asked.set)
            return ANSWERED if answer.wait(PATIENCE_S) else "The event loop stood still [1]."

        in_mara.server.script({**well_behaved(), "answerer": reply_when_told})
        waiting = asyncio.create_task(every(in_mara.settings()))
        await asked.wait()
        other = screens(await every(in_mara.settings(model="offline")))
        assert not waiting.done()
        answer.set()
        return screens(await waiting)[-1], other

    answer, other = asyncio.run(talk())
    assert answer == ANSWERED
    assert len(other) == 1


def test_an_answer_is_not_taken_for_another_runs(in_mara: Scripted) -> None:

    async def both() -> tuple[list[Event], list[Event]]:
        return await asyncio.gather(
            every(in_mara.settings(), QUESTION), every(in_mara.settings(), "Where was Ada Brandt born?")
        )

    first, second = asyncio.run(both())
    assert screens(first) == screens(second) == [ANSWERED]
    assert (result_in(first)["question"], result_in(second)["question"]) == (QUESTION, "Where was Ada Brandt born?")


LEFT = """
import sys
from workflows.context import Context
from workflows.streaming import ask_stream

events = ask_stream({question!r}, Context(workspace={workspace!r}))
for event in events:
    if event.kind == {kind!r}:
        print("left")
        sys.exit(0) if {leave!r} == "exit" else 1 / 0
"""


def test_a_stream_that_is_left_starts_no_further_node(in_mara: Scripted) -> None:
    dictation = Dictation()
    in_mara.server.script({**well_behaved(), "fact filter": [Reply(pieces=dictation)]})
    stream = ask_stream(QUESTION, in_mara.settings())
    assert any(event == NodeStarted("filter_facts", 1) for event in stream)
    stream.close()
    dictation.go_on.set()
    wait_for_the_end()
    assert {request.role for request in in_mara.server.requests} <= {"fact filter", "manager"}


def test_a_run_goes_on_while_its_events_are_not_asked_for(in_mara: Scripted) -> None:
    answered = threading.Event()

    def reply(body: Mapping[str, Any]) -> str:
        answered.set()
        return ANSWERED

    in_mara.server.script({**well_behaved(), "answerer": reply})
    stream = ask_stream(QUESTION, in_mara.settings())
    events = [next(stream)]
    assert answered.wait(PATIENCE_S)
    assert screens([*events, *stream]) == [ANSWERED]


@pytest.mark.slow
def test_a_process_ends_although_a_stream_of_it_was_left_half_way(small_workspace: Path) -> None:
    for leave in ("exit", "error"):
        for kind in ("node_started", "token"):
            program = LEFT.format(question=QUESTION, workspace=str(small_workspace), kind=kind, leave=leave)
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
            )
            assert done.stdout == "left\n", leave
            assert done.returncode == (0 if leave == "exit" else 1)
            assert ("ZeroDivisionError" in done.stderr) == (leave == "error")
            assert done.stderr.count("Traceback") == (leave == "error")


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


def test_agents_that_write_side_by_side_are_both_broken_off(in_mara: Scripted) -> None:
    dictations = {"fact filter": Dictation(), "manager": Dictation()}
    in_mara.server.script({role: [Reply(pieces=dictation)] for role, dictation in dictations.items()})

    async def leave_when_both_write() -> None:
        task = asyncio.create_task(every(in_mara.settings()))
        for dictation in dictations.values():
            await asyncio.to_thread(dictation.began.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave_when_both_write())
    for dictation in dictations.values():
        dictation.go_on.set()
    for dictation in dictations.values():
        assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert sorted(request.role for request in in_mara.server.requests) == ["fact filter", "manager"]


def test_a_request_that_hangs_is_not_made_again_after_the_stream_was_left(in_mara: Scripted) -> None:
    asked = threading.Event()

    def hang(body: Mapping[str, Any]) -> Reply:
        asked.set()
        return Reply(fault=Fault.HANG)

    in_mara.server.script({**well_behaved(), "answerer": hang})

    async def leave_while_it_hangs() -> None:
        task = asyncio.create_task(every(in_mara.settings()))
        await asyncio.to_thread(asked.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave_while_it_hangs())
    assert not in_mara.server.released.is_set()
    in_mara.server.released.set()
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
