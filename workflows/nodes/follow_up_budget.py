"""The budget of follow-up questions: so many model calls, within the budget of the question."""

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


def why_over(context: Context) -> str:
    """Return why the question's budget lets no request be made any more; empty where it lets one."""
    fault = None if chat_model_name(context) == OFFLINE else budget_of_question().fault()
    return fault.message if fault else ""


def calls_of(state: Mapping[str, Any]) -> int:
    """Return the calls of a chat model that a question has taken so far."""
    return usage_of(state.get("usage", NO_USAGE)).requests


def calls_left(state: Mapping[str, Any], context: RagentaContext) -> int | None:
    """Return what follow-ups may still take; None where no model is asked."""
    if chat_model_name(context) == OFFLINE:
        return None
    calls = calls_of(state)
    before = state.get("calls_before")
    left = max(0, context.follow_ups.calls - (calls - (calls if before is None else before)))
    of_the_question = budget_of_question().calls_left()
    return left if of_the_question is None else min(left, of_the_question)


def affordable(wanted: int, left: int | None, each: int) -> int:
    """Return how many questions can be searched, or passages judged, so that the answer can still be completed.

    Args:
        wanted: how many there are.
        left: the calls that may still be taken, at least 0; None for any number.
        each: what one of them takes without retries; may be 0.
    """
    if left is None:
        return wanted
    left -= CALLS_AT_THE_END
    if left < 0:
        return 0
    return min(wanted, left // each) if each else wanted
