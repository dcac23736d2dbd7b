"""Convergence: a passage that every anchor of a question reaches stands before one that a single anchor floods.

A walk adds up what its seeds send. So a passage beside one heavy seed can outweigh one to which all seeds lead, which
is what a question of several steps asks for. The best passages of the walk are therefore compared by how far each
anchor, an entity that it starts from, reaches them alone: their scores are mixed with the geometric mean of these
reaches, in which a lacking anchor costs much and a flood gains little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.walk.sparse import SparseVector

ANCHORS = 4
"""Entity seeds that are anchors of their own, the heaviest; the others are one together."""

COMPARED = 20
"""Passages, the best of the walk, that are compared; those after them count as not reached."""

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
    shares: Sequence[float],
    reached: NDArray[np.float64],
    strength: float,
) -> list[tuple[int, float]]:
    """Rank passages by their scores, mixed with the geometric mean of what each anchor alone gives them.

    score^(1 - strength) x (the best score x Π (reach / the best reach + `_LEAST`)^share)^strength.

    Args:
        ranking: (passage, score) of a walk, best first; a passage without a score keeps none.
        shares: of each anchor of that walk; scaled to sum 1.
        reached: what a walk from each anchor alone gives the first passages, shape (len(shares), passages compared).
        strength: the part of the geometric mean, in [0, 1].
    """
    if not ranking:
        return []
    rows, scores = (np.array(column) for column in zip(*ranking, strict=True))
    best = reached.max(axis=1, keepdims=True)
    parts = np.zeros((len(shares), len(rows)))
    np.divide(reached, best, out=parts[:, : reached.shape[1]], where=best > 0)
    mean = np.array(shares) / sum(shares) @ np.log(parts + _LEAST)
    with np.errstate(divide="ignore"):
        mixed = np.exp((1 - strength) * np.log(scores) + strength * (np.log(scores.max()) + mean))
    order = np.argsort(-mixed, kind="stable")
    return list(zip(rows[order].tolist(), mixed[order].tolist(), strict=True))
