"""The end of a turn: what of it is written to the history, and the edges that lead there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from langgraph.graph import END

from workflows.runtime.history import record_answer
from workflows.runtime.node import Node, node
from workflows.runtime.resources import OpenRun
from workflows.runtime.visibility import RETRIEVED
from workflows.runtime.workflow_graph import WorkflowBuilder, router
from workflows.states.records import Update
from workflows.states.shared import State

RECORD_TURN = "record_turn"
"""The node that writes to the history."""

RECORDED = ("answer", "plain_answer", "refused", "answer_kind", "citations", "understood", "asked_at", "written_from")
"""The keys of the state that the node reads beside the passages."""

REMEMBERED: Final = "remembered"
NOT_REMEMBERED: Final = "not remembered"

ENDINGS: Mapping[Hashable, str] = {REMEMBERED: RECORD_TURN, NOT_REMEMBERED: END}
"""Where a run goes once it has its answer."""


@node(*RETRIEVED, *RECORDED)
def record_turn(state: State, run: OpenRun) -> Update:
    """Write the question and its answer to the history."""
    return record_answer(state, run)


@router("remembers")
def after_ending(state: State) -> str:
    """Write the turn to the history where anything of it is to be remembered."""
    return REMEMBERED if state.get("remembers") else NOT_REMEMBERED


def add_recording(builder: WorkflowBuilder[Any, Any, Any, Any], record: Node[Any], *ends: str) -> None:
    """Add the node that writes to the history, and the way there from nodes that end a run."""
    builder.add(record)
    builder.add_edge(RECORD_TURN, END)
    for end in ends:
        builder.add_conditional_edges(end, after_ending, dict(ENDINGS))
