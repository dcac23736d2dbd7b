"""The user's choice between several readings of their question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph.types import interrupt

from agents.clarification import chosen_reading
from workflows.runtime.human_review import decision_in, review_of
from workflows.settings.mara import QUESTION_LIMIT

CHOOSE = "choose_question"
"""The action that a question of several readings asks for."""


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
    args = edited.get("args") if isinstance(edited, Mapping) else None
    said = args.get("question") if isinstance(args, Mapping) else decision.get("message")
    return str(said) if isinstance(said, str | int) else ""
