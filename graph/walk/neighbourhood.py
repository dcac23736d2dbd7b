"""Walks that stay near a few nodes: how far each of several starts reaches them, at a cost that no graph's size raises.

All walks go side by side among these nodes, their neighbours and the starts. Mass that leaves this neighbourhood is
lost, and a walk takes a few steps: enough to compare the nodes, where a score would need the whole graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import Arcs, TypedGraph
from graph.errors import WorkspaceDamaged
from graph.walk.factors import EdgeFactors
from graph.walk.sparse import SparseVector

STEPS = 8
"""Edges that a walk follows at most."""

Doubles = NDArray[np.float64]
Nodes = NDArray[np.intp]


def reach(
    graph: TypedGraph, nodes: Nodes, starts: Sequence[SparseVector], factors: EdgeFactors, damping: float
) -> Doubles:
    """Return what walks from several starts give some nodes, at most their PageRank: shape (len(starts), len(nodes)).

    Args:
        graph: the graph.
        nodes: what is to be reached.
        starts: where each walk starts; each sums to 1.
        factors: one multiplier a kind of edge and side.
        damping: probability of following an edge, in [0, 1).

    Raises:
        WorkspaceDamaged: arcs of the snapshot lead nowhere.
    """
    _, neighbours, _ = _arcs_of(graph, nodes, factors)
    near = np.unique(np.concatenate([nodes, neighbours, *(start.places for start in starts)]))
    source, target, weight = _arcs_of(graph, near, factors)
    leaving = np.bincount(source, weight, len(near))
    is_near = np.zeros(graph.n_nodes, dtype=np.bool_)
    is_near[near] = True
    stays = np.flatnonzero(is_near[target] & (weight > 0))
    source, place = source[stays], np.searchsorted(near, target[stays])
    share = np.tile(damping * weight[stays] / leaving[source], len(starts))
    # One row a walk, each behind the other in a single array.
    rows = len(near) * np.arange(len(starts))[:, None]
    here, there = (rows + source).ravel(), (rows + place).ravel()
    restarting = np.zeros(rows.size * len(near))
    for first, start in zip(rows[:, 0], starts, strict=True):
        restarting[first + np.searchsorted(near, start.places)] = (1 - damping) * start.values
    mass = restarting
    for _ in range(STEPS):
        mass = restarting + np.bincount(there, mass[here] * share, mass.size)
    reached: Doubles = mass[rows + np.searchsorted(near, nodes)]
    return reached


def _arcs_of(graph: TypedGraph, nodes: Nodes, factors: EdgeFactors) -> tuple[Nodes, Nodes, Doubles]:
    """Return all arcs that leave some nodes: the place of each one's node among them, where it leads, its weight."""
    sides = ((graph.forward, factors.from_source), (graph.backward, factors.from_target))
    parts = [_arcs_of_side(arcs, nodes, by_kind) for arcs, by_kind in sides]
    source, target, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if len(target) and not 0 <= target.min() <= target.max() < graph.n_nodes:
        raise WorkspaceDamaged("The snapshot is damaged: arcs of its graph lead nowhere", "Run `mara doctor --repair`")
    return source, target, weight


def _arcs_of_side(arcs: Arcs, nodes: Nodes, by_kind: Doubles) -> tuple[Nodes, Nodes, Doubles]:
    first = arcs.starts[nodes]
    counts = arcs.starts[nodes + 1] - first
    ends = np.cumsum(counts)
    at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + counts, counts)
    source = np.repeat(np.arange(len(nodes)), counts)
    return source, arcs.node[at], by_kind[arcs.kind[at]] * arcs.weight[at]
