"""The budget of follow-up questions: model calls and seconds, within the budget of the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.chat.usage import budget_of_question
from workflows.runtime.resources import OFFLINE, chat_model_name
from workflows.settings.mara import Context
from workflows.settings.ragenta import RagentaContext
from workflows.states.records import NO_USAGE, usage_of

CALLS_A_PASSAGE = 2
"""The predictor's and the judge's."""

CALLS_AT_THE_END = 2
"""The final predictor's and the claim judge's."""


def now() -> float:
    """Return the seconds that the question was worked on: a state may be gone on from much later."""
    return budget_of_question().spent().seconds


def why_over(context: Context, began: float | None) -> str:
    """Return why no request may be made any more: the question's budget or the follow-ups' seconds; empty if one may.

    Args:
        context: the run's settings.
        began: when the follow-ups did, as `now` tells it; None before, and in a workflow without them.
    """
    asks_a_model = chat_model_name(context) != OFFLINE
    if asks_a_model and (fault := budget_of_question().fault()):
        return fault.message
    late = isinstance(context, RagentaContext) and began is not None and now() >= began + context.follow_ups.seconds
    return "The follow-ups' seconds are over" if late else ""


def calls_of(state: Mapping[str, Any]) -> int:
    """Return the calls of a chat model that a question has taken so far."""
    return usage_of(state.get("usage", NO_USAGE)).requests


def calls_left(calls_before: int | None, calls: int, context: RagentaContext) -> int | None:
    """Return what follow-ups may still take; None before they begin, and where no model is asked."""
    if calls_before is None or chat_model_name(context) == OFFLINE:
        return None
    left = max(0, context.follow_ups.calls - (calls - calls_before))
    of_the_question = budget_of_question().calls_left()
    return left if of_the_question is None else min(left, of_the_question)


def affordable_follow_ups(wanted: int, calls_left: int, calls_a_search: int, calls_a_passage: int) -> int:
    """Return how many questions can be searched so that each has one passage judged and the answer is completed.

    Args:
        wanted: how many there are.
        calls_left: what may still be taken, at least 0.
        calls_a_search: what retrieval takes for one.
        calls_a_passage: what judging one passage takes; 0 where none is judged.
    """
    each = calls_a_search + calls_a_passage
    left = calls_left - CALLS_AT_THE_END
    if left < 0:
        return 0
    return wanted if not each else min(wanted, left // each)


def affordable_passages(wanted: int, calls_left: int) -> int:
    """Return how many passages can be judged so that the answer is completed."""
    return max(0, min(wanted, (calls_left - CALLS_AT_THE_END) // CALLS_A_PASSAGE))


def calls_for_each(passages: int, calls_left: int) -> int:
    """Return what judging one of so many passages may take, its retries included."""
    return (calls_left - CALLS_AT_THE_END) // passages
