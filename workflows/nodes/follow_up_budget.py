"""What follow-up questions may take: model calls, and seconds; plain arithmetic over the state's figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from workflows.runtime.resources import OFFLINE, chat_model_name
from workflows.settings.mara import Context
from workflows.settings.ragenta import RagentaContext
from workflows.states.shared import NO_USAGE, usage_of

CALLS_A_PASSAGE = 2
"""The predictor's and the judge's."""

CALLS_AT_THE_END = 2
"""The final predictor's and the claim judge's."""


def now() -> float:
    """Return seconds since the epoch: a state may be gone on from in another process."""
    return time.time()


def follow_ups_are_over(context: Context, began: float | None) -> bool:
    """Tell whether the time of a run's follow-ups is over; never before they begin, nor in a workflow without them.

    Args:
        context: the run's settings.
        began: when they did, as `now` tells it; None before.
    """
    return isinstance(context, RagentaContext) and began is not None and now() >= began + context.follow_up_seconds


def calls_of(state: Mapping[str, Any]) -> int:
    """Return the calls of a chat model that a question has taken so far."""
    return usage_of(state.get("usage", NO_USAGE)).requests


def calls_left(calls_before: int | None, calls: int, context: RagentaContext) -> int | None:
    """Return what follow-ups may still take; None before they begin, and where no model is asked."""
    if calls_before is None or chat_model_name(context) == OFFLINE:
        return None
    return max(0, context.follow_up_calls - (calls - calls_before))


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
