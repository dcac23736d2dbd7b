"""The retrieval workflow: from a question to ranked passages, by a walk or by similarity.

encode_question ─┬─ retrieve_facts ─┬─ filter_facts ⟲ ┄ keep_top_facts ───────┐
                 │                  └─ weigh_relations ⟲ ┄ neutral_relations ─┼─ seed_graph ─ walk_graph
                 └─ retrieve_passages ────────────────────────────────────────┘

LangGraph runs in steps, each of which waits for all of its nodes: the two model calls leave from the same node, and so
run side by side in one step. Routers read the state alone: where a person edits it, LangGraph gives them no context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy

from graph.errors import MalformedReply, TransportFault
from graph.index import Index
from graph.modes import Mode
from graph.schema import ScoredFact
from graph.search import (
    best,
    effective_passage_weight,
    factors_for,
    find_facts,
    rank_passages,
    seed_passages,
    walk_passages,
    weigh_entity_seeds,
    weigh_every_passage,
    weigh_passage_seeds,
)
from graph.selection import Selection
from graph.tuning import tuned
from workflows.context import SHOWN_SEEDS, Context, Question, context_of
from workflows.filtered import Update, nothing_selected, open_run, within_filter
from workflows.resources import fact_filter_for, manager_for, models_of, open_workspace_index, tuning_for
from workflows.state import (
    FIRST_NODE,
    Asked,
    FactHit,
    Factors,
    RetrievalOutput,
    RetrievalState,
    SeedSet,
    WalkReport,
    error_of,
    feedback_from,
    refusal_of,
)
from workflows.translation import (
    beta_of,
    fact_hit,
    facts_of,
    passage_candidates,
    passage_hits,
    ranking_of,
    seed_set,
    seeds_of,
)

RECURSION_LIMIT = 50
"""Steps a run may take: far above the longest path with all retries, far below a loop that never ends."""

TRANSPORT_RETRIES = RetryPolicy(max_attempts=3, initial_interval=1.0, retry_on=TransportFault)
"""Faults of the endpoint are tried again as they are; a malformed reply takes the retry edge instead."""

P = ParamSpec("P")


class FirstNode(Protocol):
    """The node that a workflow starts with."""

    def __call__(self, state: Asked, runtime: Runtime[Context]) -> Update:
        """Return the update that starts a run afresh."""
        ...


def timed(node: Callable[P, Update]) -> Callable[P, Update]:
    """Add the node's own milliseconds to its update."""

    @wraps(node)
    def measured(*args: P.args, **kwargs: P.kwargs) -> Update:
        start = time.perf_counter()
        update = node(*args, **kwargs)
        spent = {node.__name__: round((time.perf_counter() - start) * 1000, 3)}
        return {**update, "timings_ms": spent}

    return measured


def fresh_state() -> Update:
    """Return what every run starts from, so that a thread that was used before holds nothing of it."""
    return {
        "passages": [],
        "ranked_by": "",
        "walk": None,
        "facts": [],
        "fact_outcome": "",
        "relation_factors": None,
        "passage_weight": None,
        "tuning": None,
        "adaptive_passage_weight": None,
        "passage_candidates": [],
        "seeds": SeedSet(entities=[], passages=[]),
        "errors": None,
        "filter_attempts": 0,
        "filter_refusal": None,
        "manager_attempts": 0,
        "manager_refusal": None,
    }


@timed
def encode_question(state: Asked, runtime: Runtime[Context]) -> Update:
    """Check the question, start afresh, open the workspace and compute the question's vectors into the cache."""
    asked = Question.model_validate(state)
    context = context_of(runtime)
    index = open_workspace_index(context)
    selection = index.select(context.where)
    errors = []
    if not index.complete:
        unfinished = "The last indexing run was broken off: documents may be missing; run `mara index` again"
        errors.append(error_of(FIRST_NODE, "IndexingUnfinished", unfinished, 1))
    if _is_empty(selection):
        errors.append(nothing_selected(FIRST_NODE))
    else:
        index.encode(asked.question)
    return {
        **fresh_state(),
        "errors": errors or None,
        **_provenance(index, context),
        "weighs_relations": context.walk_settings().beta,
        "nothing_selected": _is_empty(selection),
    }


