"""The question and the settings of a run, for callers in Python: a workflow's form, filled in and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agents.roles import Turn
from graph.errors import BadInput
from workflows.settings.enums import Workflow
from workflows.settings.mara import QUESTION_LIMIT as QUESTION_LIMIT
from workflows.settings.mara import TURNS_LIMIT
from workflows.settings.mara import Context as Context
from workflows.settings.mara import Question as Question
from workflows.settings.problems import filled_in
from workflows.settings.ragenta import RagentaContext
from workflows.settings.walk import Walk as Walk

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMS: Mapping[str, type[Context]] = {Workflow.MARA: Context, Workflow.RAGENTA: RagentaContext}


def make_context(workflow: str = Workflow.MARA, **settings: Any) -> Context:
    """Return a workflow's context from settings that a person gave; None means not given.

    Raises:
        BadInput: the workflow or a setting is unknown, or out of its range, named in the message.
    """
    return context_of_settings(workflow, settings)


def context_of_settings(workflow: str, settings: Mapping[str, Any], spelled: Callable[[str], str] = str) -> Context:
    """Return a workflow's context as `make_context` does; errors name a setting as ``spelled`` writes its name."""
    if workflow not in _FORMS:
        raise BadInput(f"{workflow!r} is no workflow", f"Take one of {', '.join(Workflow)}")
    form = _FORMS[workflow]
    return filled_in(form, settings, spelled)


def asking(question: str, turns: Sequence[Turn] = ()) -> Any:
    """Return a workflow's input for a question and the last turns; plain, so that a trace shows it as it is.

    Raises BadInput for the question.
    """
    checked = {"question": check_question(question)}
    return {**checked, "turns": [asdict(turn) for turn in turns[-TURNS_LIMIT:]]} if turns else checked


def check_question(question: str) -> str:
    """Return the question. Raises BadInput when it is empty, longer than 10,000 characters, or no Unicode text."""
    if not isinstance(question, str):
        raise BadInput(f"The question is {type(question).__name__}, no text", "Ask in words")
    if not question.strip():
        raise BadInput("The question is empty", "Ask something")
    if len(question) > QUESTION_LIMIT:
        raise BadInput(f"The question has {len(question):,} characters", f"Shorten it to {QUESTION_LIMIT:,} at most")
    if _SURROGATE.search(question):
        raise BadInput("The question holds broken Unicode", "Check the terminal's encoding, or ask in UTF-8")
    return question
