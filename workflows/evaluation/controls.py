"""Controls: agents that know nothing of a question, or know its gold passages, to tell how much there is to win.

The oracle of β is the manager who knows the gold passages, and chooses among a few simple β.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from agents.answerer import ClosedBookAnswerer
from agents.fact_filter import FactChoice, OfflineFactFilter
from agents.manager import OfflineManager, RelationWeights
from agents.roles import Feedback
from graph.construction.knowledge_graph import GraphFact
from graph.own_types import OwnTypes
from graph.relations import fact_relations
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.retrieve.search import factors_for, restart_of, walk_passages
from graph.schema import PASSAGE_RELATIONS, RelationFactors, RelationType, ScoredFact
from graph.walk.strengths import tuned
from workflows.context import Context, Question
from workflows.evaluation import recall_at_k, reciprocal_rank
from workflows.evaluation.systems import Control, Given, System
from workflows.retrieval import graph as retrieval
from workflows.runtime.resources import chat_model_of, open_workspace_index, selection_of, tuning_for
from workflows.states.conversion import start_of

DOMINANT_SHARE = 0.6
"""The share that a candidate's preferred type takes of its category; the others share the rest evenly."""

_DEPTH = 5


class FixedManager:
    """Gives the same β whatever is asked, with the usual passage weight."""

    def __init__(self, factors: RelationFactors) -> None:
        self._factors = factors

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights."""
        return RelationWeights(self._factors, DEFAULT_PASSAGE_WEIGHT)


class UniformManager(FixedManager):
    """Gives every type of a category the same share, the graph's own types among them."""

    def __init__(self, own: Sequence[RelationType] = ()) -> None:
        super().__init__(RelationFactors.uniform(own))


class RandomManager:
    """Draws β for each question from all there are, evenly (Dirichlet, all parameters 1).

    What is drawn depends on the seed and the question alone, and not on the order in which questions are asked.
    """

    def __init__(self, seed: int, own: Sequence[RelationType] = ()) -> None:
        self._seed = seed
        self._own = own

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights, with the usual passage weight."""
        digest = hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        source = np.random.default_rng([abs(self._seed), int(self._seed < 0), int.from_bytes(digest)])

        def draw(relations: Sequence[RelationType]) -> dict[str, float]:
            shares = source.dirichlet(np.ones(len(relations)))
            return {relation.value: float(share) for relation, share in zip(relations, shares, strict=True)}

        factors = RelationFactors(draw(fact_relations(self._own)), draw(PASSAGE_RELATIONS))
        return RelationWeights(factors, DEFAULT_PASSAGE_WEIGHT)


class OracleFilter:
    """Keeps the candidates that a gold passage supports: a filter that makes no mistake.

    Args:
        facts: of the graph, by id.
        gold: places of the gold passages among the graph's.
    """

    def __init__(self, facts: Mapping[str, GraphFact], gold: Collection[int]) -> None:
        self._facts = facts
        self._gold = frozenset(gold)

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return the first ``max_facts`` of them."""
        kept = [candidate for candidate in candidates if self._is_gold(candidate.fact.id)]
        return FactChoice(tuple(kept[:max_facts]))

    def _is_gold(self, fact_id: str) -> bool:
        fact = self._facts.get(fact_id)
        return fact is not None and not self._gold.isdisjoint(fact.passages)


def candidate_factors(own: Sequence[RelationType] = ()) -> list[RelationFactors]:
    """Return the β that the oracle chooses among: uniform, and one dominant type of either category."""
    uniform, between_entities = RelationFactors.uniform(own), fact_relations(own)
    return [
        uniform,
        *(RelationFactors(_dominated(between_entities, each), uniform.entity_passage) for each in between_entities),
        *(RelationFactors(uniform.entity_entity, _dominated(PASSAGE_RELATIONS, each)) for each in PASSAGE_RELATIONS),
    ]


def context_for(system: System, question: str, gold_ids: Sequence[str], seed: int) -> Context:
    """Return a system's context for one question, with its controls in place of the agents.

    Args:
        system: whose context it is.
        question: what is asked.
        gold_ids: of the passages that hold the answer.
        seed: what random β depends on, beside the question.

    Raises:
        ModelUnavailable: a closed book needs the chat model, which cannot be opened.
    """
    context = system.context
    if system.given is Given.CLOSED_BOOK and (model := chat_model_of(context, context.temperature)):
        context = context.with_agents(answerer=ClosedBookAnswerer(model))
    for control in sorted(system.controls, key=lambda control: control.weighs_relations):
        if control is Control.ORACLE_FILTER:
            context = context.with_agents(fact_filter=_oracle_filter(context, gold_ids))
        elif control is Control.OFFLINE_AGENTS:
            context = context.with_agents(fact_filter=OfflineFactFilter(), manager=OfflineManager(_own_types(context)))
        elif control is Control.UNIFORM_BETA:
            context = context.with_agents(manager=UniformManager(_own_types(context).relation_types))
        elif control is Control.RANDOM_BETA:
            context = context.with_agents(manager=RandomManager(seed, _own_types(context).relation_types))
        else:
            best = best_factors(context, question, gold_ids)
            open_workspace_index(context).forget_vectors()
            context = context.with_agents(manager=FixedManager(best))
    return context


def best_factors(context: Context, question: str, gold_ids: Sequence[str]) -> RelationFactors:
    """Return the candidate whose walk has the best recall of gold passages among the first five.

    Ties go to the better rank of the first gold passage, then to the earlier candidate: uniform comes first, and is
    returned where there is no walk or no gold passage. All candidates walk from the seeds of uniform β.
    """
    own = _own_types(context).relation_types
    candidates = candidate_factors(own)
    settings, uniform = context.walk_settings(), UniformManager(own)
    searched: Any = retrieval.invoke(Question(question=question), context=context.with_agents(manager=uniform))
    if searched.get("ranked_by") != "walk" or not gold_ids:
        return candidates[0]
    index = open_workspace_index(context, searched["generation"])
    selection = selection_of(context, index)
    restart = restart_of(index, start_of(index, searched, settings, selection)[0])
    tuning = tuning_for(context)

    def worth(beta: RelationFactors) -> tuple[float, float]:
        factors = tuned(factors_for(beta, settings, own), tuning, own)
        ranking, _ = walk_passages(index, restart, factors, settings, context.top_k, context.engine, selection)
        found = [index.graph.passage_ids[place] for place, _ in ranking]
        return recall_at_k(found, gold_ids, _DEPTH), reciprocal_rank(found, gold_ids)

    return max(candidates, key=worth)


def _oracle_filter(context: Context, gold_ids: Sequence[str]) -> OracleFilter:
    index = open_workspace_index(context)
    places = index.graph.passage_index
    return OracleFilter(index.graph.facts, [places[key] for key in gold_ids if key in places])


def _own_types(context: Context) -> OwnTypes:
    return open_workspace_index(context).graph.own


def _dominated(relations: Sequence[RelationType], dominant: RelationType) -> dict[str, float]:
    rest = (1 - DOMINANT_SHARE) / (len(relations) - 1)
    return {relation.value: DOMINANT_SHARE if relation == dominant else rest for relation in relations}
