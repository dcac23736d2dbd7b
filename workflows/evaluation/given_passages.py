"""Workflow mara with given passages in place of retrieval: what its answerer makes of the gold ones, or of none."""

from __future__ import annotations

from langgraph.graph import START

from workflows.mara import add_answering, no_answer
from workflows.nodes.retrieval import begin
from workflows.retrieval import RECURSION_LIMIT
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, WorkflowBuilder
from workflows.settings.mara import Context
from workflows.states.conversion import passage_hits
from workflows.states.records import FIRST_NODE, Update
from workflows.states.shared import Asked, Output, State

WORKFLOW = "given passages"


class Given(Asked):
    """A question and the ids of the passages to answer it from."""

    passage_ids: list[str]


class GivenState(State):
    """The state of workflow mara, and what was given."""

    passage_ids: list[str]


@node()
def encode_question(state: Given, run: OpenRun) -> Update:
    """Start afresh, and lay out those of the given passages that the index holds."""
    place = run.index.graph.passage_index
    given = [(place[key], 1.0) for key in state["passage_ids"] if key in place]
    return {
        **begin(state, run),
        **no_answer(),
        "workflow": WORKFLOW,
        "passages": passage_hits(run.index, given),
        "ranked_by": "given",
        "checks_claims": run.context.check_claims,
    }


def build() -> WorkflowBuilder[GivenState, Context, Given, Output]:
    """Return the builder of the workflow."""
    builder: WorkflowBuilder[GivenState, Context, Given, Output] = WorkflowBuilder(
        GivenState, TRANSPORT_RETRIES, context_schema=Context, input_schema=Given, output_schema=Output
    )
    builder.add(encode_question)
    add_answering(builder)
    builder.add_edge(START, FIRST_NODE)
    builder.add_edge(FIRST_NODE, "write_answer")
    return builder


graph = build().compile(name=WORKFLOW).with_config(recursion_limit=RECURSION_LIMIT)
