"""Question time without a workflow: rank passages, weigh seeds, walk. Plain functions over an open index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.factors import EdgeFactors, edge_factors
from graph.index import Index
from graph.knowledge_graph import GraphFact
from graph.modes import DEFAULT_PASSAGE_WEIGHT, Mode, WalkSettings
from graph.pagerank import walk
from graph.schema import RelationFactors
from graph.seeds import entity_seeds, fuse, name_seeds, passage_seeds, restart_vector

FUSED_DEPTH = 200
"""How many passages of each list go into the hybrid one, at least."""

Ranking = list[tuple[int, float]]
"""(passage, score), best first."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where a walk starts: entity and passage seeds with their weights, by index."""

    entities: dict[int, float]
    passages: dict[int, float]


def find_facts(index: Index, question: str, settings: WalkSettings) -> list[tuple[GraphFact, float]]:
    """Return the candidate facts with their scores, best first.

    The score is the cosine clipped to [0, 1]; HippoRAG 2 normalises over the range of all facts instead.
    """
    found = index.search_facts(question, settings.fact_candidates)
    if not settings.counts or not found:
        return found
    low, high = index.least_fact_score(question), found[0][1]
    return [(fact, (score - low) / (high - low) if high > low else 1.0) for fact, score in found]


def rank_passages(index: Index, question: str, mode: Mode, k: int, alpha: float) -> Ranking:
    """Return the best ``k`` passages by similarity: dense, sparse, or the hybrid of the two lists."""
    if mode is Mode.DENSE:
        return index.search_passages(question, k)
    if mode is Mode.SPARSE:
        return _positive(index.score_passages_sparse(question), k)
    depth = max(k, FUSED_DEPTH)
    sparse = _positive(index.score_passages_sparse(question), depth)
    return fuse(index.search_passages(question, depth), sparse, alpha)[:k]


def seed_passages(index: Index, question: str, settings: WalkSettings) -> Ranking:
    """Return the ranking that passage seeds are taken from; all passages where the settings say so."""
    if not settings.passage_seeds:
        return _ranked(index.score_passages(question))
    mode = Mode.HYBRID if settings.hybrid_seeds else Mode.DENSE
    return rank_passages(index, question, mode, settings.passage_seeds, settings.alpha)


def weigh_entity_seeds(
    index: Index, question: str, facts: Sequence[tuple[GraphFact, float]], settings: WalkSettings
) -> dict[int, float]:
    """Return {entity: weight} from the kept facts and from the names that the question spells out."""
    graph = index.graph
    counts = graph.triple_passages if settings.counts else graph.name_passages

    def passages_of(entity: int) -> int:
        return int(counts[entity])

    ends = [(fact.subject, fact.object, score) for fact, score in facts]
    seeds = entity_seeds(ends, passages_of, settings.entity_seeds)
    if settings.name_weight:
        for entity, weight in name_seeds(question, graph.names, passages_of, settings.name_weight).items():
            seeds[entity] = seeds.get(entity, 0.0) + weight
    return seeds


def weigh_passage_seeds(ranking: Ranking, settings: WalkSettings, weight: float) -> dict[int, float]:
    """Return {passage: weight}; ``weight`` is the best passage's, see `effective_passage_weight`."""
    return passage_seeds(ranking, weight, settings.passage_seeds, settings.seed_sharpness)


def effective_passage_weight(settings: WalkSettings, adaptive_weight: float | None) -> float:
    """Return the passage weight that a walk uses: the manager's scales it where the settings say so."""
    if adaptive_weight is None or not settings.adaptive_passage_weight:
        return settings.passage_weight
    return settings.passage_weight * adaptive_weight / DEFAULT_PASSAGE_WEIGHT


def factors_for(beta: RelationFactors | None, settings: WalkSettings) -> EdgeFactors:
    """Return the factors of a walk; β counts only where the settings let it."""
    return edge_factors(
        beta if settings.beta else None,
        policy=settings.policy,
        strength=settings.relation_strength,
        synonymy=settings.synonymy,
        directions=settings.directions,
    )


def walk_passages(index: Index, seeds: Seeds, factors: EdgeFactors, settings: WalkSettings, k: int) -> Ranking:
    """Walk from the seeds and return the best ``k`` passages by PageRank. Raises BadInput when there is no seed."""
    graph = index.graph
    restart = restart_vector(graph.n_nodes, graph.n_entities, seeds.entities.items(), seeds.passages.items())
    found = walk(graph.counted if settings.counts else graph.typed, restart, factors, settings.damping)
    return _ranked(found.scores[graph.n_entities :], k)


def _ranked(scores: NDArray[np.float64], k: int | None = None) -> Ranking:
    """Return the best ``k``, ties by index; all of them without ``k``."""
    order = np.argsort(-scores, kind="stable")[:k]
    return [(int(passage), float(scores[passage])) for passage in order]


def _positive(scores: NDArray[np.float64], k: int) -> Ranking:
    """Return the best ``k`` passages that hold any word of the question."""
    return [(passage, score) for passage, score in _ranked(scores, k) if score > 0]