@timed
def retrieve_facts(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Look the nearest facts up in Chroma."""
    context, index, selection = open_run(state, runtime)
    found = find_facts(index, state["question"], context.walk_settings(), selection)
    return {"facts": [fact_hit(fact, score, kept=False) for fact, score in found]}


@timed
@within_filter("facts")
def filter_facts(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Ask the recognition-memory filter which candidates are worth starting from."""
    context, index, selection = open_run(state, runtime)
    attempt = state.get("filter_attempts", 0) + 1
    found = facts_of(state.get("facts", []), index, selection)
    candidates = [ScoredFact(fact.fact, score) for fact, score in found]
    try:
        choice = fact_filter_for(context).choose(
            state["question"], candidates, context.max_facts, feedback_from(state.get("filter_refusal"))
        )
    except MalformedReply as fault:
        return {
            "filter_attempts": attempt,
            "filter_refusal": refusal_of(fault, final=attempt > context.max_json_retries),
            "errors": [error_of("filter_facts", fault.kind, fault.reason, attempt, fault.raw)],
        }
    kept = {chosen.fact.id for chosen in choice.kept}
    update: Update = {
        "filter_attempts": attempt,
        "filter_refusal": None,
        "fact_outcome": "kept" if kept else "nothing relevant",
        "facts": [FactHit(**{**hit, "kept": hit["id"] in kept}) for hit in state.get("facts", [])],
    }
    if choice.dropped:
        message = f"{choice.dropped} items of the reply were no candidates and were dropped"
        update["errors"] = [error_of("filter_facts", "InventedFacts", message, attempt)]
    return update


@timed
@within_filter("facts")
def keep_top_facts(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Fallback of the filter: keep the best candidates as they are."""
    context = context_of(runtime)
    facts = state.get("facts", [])
    message = f"The filter's replies stayed malformed: the best {context.max_facts} candidates are kept"
    return {
        "fact_outcome": "failed",
        "facts": [FactHit(**{**hit, "kept": rank < context.max_facts}) for rank, hit in enumerate(facts)],
        "errors": [error_of("keep_top_facts", "Fallback", message, state.get("filter_attempts", 0))],
    }


@timed
def weigh_relations(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Ask the manager which relation types matter for the question."""
    context = context_of(runtime)
    attempt = state.get("manager_attempts", 0) + 1
    try:
        weights = manager_for(context).weigh(state["question"], feedback_from(state.get("manager_refusal")))
    except MalformedReply as fault:
        return {
            "manager_attempts": attempt,
            "manager_refusal": refusal_of(fault, final=attempt > context.max_json_retries),
            "errors": [error_of("weigh_relations", fault.kind, fault.reason, attempt, fault.raw)],
        }
    update: Update = {
        "manager_attempts": attempt,
        "manager_refusal": None,
        "relation_factors": Factors(
            entity_entity=dict(weights.factors.entity_entity), entity_passage=dict(weights.factors.entity_passage)
        ),
        "adaptive_passage_weight": weights.passage_weight,
    }
    if weights.defaulted:
        message = f"Missing, unknown or out of range, and defaulted: {', '.join(weights.defaulted)}"
        update["errors"] = [error_of("weigh_relations", "Defaulted", message, attempt)]
    return update


@timed
def neutral_relations(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Fallback of the manager: walk without β."""
    message = "The manager's replies stayed malformed: every relation type weighs the same"
    return {"errors": [error_of("neutral_relations", "Fallback", message, state.get("manager_attempts", 0))]}


@timed
def retrieve_passages(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Rank passages by similarity: the result itself, or the passage seeds of a walk."""
    context, index, selection = open_run(state, runtime)
    if not context.mode.walks:
        nothing_else: Update = {"facts": [], "seeds": SeedSet(entities=[], passages=[])}
        if _is_empty(selection):
            return {**nothing_else, **_nothing("retrieve_passages")}
        ranking = rank_passages(index, state["question"], context.mode, context.top_k, context.hybrid_alpha, selection)
        return {**nothing_else, "passages": passage_hits(index, ranking), "ranked_by": context.mode.value}
    ranking = seed_passages(index, state["question"], context.walk_settings(), SHOWN_SEEDS, selection)
    return {"passage_candidates": passage_candidates(index, ranking)}


@timed
@within_filter("facts", "passage_candidates")
def seed_graph(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Join the branches: weigh the entities of the kept facts, the names in the question and the passages."""
    context, index, selection = open_run(state, runtime)
    settings = context.walk_settings()
    kept = facts_of([hit for hit in state.get("facts", []) if hit["kept"]], index, selection)
    entities = weigh_entity_seeds(index, state["question"], kept, settings, selection)
    weight = effective_passage_weight(settings, state.get("adaptive_passage_weight"))
    if settings.passage_seeds:
        candidates = ranking_of(index, state.get("passage_candidates", []))
        passages = weigh_passage_seeds(candidates, settings, weight)
    else:
        every = weigh_every_passage(index, state["question"], settings, weight, selection)
        passages = {passage: share for passage, share in best(every, SHOWN_SEEDS, selection) if share > 0}
    return {"passage_weight": weight, "seeds": seed_set(index, entities, passages, selection)}


@timed
@within_filter("facts", "passage_candidates", "seeds")
def walk_graph(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Walk from the seeds and rank the passages; without a seed to start from, rank by similarity and say so."""
    context, index, selection = open_run(state, runtime)
    settings = context.walk_settings()
    update = _provenance(index, context)
    if _is_empty(selection):
        return {**update, **_nothing("walk_graph")}
    tuning = tuning_for(context)
    factors = tuned(factors_for(beta_of(state), settings), tuning)
    seeds = seeds_of(index, state, settings, selection)
    if not seeds or (context.mode.as_published and not seeds.entities):
        ranking = rank_passages(index, state["question"], Mode.DENSE, context.top_k, settings.alpha, selection)
        return {**update, "passages": passage_hits(index, ranking), "ranked_by": "dense", "walk": None}
    ranking, walk = walk_passages(index, seeds, factors, settings, context.top_k, context.engine, selection)
    update |= {
        "passages": passage_hits(index, ranking),
        "ranked_by": "walk",
        "tuning": tuning.version,
        "walk": WalkReport(engine=walk.engine.value, error=walk.error, arcs=walk.arcs),
    }
    if factors.unknown:
        message = f"β does not name {', '.join(factors.unknown)}: each weighs as without β, or the mean of its category"
        update["errors"] = [error_of("walk_graph", "UnknownRelation", message, 1)]
    return update


def after_encoding(state: RetrievalState) -> Sequence[str]:
    """Choose the branches that the mode needs; none where the filter selects nothing."""
    if state.get("nothing_selected"):
        return ["ranked"]
    return ["retrieve_facts", "retrieve_passages"] if Mode(state["mode"]).walks else ["retrieve_passages"]


def after_facts(state: RetrievalState) -> Sequence[str]:
    """Ask the filter, and beside it the manager where β is wanted."""
    return ["filter_facts", "weigh_relations"] if state.get("weighs_relations") else ["filter_facts"]


def after_filter(state: RetrievalState) -> Literal["filter_facts", "keep_top_facts", "seed_graph"]:
    """Ask again while replies are malformed and attempts are left, then fall back."""
    refusal = state.get("filter_refusal")
    if refusal is None:
        return "seed_graph"
    return "keep_top_facts" if refusal["final"] else "filter_facts"


def after_manager(state: RetrievalState) -> Literal["weigh_relations", "neutral_relations", "seed_graph"]:
    """Ask again while replies are malformed and attempts are left, then fall back."""
    refusal = state.get("manager_refusal")
    if refusal is None:
        return "seed_graph"
    return "neutral_relations" if refusal["final"] else "weigh_relations"


def after_passages(state: RetrievalState) -> Literal["seed_graph", "ranked"]:
    """Go on to the walk, or be done where the ranking by similarity is the result."""
    return "seed_graph" if Mode(state["mode"]).walks else "ranked"


def add_retrieval(
    builder: StateGraph[Any, Context, Any, Any], encode: FirstNode, then: str, transport_retries: RetryPolicy
) -> None:
    """Add retrieval to a workflow: from START through the node ``encode`` to the node ``then`` (or END).

    ``seed_graph`` is deferred: it waits for all branches, however often one of them retries.
    """
    builder.add_node(FIRST_NODE, encode)
    builder.add_node("retrieve_facts", retrieve_facts)
    builder.add_node("filter_facts", filter_facts, retry_policy=transport_retries)
    builder.add_node("keep_top_facts", keep_top_facts)
    builder.add_node("retrieve_passages", retrieve_passages)
    builder.add_node("weigh_relations", weigh_relations, retry_policy=transport_retries)
    builder.add_node("neutral_relations", neutral_relations)
    builder.add_node("seed_graph", seed_graph, defer=True)
    builder.add_node("walk_graph", walk_graph)
    builder.add_edge(START, FIRST_NODE)
    branches: dict[Hashable, str] = {name: name for name in ("retrieve_facts", "retrieve_passages")}
    builder.add_conditional_edges(FIRST_NODE, after_encoding, {**branches, "ranked": then})
    builder.add_conditional_edges("retrieve_facts", after_facts, ["filter_facts", "weigh_relations"])
    builder.add_conditional_edges("filter_facts", after_filter)
    builder.add_edge("keep_top_facts", "seed_graph")
    builder.add_conditional_edges("retrieve_passages", after_passages, {"seed_graph": "seed_graph", "ranked": then})
    builder.add_conditional_edges("weigh_relations", after_manager)
    builder.add_edge("neutral_relations", "seed_graph")
    builder.add_edge("seed_graph", "walk_graph")
    builder.add_edge("walk_graph", then)


def build(
    transport_retries: RetryPolicy = TRANSPORT_RETRIES,
) -> StateGraph[RetrievalState, Context, Question, RetrievalOutput]:
    """Return the builder of the retrieval workflow, to compile with a checkpointer of one's own."""
    builder = StateGraph(RetrievalState, context_schema=Context, input_schema=Question, output_schema=RetrievalOutput)
    add_retrieval(builder, encode_question, END, transport_retries)
    return builder


def _is_empty(selection: Selection | None) -> bool:
    return selection is not None and selection.is_empty


def _nothing(node: str) -> Update:
    """The outcome of a ranking where the filter selects no passage."""
    return {"passages": [], "ranked_by": "", "walk": None, "errors": [nothing_selected(node)]}


def _provenance(index: Index, context: Context) -> Update:
    """What a result says of how it came about; told again by the walk, since a fork may bring another context."""
    return {
        "mode": context.mode.value,
        "models": models_of(context, index),
        "generation": index.graph.generation,
    }


graph = build().compile(name="retrieval").with_config(recursion_limit=RECURSION_LIMIT)
