"""The restart vector: which entities and passages the walk starts from, and with what weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from graph.names import NameMatcher
from graph.text import tokens


def entity_seeds(
    facts: Iterable[tuple[int, int, float]], passages_of: Callable[[int], int], limit: int
) -> dict[int, float]:
    """Weigh the entities of the kept facts (MARA-RAG phase 3.1).

    Each fact (subject, object, score) gives its two entities score / n_passages(entity); the sum is divided by the
    number of kept facts that hold the entity. The best ``limit`` are returned, best first, ties by index.
    """
    weights: dict[int, float] = defaultdict(float)
    holding: dict[int, int] = defaultdict(int)
    for subject, object_, score in facts:
        for entity in dict.fromkeys((subject, object_)):
            weights[entity] += score / max(1, passages_of(entity))
            holding[entity] += 1
    means = {entity: weight / holding[entity] for entity, weight in weights.items()}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0]))[:limit])


def name_seeds(
    question: str,
    names: NameMatcher,
    passages_of: Callable[[int], int],
    weight: float,
    among: NDArray[np.bool_] | None = None,
) -> dict[int, float]:
    """Weigh the known names that the question spells out: ``weight`` / sqrt(n_passages), longest names only.

    With ``among``, one element an entity, the names of all others are unknown.
    """
    found = dict.fromkeys(mention.name for mention in names.find(tokens(question), among))
    return {entity: weight / max(1, passages_of(entity)) ** 0.5 for entity in found}


def min_max(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale to [0, 1]; equal scores become ones."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)


def seed_weights(scores: NDArray[np.float64], weight: float, sharpness: float) -> NDArray[np.float64]:
    """Weigh passages by their score: min-max to [0, 1], to the power ``sharpness``, times ``weight``.

    Args:
        scores: of all that are compared, in any order.
        weight: the passage weight, which the best gets.
        sharpness: 1 is linear, as published; more gives the mass to the few best.
    """
    return np.asarray(min_max(scores) ** sharpness * weight, dtype=np.float64)


def passage_seeds(
    ranking: Sequence[tuple[int, float]], weight: float, limit: int, sharpness: float
) -> dict[int, float]:
    """Weigh the best passages of a ranking, see `seed_weights`; those of weight 0 are no seeds.

    Args:
        ranking: (passage, score), best first.
        weight: the passage weight.
        limit: how many of the best are seeds; 0 for all.
        sharpness: the power on the scores.
    """
    scaled = seed_weights(np.asarray([score for _, score in ranking]), weight, sharpness)
    kept = ranking[:limit] if limit else ranking
    return {passage: float(scaled[i]) for i, (passage, _) in enumerate(kept) if scaled[i] > 0}


def fuse(
    dense: Sequence[tuple[int, float]], sparse: Sequence[tuple[int, float]], alpha: float
) -> list[tuple[int, float]]:
    """Mix two rankings: alpha x dense + (1 - alpha) x sparse, each min-max normalised, absent = 0 (RAGentA).

    Returns (passage, score), best first, ties by index.
    """
    fused: dict[int, float] = defaultdict(float)
    for ranking, share in ((dense, alpha), (sparse, 1 - alpha)):
        scaled = min_max(np.asarray([score for _, score in ranking]))
        for (passage, _), score in zip(ranking, scaled, strict=True):
            fused[passage] += share * float(score)
    return sorted(fused.items(), key=lambda item: (-item[1], item[0]))


def restart_vector(
    n_entities: int, entities: Iterable[tuple[int, float]], passages: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return one weight a node, not normalised: several seeds on an entity add up; ``passages`` has one for each."""
    restart = np.zeros(n_entities + len(passages))
    for entity, weight in entities:
        restart[entity] += weight
    restart[n_entities:] = passages
    return restart
