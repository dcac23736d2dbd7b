"""The retrieval workflow: from a question to ranked passages, by a walk or by similarity.

encode_question ─┬─ retrieve_facts ─┬─ filter_facts ⟲ ┄ keep_top_facts ───────┐
                 │                  └─ weigh_relations ⟲ ┄ neutral_relations ─┼─ seed_graph ─ walk_graph
                 └─ retrieve_passages ────────────────────────────────────────┘

LangGraph runs in steps, each of which waits for all of its nodes: the two model calls leave from the same node, and so
run side by side in one step. Routers read the state alone: where a person edits it, LangGraph gives them no context.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy

from graph.errors import BadInput, MalformedReply, TransportFault
from graph.index import Index
from graph.knowledge_graph import GraphFact
from graph.modes import Mode, WalkSettings
from graph.schema import RelationFactors, ScoredFact, entity_id
from graph.search import (
    Ranking,
    Seeds,
    effective_passage_weight,
    factors_for,
    find_facts,
    rank_passages,
    seed_passages,
    walk_passages,
    weigh_entity_seeds,
    weigh_passage_seeds,
)
from workflows.context import SHOWN_SEEDS, Context, Question, context_of
from workflows.resources import fact_filter_for, manager_for, models_of, open_workspace_index
from workflows.state import (
    FIRST_NODE,
    Asked,
    EntitySeed,
    FactHit,
    Factors,
    PassageCandidate,
    PassageHit,
    PassageSeed,
    RetrievalOutput,
    RetrievalState,
    SeedSet,
    error_of,
    feedback_from,
    refusal_of,
)

RECURSION_LIMIT = 50
"""Steps a run may take: far above the longest path with all retries, far below a loop that never ends."""

TRANSPORT_RETRIES = RetryPolicy(max_attempts=3, initial_interval=1.0, retry_on=TransportFault)
"""Faults of the endpoint are tried again as they are; a malformed reply takes the retry edge instead."""

Update = dict[str, Any]
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
        "facts": [],
        "fact_outcome": "",
        "relation_factors": None,
        "passage_weight": None,
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
    index.encode(asked.question)
    unfinished = "The last indexing run was broken off: documents may be missing; run `mara index` again"
    return {
        **fresh_state(),
        "errors": None if index.complete else [error_of(FIRST_NODE, "IndexingUnfinished", unfinished, 1)],
        **_provenance(index, context),
        "weighs_relations": context.walk_settings().beta,
    }


@timed
def retrieve_facts(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Look the nearest facts up in Chroma."""
    context = context_of(runtime)
    index = open_workspace_index(context, state.get("generation"))
    found = find_facts(index, state["question"], context.walk_settings())
    return {"facts": [_fact_hit(fact, score, kept=False) for fact, score in found]}


