"""Asking from Python and the command line: run a workflow once and return its result as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows.choices import Workflow
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
    "model_calls",
    "errors",
    "models",
    "generation",
)
_CLAIM_KEYS = ("claims", "claims_checked_by", "structure", "components", "coverage", "follow_ups")
_JUDGE_KEYS = ("judge_outcome", "judgements", "bars", "written_from", "final_prompt")


def ask(question: str, context: Context) -> dict[str, Any]:
    """Answer a question with the workflow that the context is of.

    Returns:
        The result, keys in the documented order.

    Raises:
        BadInput: the question is empty or too long, or the workspace is missing.
        ModelUnavailable: the chat or embedding model cannot be used.
        WorkspaceDamaged: the workspace cannot be read.
    """
    result = graph_of(context.workflow).invoke(asking(question), context=context)
    return result_of(result)


def graph_of(workflow: Workflow) -> Any:
    """Return the compiled graph of a workflow."""
    if workflow is Workflow.RAGENTA:
        from workflows import ragenta

        return ragenta.graph
    from workflows import mara

    return mara.graph


def result_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run gave as a result, keys in the documented order.

    What judging passages and checking claims give is there where the workflow did so.
    """
    keys: tuple[str, ...] = _RESULT_KEYS
    if state.get("workflow") == Workflow.RAGENTA:
        keys += _CLAIM_KEYS + _JUDGE_KEYS
    elif state.get("coverage"):
        keys += _CLAIM_KEYS
    return {key: state.get(key) for key in keys}
