"""Asking from Python and the command line: run a workflow once and return its result as plain values."""

from __future__ import annotations

from typing import Any

from workflows.context import Context, Question, check_question

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

    result = graph.invoke(Question(question=check_question(question)), context=context)
    return {key: result.get(key) for key in _RESULT_KEYS}
