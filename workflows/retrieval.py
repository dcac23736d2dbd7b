"""The retrieval workflow: from a question to ranked passages, by a walk or by similarity.

encode_question ─┬─ retrieve_facts ─┬─ filter_facts ⟲ ┄ keep_top_facts ───────┐
                 │                  └─ weigh_relations ⟲ ┄ neutral_relations ─┼─ seed_graph ─ walk_graph
                 └─ retrieve_passages ────────────────────────────────────────┘

A question that leans on earlier turns goes through ``rewrite_question`` ⟲ ┄ ``complete_question`` first; one that could
mean several things, or asks nothing, ends there, and the answer asks back.

LangGraph runs in steps, each of which waits for all of its nodes: the two model calls leave from the same node, and so
run side by side in one step. Routers read the state alone: where a person edits it, LangGraph gives them no context.
A router returns the label of the edge that is taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

from agents.fact_filter import FACT_FILTER
from agents.manager import MANAGER
from workflows.nodes.conversation import ASKS_NOTHING, complete_question, rewrite_question
from workflows.nodes.retrieval import (
    encode_question,
    filter_facts,
    keep_top_facts,
    neutral_relations,
    retrieve_facts,
    retrieve_passages,
    seed_graph,
    walk_graph,
    weigh_relations,
)
from workflows.runtime.node import Node
from workflows.runtime.workflow_graph import (
    AGAIN,
    GIVEN_UP,
    TRANSPORT_RETRIES,
    VALID,
    WorkflowBuilder,
    after_reply,
    router,
)
from workflows.settings.mara import Context, Question
from workflows.states.records import FIRST_NODE
from workflows.states.shared import Asked, State, mode_of, part_of

RECURSION_LIMIT = 50
"""Steps a run may take: far above the longest path with all retries, far below a loop that never ends."""

ALWAYS = "always"
NOTHING_SELECTED = "nothing selected"
WALKS = "the mode walks"
BETA_WANTED = "β is wanted"
BY_SIMILARITY = "ranked by similarity"
LEANS = "leans on earlier turns"
ASKS_BACK = "asks back"

UNDERSTOOD = ("mode", "nothing_selected", "leaning", "understood")
"""The keys of the state that tell how a question was understood."""

RETRIEVAL_OUTPUT = part_of(
    State,
    (
        *("question", "understood", "mode", "passages", "ranked_by", "walk", "facts", "fact_outcome"),
        *("relation_factors", "passage_weight", "tuning", "seeds", "timings_ms", "usage", "errors"),
        *("models", "generation", "as_of"),
    ),
    "RetrievalOutput",
)
"""The output of retrieval alone, in the documented order."""


@router("mode", "nothing_selected", "leaning")
def after_encoding(state: State) -> Sequence[str]:
    """Choose the branches that the mode needs; none where the filter selects nothing."""
    if state.get("nothing_selected"):
        return [NOTHING_SELECTED]
    return [LEANS] if state.get("leaning") else _branches(state)


@router(*UNDERSTOOD, "rewriter_refusal")
def after_rewriting(state: State) -> Sequence[str]:
    """Ask again while replies are malformed and attempts are left, then fall back; a valid one is searched."""
    reply = after_reply(state.get("rewriter_refusal"))
    return [reply] if reply != VALID else after_completion(state)


@router(*UNDERSTOOD)
def after_completion(state: State) -> Sequence[str]:
    """Search with the completed question, or ask back where it could mean several things, or asks nothing."""
    understood = state.get("understood")
    asks_back = state.get("leaning") == ASKS_NOTHING or (understood and understood["choices"])
    return [ASKS_BACK] if asks_back else _branches(state)


def _branches(state: State) -> list[str]:
    return [WALKS, ALWAYS] if mode_of(state).walks else [ALWAYS]


@router("weighs_relations")
def after_facts(state: State) -> Sequence[str]:
    """Ask the filter, and beside it the manager where β is wanted."""
    return [ALWAYS, BETA_WANTED] if state.get("weighs_relations") else [ALWAYS]


@router("mode")
def after_passages(state: State) -> str:
    """Go on to the walk, or be done where the ranking by similarity is the result."""
    return WALKS if mode_of(state).walks else BY_SIMILARITY


def add_retrieval(builder: WorkflowBuilder[Any, Any, Any, Any], encode: Node[Any], then: str, asks_back: str) -> None:
    """Add retrieval to a workflow: from START through the node ``encode`` to the node ``then`` (or END).

    A question that could mean several things, or asks nothing, goes to the node ``asks_back`` (or END) instead.

    ``seed_graph`` is deferred: it waits for all branches, however often one of them retries.
    """
    builder.add(encode)
    builder.add(rewrite_question, retry_policy=builder.transport_retries)
    builder.add(complete_question)
    builder.add(retrieve_facts)
    builder.add_asking(filter_facts, FACT_FILTER.refusal, keep_top_facts, "seed_graph")
    builder.add(retrieve_passages)
    builder.add_asking(weigh_relations, MANAGER.refusal, neutral_relations, "seed_graph")
    builder.add(seed_graph, defer=True)
    builder.add(walk_graph)
    builder.add_edge(START, FIRST_NODE)
    searching: dict[Hashable, str] = {WALKS: "retrieve_facts", ALWAYS: "retrieve_passages"}
    builder.add_conditional_edges(
        FIRST_NODE, after_encoding, {**searching, LEANS: "rewrite_question", NOTHING_SELECTED: then}
    )
    understood = {**searching, ASKS_BACK: asks_back}
    builder.add_conditional_edges(
        "rewrite_question",
        after_rewriting,
        {**understood, AGAIN: "rewrite_question", GIVEN_UP: "complete_question"},
    )
    builder.add_conditional_edges("complete_question", after_completion, understood)
    builder.add_conditional_edges(
        "retrieve_facts", after_facts, {ALWAYS: "filter_facts", BETA_WANTED: "weigh_relations"}
    )
    builder.add_conditional_edges("retrieve_passages", after_passages, {WALKS: "seed_graph", BY_SIMILARITY: then})
    builder.add_edge("seed_graph", "walk_graph")
    builder.add_edge("walk_graph", then)


def build(
    transport_retries: RetryPolicy = TRANSPORT_RETRIES,
) -> StateGraph[State, Context, Question | Asked, Any]:
    """Return the builder of the retrieval workflow, to compile with a checkpointer of one's own."""
    builder: WorkflowBuilder[State, Context, Question | Asked, Any] = WorkflowBuilder(
        State, transport_retries, context_schema=Context, input_schema=Question, output_schema=RETRIEVAL_OUTPUT
    )
    add_retrieval(builder, encode_question, END, END)
    return builder


graph = build().compile(name="retrieval").with_config(recursion_limit=RECURSION_LIMIT)
