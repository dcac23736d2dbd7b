"""Workflow ragenta event by event: passages are judged side by side, an answer is written, checked and completed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from graph.errors import BadInput, ModelUnavailable
from tests.dictation import every, result_in, screens, starts
from tests.scripted_server import Fault, Reply
from tests.workflows.ragenta_world import (
    FOLLOW_UP,
    MARN_ANSWERED,
    ONE_THING,
    TWO_THINGS,
    MakeContext,
    judges,
    malformed_once,
    quick_ragenta,
    well_behaved,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import shown_to_model
from tests.workflows.traced import without_timings
from workflows import ragenta as ragenta_workflow
from workflows.answering import ask
from workflows.streaming import Event, NodeStarted, Progress, Token, ask_stream, event_json

BEFORE_THE_ANSWER = ["encode_question", "retrieve_passages", "line_up_passages", "keep_passages", "write_answer"]
AFTER_IT = ["check_claims", "plan_follow_ups"]


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragenta_workflow, "graph", quick_ragenta)


def told(events: list[Event], event: str = "finished") -> Counter[str]:
    """How often each node told an event of its work."""
    return Counter(each.node for each in events if isinstance(each, Progress) and each.event == event)


def test_each_node_starts_once_and_each_passage_is_told_as_progress(in_ragenta: Scripted) -> None:
    events = list(ask_stream(ONE_THING, in_ragenta.settings(top_k=5)))
    assert starts(events) == [(node, 1) for node in [*BEFORE_THE_ANSWER, *AFTER_IT]]
    assert told(events, "started") == Counter(predict_answer=5, score_passage=5, judge_claims=1, settle_claims=1)
    judged = Counter(predict_answer=5, score_passage=5, judge_claims=1, settle_claims=1)
    outside = Counter([*BEFORE_THE_ANSWER, "plan_follow_ups"])
    assert told(events) == judged + outside


def test_only_the_answers_words_are_tokens(in_ragenta: Scripted) -> None:
    """Predictors, judges and the claim judge write, too."""
    events = list(ask_stream(ONE_THING, in_ragenta.settings()))
    written = events.index(NodeStarted("write_answer", 1))
    checked = events.index(NodeStarted("check_claims", 1))
    tokens = [event.text for event in events[written:checked] if isinstance(event, Token)]
    assert tokens == ["Marn", " was", " founded", " in", " 1203", " [1]."]
    assert not [event for event in events[:written] if isinstance(event, Token)]
    assert screens(events) == [MARN_ANSWERED, result_in(events)["answer"]]


def test_an_answer_that_is_completed_is_written_a_second_time(in_ragenta: Scripted) -> None:
    events = list(ask_stream(TWO_THINGS, in_ragenta.settings()))
    second = ["merge_passages", "keep_passages", "write_answer", *AFTER_IT]
    attempts = {"merge_passages": 1}
    assert starts(events) == [
        *((node, 1) for node in [*BEFORE_THE_ANSWER, *AFTER_IT]),
        *((node, attempts.get(node, 2)) for node in second),
    ]
    assert told(events)["search_follow_up"] == 1
    draft, whole, last = screens(events)
    assert whole.startswith(draft)
    assert whole == last == result_in(events)["answer"]


def test_what_stands_on_the_screen_and_the_result_are_those_of_ask(in_ragenta: Scripted) -> None:
    for settings, question in (({}, TWO_THINGS), ({"check_claims": False}, ONE_THING)):
        in_ragenta.server.script(well_behaved())
        events = list(ask_stream(question, in_ragenta.settings(**settings)))
        asked = ask(question, in_ragenta.settings(**settings))
        assert list(result_in(events)) == list(asked), settings
        assert without_timings(result_in(events)) == without_timings(asked), settings
        assert screens(events)[-1] == asked["answer"], settings


def test_offline_the_answer_comes_as_one_token(ragenta_settings: MakeContext) -> None:
    for question in (ONE_THING, "Who sank the ferry of Orsund?"):
        events = list(ask_stream(question, ragenta_settings(model="offline")))
        result = result_in(events)
        assert screens(events) == [result["answer"]] * (not result["refused"]), question
        kinds = {event_json(event)["kind"] for event in events} - {"token"}
        assert kinds == {"node_started", "progress", "answered"}, question


def test_a_judge_that_is_asked_again_starts_no_node_again(in_ragenta: Scripted) -> None:
    in_ragenta.server.script(well_behaved(judge=malformed_once(judges, "Perhaps.")))
    events = list(ask_stream(ONE_THING, in_ragenta.settings()))
    assert starts(events) == [(node, 1) for node in [*BEFORE_THE_ANSWER, *AFTER_IT]]
    assert (told(events, "malformed")["score_passage"], told(events)["score_passage"]) == (2, 2)


def test_nor_one_whose_endpoint_fails_for_a_moment(in_ragenta: Scripted) -> None:
    failed: list[str] = []

    def busy_at_first(body: Mapping[str, Any]) -> Reply:
        title = shown_to_model(body)["title"]
        if title in failed:
            return judges(body)
        failed.append(title)
        return Reply("busy", status=503)

    in_ragenta.server.script(well_behaved(judge=busy_at_first))
    events = list(ask_stream(ONE_THING, in_ragenta.settings()))
    assert starts(events) == [(node, 1) for node in [*BEFORE_THE_ANSWER, *AFTER_IT]]
    assert told(events, "started")["score_passage"] == 4
    assert screens(events)[-1] == MARN_ANSWERED


def test_a_second_answer_that_breaks_off_is_taken_up_anew(in_ragenta: Scripted) -> None:
    scripts = well_behaved()
    broken = Reply("The Tarn Dam was built by Ada Brandt [1]. Ada Brandt was born [3].", fault=Fault.TRUNCATED)
    replies = iter([None, broken])
    whole = scripts["final predictor"]
    assert callable(whole)
    scripts["final predictor"] = lambda body: next(replies, None) or whole(body)
    in_ragenta.server.script(scripts)
    events = list(ask_stream(TWO_THINGS, in_ragenta.settings()))
    assert [attempt for node, attempt in starts(events) if node == "write_answer"] == [1, 2, 3]
    assert screens(events)[-1] == result_in(events)["answer"]
    assert "Lisk" in screens(events)[-1]


def test_the_search_for_a_follow_up_is_progress_and_says_what_it_does(in_ragenta: Scripted) -> None:
    events = list(ask_stream(TWO_THINGS, in_ragenta.settings(mode="mara")))
    assert result_in(events)["follow_ups"][0]["question"] == FOLLOW_UP
    assert [attempt for node, attempt in starts(events) if node == "walk_graph"] == [1]
    assert told(events)["walk_graph"] == told(events)["filter_facts"] == 2


def test_errors_are_those_of_ask(in_ragenta: Scripted) -> None:
    in_ragenta.server.script(well_behaved(judge=[Reply("no", status=401)]))
    with pytest.raises(ModelUnavailable):
        list(ask_stream(ONE_THING, in_ragenta.settings()))
    with pytest.raises(BadInput, match="empty"):
        ask_stream(" ", in_ragenta.settings())


def test_the_async_twin_tells_the_same(in_ragenta: Scripted) -> None:
    events = asyncio.run(every(in_ragenta.settings(), TWO_THINGS))
    twin = list(ask_stream(TWO_THINGS, in_ragenta.settings()))
    assert (starts(events), screens(events), told(events)) == (starts(twin), screens(twin), told(twin))
