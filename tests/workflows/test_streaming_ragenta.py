"""Workflow ragenta event by event: passages are judged side by side, an answer is written, checked and completed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.dictation import result_in, screens, starts
from tests.workflows.ragenta_world import (
    MARN_ANSWERED,
    ONE_THING,
    TWO_THINGS,
    quick_ragenta,
)
from tests.workflows.scripted import Scripted
from workflows import ragenta as ragenta_workflow
from workflows.streaming import Event, NodeStarted, Progress, Token, ask_stream

BEFORE_THE_ANSWER = ["encode_question", "retrieve_passages", "line_up_passages", "keep_passages", "write_answer"]
AFTER_IT = ["check_claims", "plan_follow_ups"]


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragenta_workflow, "graph", quick_ragenta)


def told(events: list[Event], event: str = "finished") -> Counter[str]:
    """How often each node told an event of its work."""
    return Counter(each.node for each in events if isinstance(each, Progress) and each.event == event)


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
