"""Asking from Python and the command line: run a workflow once and return its result as plain values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from agents.chat.usage import prices_of
from agents.roles import Turn
from graph.environment import refresh_environment
from workflows.context import Context, asking
from workflows.results import Result, result_of
from workflows.settings.enums import Workflow


def ask(
    question: str, context: Context, turns: Sequence[Turn] = (), callbacks: Sequence[BaseCallbackHandler] = ()
) -> Result:
    """Answer a question with the workflow that the context is of.

    Args:
        question: in plain words.
        context: the settings.
        turns: earlier turns of its conversation, the last one last; see `workflows.results.turn_of`.
        callbacks: LangChain's, which hear of the run.

    Returns:
        The result, keys in the documented order.

    Raises:
        BadInput: the question is empty or too long, a price is none, or the workspace is missing.
        ModelUnavailable: the chat or embedding model cannot be used.
        WorkspaceDamaged: the workspace cannot be read.
    """
    refresh_environment()
    graph, prices = graph_of(context.workflow), prices_of()
    start = time.perf_counter()
    state = graph.invoke(asking(question, turns), {"callbacks": [*callbacks]}, context=context)
    return result_of(state, (time.perf_counter() - start) * 1000, prices)


def retrieve(question: str, context: Context, turns: Sequence[Turn] = ()) -> dict[str, Any]:
    """Rank the passages for a question, and answer nothing.

    Args:
        question: in plain words.
        context: the settings.
        turns: earlier turns of its conversation, the last one last.

    Returns:
        The output of workflow ``retrieval``: ``passages``, best first, and how they were found.

    Raises:
        BadInput, ModelUnavailable, WorkspaceDamaged: as `ask` does.
    """
    from workflows import retrieval

    refresh_environment()
    result: dict[str, Any] = retrieval.graph.invoke(asking(question, turns), context=context)
    return result


def graph_of(workflow: Workflow) -> Any:
    """Return the compiled graph of a workflow."""
    if workflow is Workflow.RAGENTA:
        from workflows import ragenta

        return ragenta.graph
    from workflows import mara

    return mara.graph