@timed
def filter_facts(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Ask the recognition-memory filter which candidates are worth starting from."""
    context = context_of(runtime)
    index = open_workspace_index(context, state.get("generation"))
    attempt = state.get("filter_attempts", 0) + 1
    graph_facts = [index.graph.facts.get(hit["id"]) for hit in state.get("facts", [])]
    candidates = [
        ScoredFact(fact.fact, hit["score"])
        for fact, hit in zip(graph_facts, state.get("facts", []), strict=True)
        if fact
    ]
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
    context = context_of(runtime)
    index = open_workspace_index(context, state.get("generation"))
    settings = context.walk_settings()
    if not context.mode.walks:
        ranking = rank_passages(index, state["question"], context.mode, context.top_k, context.hybrid_alpha)
        return {"passages": _passage_hits(index, ranking), "ranked_by": context.mode.value}
    ranking = seed_passages(index, state["question"], settings)[:SHOWN_SEEDS]
    passages = index.graph.passages
    return {"passage_candidates": [PassageCandidate(id=passages[p].id, score=score) for p, score in ranking]}


@timed
def seed_graph(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Join the branches: weigh the entities of the kept facts, the names in the question and the passages."""
    context = context_of(runtime)
    index = open_workspace_index(context, state.get("generation"))
    settings, graph = context.walk_settings(), index.graph
    kept = [(graph.facts[h["id"]], h["score"]) for h in state.get("facts", []) if h["kept"] and h["id"] in graph.facts]
    entities = weigh_entity_seeds(index, state["question"], kept, settings)
    weight = effective_passage_weight(settings, state.get("adaptive_passage_weight"))
    passages = weigh_passage_seeds(_passage_ranking(index, state, settings), settings, weight)
    return {
        "passage_weight": weight,
        "seeds": SeedSet(
            entities=[
                EntitySeed(id=entity_id(graph.entity_names[e]), text=graph.entity_labels[e], weight=share)
                for e, share in sorted(entities.items(), key=lambda item: (-item[1], item[0]))
            ],
            passages=[PassageSeed(id=graph.passages[p].id, weight=w) for p, w in passages.items()][:SHOWN_SEEDS],
        ),
    }


@timed
def walk_graph(state: RetrievalState, runtime: Runtime[Context]) -> Update:
    """Walk from the seeds and rank the passages; without a seed to start from, rank by similarity and say so."""
    context = context_of(runtime)
    index = open_workspace_index(context, state.get("generation"))
    settings = context.walk_settings()
    factors = factors_for(_beta(state), settings)
    seeds = _seeds_of(index, state, settings)
    no_facts = context.mode is Mode.HIPPORAG2 and not seeds.entities
    if no_facts or not any((*seeds.entities.values(), *seeds.passages.values())):
        ranking = rank_passages(index, state["question"], Mode.DENSE, context.top_k, settings.alpha)
        return {**_provenance(index, context), "passages": _passage_hits(index, ranking), "ranked_by": "dense"}
    update: Update = {
        **_provenance(index, context),
        "passages": _passage_hits(index, walk_passages(index, seeds, factors, settings, context.top_k)),
        "ranked_by": "walk",
    }
    if factors.unknown:
        message = f"β does not name {', '.join(factors.unknown)}: each weighs as without β, or the mean of its category"
        update["errors"] = [error_of("walk_graph", "UnknownRelation", message, 1)]
    return update


def after_encoding(state: RetrievalState) -> Sequence[str]:
    """Choose the branches that the mode needs."""
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
    builder.add_conditional_edges(FIRST_NODE, after_encoding, ["retrieve_facts", "retrieve_passages"])
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


def _passage_ranking(index: Index, state: RetrievalState, settings: WalkSettings) -> Ranking:
    """The ranking that passage seeds come from: the state's candidates, or all passages where all are seeds."""
    if not settings.passage_seeds:
        return seed_passages(index, state["question"], settings)
    place = index.graph.passage_index
    return [(place[hit["id"]], hit["score"]) for hit in state.get("passage_candidates", []) if hit["id"] in place]


def _seeds_of(index: Index, state: RetrievalState, settings: WalkSettings) -> Seeds:
    """The state's seeds by index; where every passage is one, the state shows the first of them only."""
    graph = index.graph
    given = state.get("seeds", SeedSet(entities=[], passages=[]))
    entities = _weights(given.get("entities", []), graph.entity_index)
    if settings.passage_seeds:
        passages = _weights(given.get("passages", []), graph.passage_index)
    else:
        ranking = seed_passages(index, state["question"], settings)
        passages = weigh_passage_seeds(ranking, settings, state.get("passage_weight") or 0.0)
    return Seeds(entities, passages)


def _weights(seeds: Sequence[EntitySeed] | Sequence[PassageSeed], place: Mapping[str, int]) -> dict[int, float]:
    """Return {index: weight} of the seeds that the graph knows."""
    return {place[seed["id"]]: _weight(seed["weight"], "seeds") for seed in seeds if seed["id"] in place}


def _beta(state: RetrievalState) -> RelationFactors | None:
    given = state.get("relation_factors")
    if not given:
        return None
    return RelationFactors(
        {name: _weight(share, "relation_factors") for name, share in given["entity_entity"].items()},
        {name: _weight(share, "relation_factors") for name, share in given["entity_passage"].items()},
    )


def _provenance(index: Index, context: Context) -> Update:
    """What a result says of how it came about; told again by the walk, since a fork may bring another context."""
    return {
        "mode": context.mode.value,
        "models": models_of(context, index),
        "generation": index.graph.generation,
    }


def _weight(value: object, where: str) -> float:
    """Return a weight that stands in the state, where a person may have edited it. Raises BadInput."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise BadInput(f"{where} holds {value!r}", "Give a number that is not negative")
    return float(value)


def _fact_hit(fact: GraphFact, score: float, *, kept: bool) -> FactHit:
    return FactHit(
        id=fact.fact.id,
        subject=fact.fact.subject,
        predicate=fact.fact.predicate,
        object=fact.fact.object,
        relation=fact.fact.relation.value,
        score=score,
        kept=kept,
    )


def _passage_hits(index: Index, ranking: Ranking) -> list[PassageHit]:
    return [
        PassageHit(id=passage.id, title=passage.title, text=passage.text, score=score)
        for passage, score in ((index.graph.passages[p], score) for p, score in ranking)
    ]


graph = build().compile(name="retrieval").with_config(recursion_limit=RECURSION_LIMIT)
