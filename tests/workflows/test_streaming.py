"""Asking event by event: the same result as in one piece, the answer as it is written, and work that stops."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import pytest

from agents.fact_filter import FactChoice
from graph.errors import BadInput, ModelUnavailable, TransportFault, WorkspaceMissing
from tests.dictation import PATIENCE_S, every, result_in, screens, starts
from tests.scripted_server import Fault, Reply
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import ANSWERED, MALFORMED, QUESTION, quick_graph, well_behaved
from workflows import mara as mara_workflow
from workflows.answering import ask
from workflows.context import Context
from workflows.streaming import Answered, Event, Progress, Token, aask_stream, aask_with_pauses, ask_stream, event_json

MakeContext = Callable[..., Context]

pytestmark = pytest.mark.usefixtures("quick_retries")


def test_the_events_of_a_run_offline(settings: MakeContext) -> None:
    events = list(ask_stream(QUESTION, settings()))
    assert starts(events)[0] == ("encode_question", 1)
    assert set(starts(events)[1:3]) == {("retrieve_facts", 1), ("retrieve_passages", 1)}
    assert [node for node, _ in starts(events)[-3:]] == ["seed_graph", "walk_graph", "write_answer"]
    result = result_in(events)
    assert [event.text for event in events if isinstance(event, Token)] == [result["answer"]]


def test_the_last_event_holds_what_ask_returns(settings: MakeContext) -> None:
    for mode in ("mara", "dense"):
        asked = ask(QUESTION, settings(mode=mode))
        streamed = result_in(list(ask_stream(QUESTION, settings(mode=mode))))
        assert list(streamed) == list(asked), mode
        assert streamed["timings_ms"].keys() == asked["timings_ms"].keys(), mode
        assert {**streamed, "timings_ms": {}} == {**asked, "timings_ms": {}}, mode


def test_events_can_be_written_as_json(settings: MakeContext) -> None:
    events = [event_json(event) for event in ask_stream(QUESTION, settings())]
    assert events == json.loads(json.dumps(events))
    assert events[0] == {"kind": "node_started", "node": "encode_question", "attempt": 1}
    assert {event["kind"] for event in events} <= {"node_started", "progress", "token", "answered"}
    assert next(iter(events[-1])) == "kind"


def test_the_answer_comes_word_by_word_and_the_replies_of_other_agents_do_not(in_mara: Scripted) -> None:
    events = list(ask_stream(QUESTION, in_mara.settings()))
    tokens = [event.text for event in events if isinstance(event, Token)]
    assert tokens == ["It", " was", " founded", " in", " 1203", " [1]."]
    assert result_in(events)["answer"] == ANSWERED
    assert all(request.body["stream"] for request in in_mara.server.requests)


def test_what_was_shown_of_a_malformed_answer_is_void_when_it_is_asked_for_again(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "answerer": ["In 1203.", "In 1203 [9].", ANSWERED]})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert starts(events)[-3:] == [("write_answer", 1), ("write_answer", 2), ("write_answer", 3)]
    assert screens(events) == ["In 1203.", "In 1203 [9].", ANSWERED]


def test_words_that_were_shown_stay_where_only_a_citation_that_leads_nowhere_is_dropped(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "answerer": [Reply("In 1203 [1, 9]. Or [1", finish_reason="length")]})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert screens(events) == ["In 1203 [1, 9]. Or [1"]
    assert result_in(events)["answer"] == "In 1203 [1]. Or"


def test_a_refusal_is_no_words_of_an_answer(in_mara: Scripted) -> None:
    for refusal in ("NOT IN THE PASSAGES", "Not in the passages.", "**NOT IN THE PASSAGES**"):
        in_mara.server.script({**well_behaved(), "answerer": [refusal]})
        events = list(ask_stream(QUESTION, in_mara.settings()))
        assert result_in(events)["refused"], refusal
        assert not [event for event in events if isinstance(event, Token)], refusal
        in_mara.server.script({**well_behaved(), "answerer": ["Not in 1204, but in 1203 [1]."]})
        assert screens(list(ask_stream(QUESTION, in_mara.settings()))) == ["Not in 1204, but in 1203 [1]."], refusal


def test_retries_of_the_filter_are_counted(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "fact filter": [MALFORMED, MALFORMED, '{"facts": []}']})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert [attempt for node, attempt in starts(events) if node == "filter_facts"] == [1, 2, 3]
    assert screens(events) == [ANSWERED]


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


def test_thinking_that_looked_like_the_answer_is_void(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "answerer": [f"Is it so? Yes. </think> {ANSWERED}"]})
    events = list(ask_stream(QUESTION, in_mara.settings()))
    assert screens(events) == ["Is it so? Yes.", ANSWERED]
    assert starts(events)[-2:] == [("write_answer", 1), ("write_answer", 1)]


def test_a_server_that_swallowed_the_tag_before_is_believed_only_after_it(in_mara: Scripted) -> None:
    in_mara.server.script(
        {
            **well_behaved(),
            "fact filter": ['None fits.</think>{"facts": []}'],
            "answerer": [f"Is it so? Yes.</think> {ANSWERED}"],
        }
    )
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


def test_a_question_that_cannot_be_asked_is_refused_at_once(settings: MakeContext) -> None:
    for stream in (ask_stream, aask_stream):
        with pytest.raises(BadInput, match="empty"):
            stream(" ", settings())


def test_errors_are_those_of_ask(in_mara: Scripted) -> None:
    for reply, error in ((Reply("no", status=401), ModelUnavailable), (Reply("no", status=500), TransportFault)):
        in_mara.server.script({**well_behaved(), "answerer": [reply]})
        stream = ask_stream(QUESTION, in_mara.settings())
        with pytest.raises(error):
            list(stream)
        assert list(stream) == [], reply


def test_a_missing_workspace_is_told(settings: MakeContext) -> None:
    with pytest.raises(WorkspaceMissing):
        list(ask_stream(QUESTION, settings(workspace="/nowhere")))
    with pytest.raises(WorkspaceMissing):
        asyncio.run(every(settings(workspace="/nowhere")))


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


def test_a_filter_that_selects_nothing_gives_a_refusal_without_words(settings: MakeContext) -> None:
    events = list(ask_stream(QUESTION, settings(where={"source": "nowhere"})))
    assert not [event for event in events if isinstance(event, Token)]
    assert result_in(events)["refused"]
