"""Questions that lean on others in the small world, and rewriters that read them as a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.rewriter import Rewriting
from agents.roles import Feedback, Turn
from tests.scripted_server import Script
from tests.workflows import small_world
from workflows.context import Context
from workflows.conversation.session import Conversation
from workflows.results import Result
from workflows.streaming import Answered, Event

FOUNDER = "And who founded it?"
FOUNDER_OF_MARN = "Who founded Marn?"
BIRTH = "Where was he born?"
BIRTHS = ("Where was Duke Orlo born?", "Where was Ada Brandt born?")

READINGS = {
    FOUNDER: {"stands_alone": False, "question": FOUNDER_OF_MARN, "choices": []},
    BIRTH: {"stands_alone": False, "question": BIRTH, "choices": list(BIRTHS)},
}


def rewrites(body: Mapping[str, Any]) -> str:
    """Reply as a rewriter that knows two questions; any other stands alone."""
    said = str(body["messages"][1]["content"])
    alone = {"stands_alone": True, "question": "", "choices": []}
    return json.dumps(next((reading for asked, reading in READINGS.items() if asked in said), alone))


def well_behaved(**changed: Script) -> dict[str, Script]:
    """Return scripts of all roles of a conversation that never go wrong, but for those that are given."""
    return {**small_world.well_behaved(), "rewriter": rewrites, **changed}


class ScriptedRewriter:
    """Reads questions as it was told, any other as it is.

    Attributes:
        heard: the questions that it was asked, each with the turns before it.
    """

    def __init__(self, readings: dict[str, Rewriting]) -> None:
        self.heard: list[tuple[str, list[Turn]]] = []
        self._readings = readings

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        self.heard.append((question, list(turns)))
        return self._readings.get(question, Rewriting(question))


def scripted_rewriter() -> ScriptedRewriter:
    """Return a rewriter of the small world: it completes one question, and asks back at another."""
    return ScriptedRewriter({FOUNDER: Rewriting(FOUNDER_OF_MARN), BIRTH: Rewriting(BIRTH, choices=BIRTHS)})


def conversation_of(context: Context) -> tuple[Conversation, ScriptedRewriter]:
    """Return a conversation whose questions are read by a scripted rewriter."""
    rewriter = scripted_rewriter()
    return Conversation(context.with_agents(rewriter=rewriter)), rewriter


def said(events: Sequence[Event] | object) -> Result:
    """Return the result that events end with."""
    *_, last = events  # type: ignore[misc]
    assert isinstance(last, Answered)
    return last.result
