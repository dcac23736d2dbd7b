"""Questions to a person in the midst of a run: interrupts in the shape that chat interfaces draw as a form.

The shape is that of LangChain's human-in-the-loop middleware: actions to review and the decisions that are allowed,
answered by ``{"decisions": [{"type": "approve"}]}`` and the like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

DecisionType = Literal["approve", "edit", "reject", "respond"]


def review_of(action: str, args: dict[str, Any], description: str, *allowed: DecisionType) -> dict[str, Any]:
    """Return the request for one decision, the value of an interrupt: the action, and the decisions allowed on it."""
    return {
        "action_requests": [{"name": action, "args": args, "description": description}],
        "review_configs": [{"action_name": action, "allowed_decisions": list(allowed)}],
    }


def decision_in(reply: object) -> Mapping[str, Any]:
    """Return the decision that a reply to an interrupt holds; an empty one where it holds none, or several."""
    decisions = reply.get("decisions") if isinstance(reply, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        return {}
    return decisions[0]


def can_wait() -> bool:
    """Tell whether the run that is under way can be resumed once a person has decided: a checkpointer keeps it."""
    return bool((get_config().get("configurable") or {}).get(CONFIG_KEY_CHECKPOINTER))
