"""Questions to a person in the midst of a run: interrupts in the shape that chat interfaces draw as a form.

The shape is that of LangChain's human-in-the-loop middleware: actions to review and the decisions that are allowed,
answered by ``{"decisions": [{"type": "approve"}]}`` and the like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langgraph.types import interrupt
from typing_extensions import TypedDict

from workflows.conversation.reading import chosen_reading
from workflows.settings.mara import QUESTION_LIMIT

CHOOSE = "choose_question"
"""The action that a question of several readings asks for."""

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


def reading_from_user(choices: Sequence[str]) -> str:
    """Interrupt until the user has chosen a reading, by decision, number or words, or has put it in their own words."""
    listed = "\n".join(f"{number}. {choice}" for number, choice in enumerate(choices, start=1))
    description = f"What do you mean?\n{listed}\nApprove the first, or edit it: a number, or your own words."
    refused = ""
    while True:
        reply = interrupt(
            review_of(CHOOSE, {"question": choices[0]}, refused + description, "approve", "edit", "respond")
        )
        words = _words_of(reply, choices)
        if words.strip() and len(words) <= QUESTION_LIMIT:
            return chosen_reading(words, choices) or words
        refused = "That reply cannot be read. "


def _words_of(reply: object, choices: Sequence[str]) -> str:
    """Return the words of a reply; none where it has none."""
    if isinstance(reply, str | int) and not isinstance(reply, bool):
        return str(reply)
    decision = decision_in(reply)
    if decision.get("type") == "approve":
        return choices[0]
    edited = decision.get("edited_action")
    said = edited.get("args", {}).get("question") if isinstance(edited, Mapping) else decision.get("message")
    return str(said) if isinstance(said, str | int) else ""
