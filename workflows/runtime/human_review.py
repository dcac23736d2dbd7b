"""Questions to a person in the midst of a run: interrupts in the shape that chat interfaces draw as a form.

The shape is that of LangChain's human-in-the-loop middleware: actions to review and the decisions that are allowed,
answered by ``{"decisions": [{"type": "approve"}]}`` and the like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from typing_extensions import TypedDict

DecisionType = Literal["approve", "edit", "reject", "respond"]


class ActionRequest(TypedDict):
    """What is to be decided, in words and as arguments."""

    name: str
    args: dict[str, Any]
    description: str


class ReviewConfig(TypedDict):
    """The decisions that are allowed on an action."""

    action_name: str
    allowed_decisions: list[DecisionType]


class ReviewRequest(TypedDict):
    """The value of an interrupt."""

    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]


def review_of(action: str, args: dict[str, Any], description: str, *allowed: DecisionType) -> ReviewRequest:
    """Return the request for one decision."""
    return ReviewRequest(
        action_requests=[ActionRequest(name=action, args=args, description=description)],
        review_configs=[ReviewConfig(action_name=action, allowed_decisions=list(allowed))],
    )


def decision_in(reply: object) -> Mapping[str, Any]:
    """Return the decision that a reply to an interrupt holds; an empty one where it holds none, or several."""
    decisions = reply.get("decisions") if isinstance(reply, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        return {}
    return decisions[0]


def can_wait() -> bool:
    """Tell whether the run that is under way can be resumed once a person has decided: a checkpointer keeps it."""
    return bool((get_config().get("configurable") or {}).get(CONFIG_KEY_CHECKPOINTER))
