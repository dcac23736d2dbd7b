"""Asking from Python and the command line: run a workflow once and return its result as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows.context import Context, asking

_RESULT_KEYS = (
    "question",
    "mode",
    "workflow",
    "answer",
    "plain_answer",
    "refused",
    "citations",
    "passages",
    "ranked_by",
    "walk",
    "facts",
    "fact_outcome",
    "relation_factors",
    "passage_weight",
    "tuning",
    "seeds",
    "timings_ms",
    "errors",
    "models",
    "generation",
)


def ask(question: str, context: Context) -> dict[str, Any]:
    """Answer a question with the main workflow.

    Returns:
        The result, keys in the documented order.

    Raises:
        BadInput: the question is empty or too long, or the workspace is missing.
        ModelUnavailable: the chat or embedding model cannot be used.
        WorkspaceDamaged: the workspace cannot be read.
    """
    from workflows.mara import graph

    result = graph.invoke(asking(question), context=context)
    return result_of(result)


def result_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run of the main workflow gave as a result, keys in the documented order."""
    return {key: state.get(key) for key in _RESULT_KEYS}
