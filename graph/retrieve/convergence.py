"""Convergence: a passage that every anchor of a question reaches stands before one that a single anchor floods.

A walk adds up what its seeds send. So a passage beside one heavy seed can outweigh one to which all seeds lead, which
is what a question of several steps asks for. The best passages of the walk are therefore compared by how far each
anchor, an entity that it starts from, reaches them alone: their scores are mixed with the geometric mean of these
reaches, in which a lacking anchor costs much and a flood gains little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graph.walk.sparse import SparseVector

ANCHORS = 4
"""Entity seeds that are anchors of their own, the heaviest; the others are one together."""

COMPARED = 50
"""Passages, the best of the walk, that are compared."""

_LEAST = 1e-3
"""The reach, as a share of the best one, at which a passage counts as not reached."""


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Entities that a walk starts from.

    Attributes:
        entity: the seed; None where it is several.
        share: of all that starts.
        restart: where it starts, summing to 1.
    """

    entity: int | None
    share: float
    restart: SparseVector


def anchors_of(restart: SparseVector, n_entities: int) -> list[Anchor]:
    """Return the anchors of a walk: its heaviest entity seeds, and the other ones."""
    entities = np.flatnonzero((restart.places < n_entities) & (restart.values > 0))
    entities = entities[np.argsort(-restart.values[entities], kind="stable")]
    anchors = []
    for rows in [*entities[:ANCHORS, None], entities[ANCHORS:]]:
        if len(rows):
            weights = restart.values[rows]
            start = SparseVector(restart.length, restart.places[rows], weights / weights.sum())
            alone = int(start.places[0]) if len(rows) == 1 else None
            anchors.append(Anchor(alone, float(weights.sum() / restart.values.sum()), start))
    return anchors


def converged(
    ranking: Sequence[tuple[int, float]],
    anchors: Sequence[Anchor],
    reach_from: Callable[[SparseVector], SparseVector],
    n_entities: int,
    strength: float,
) -> list[tuple[int, float]]:
    """Rank passages by their scores, mixed with the geometric mean of what each anchor alone gives them.

    score^(1 - strength) x (the best score x Π (reach / the best reach + `_LEAST`)^share)^strength, with the anchors'
    shares scaled to sum 1. Where one anchor stands alone, the ranking stays as it is.

    Args:
        ranking: (passage, score) of the walk from all seeds, best first; a passage without a score keeps none.
        anchors: of that walk.
        reach_from: returns the PageRank of a walk from one anchor alone.
        n_entities: the node of the first passage.
        strength: the part of the geometric mean, in [0, 1].
    """
    if len(anchors) < 2 or not ranking:
        return list(ranking)
    rows, scores = (np.array(column) for column in zip(*ranking, strict=True))
    mean, whole = np.zeros(len(scores)), sum(anchor.share for anchor in anchors)
    for anchor in anchors:
        reach = reach_from(anchor.restart).at(n_entities + rows)
        mean += anchor.share / whole * np.log(reach / (reach.max() or 1.0) + _LEAST)
    with np.errstate(divide="ignore"):
        mixed = np.exp((1 - strength) * np.log(scores) + strength * (np.log(scores.max()) + mean))
    order = np.argsort(-mixed, kind="stable")
    return list(zip(rows[order].tolist(), mixed[order].tolist(), strict=True))
