"""The paths by which most mass comes from a seed to a passage.

The mass along a path is what starts at its seed, times damping x share of every step. The path with most of it is a
shortest path, where a step's length is -log(damping x share): Dijkstra's algorithm, from the passage backwards, finds
the best path from every seed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.flows import Flows

SHOWN_PATHS = 3
"""Paths a passage, each from another seed."""

FAINTEST = 1e-3
"""A path that brings less than this share of the best one's mass is not told."""


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One step of a path: from which node, to which, over which edge, and the share of the mass that takes it."""

    source: int
    target: int
    edge: int
    share: float


@dataclass(frozen=True, slots=True)
class FlowPath:
    """A best path.

    Attributes:
        seed: the node that it starts at.
        node: the node that it leads to; the seed itself for a path without steps.
        mass: what started at the seed and came along exactly these edges.
        steps: in order.
    """

    seed: int
    node: int
    mass: float
    steps: tuple[FlowStep, ...]


def best_paths(
    flows: Flows,
    nodes: Sequence[int],
    edges: NDArray[np.bool_] | None = None,
    seeds: NDArray[np.bool_] | None = None,
    limit: int = SHOWN_PATHS,
) -> list[list[FlowPath]]:
    """Return for each node the best paths to it, each from another seed, best first, ties by the seed's index.

    Those that bring less than `FAINTEST` of what the best one brings are left out.

    Args:
        flows: of the walk.
        nodes: where the paths are to lead.
        edges: which edges a path may take; all of them without.
        seeds: which nodes a path may start at, of those where mass starts; all of them without.
        limit: how many paths a node.
    """
    starts = flows.restart > 0
    if seeds is not None:
        starts &= seeds
    arcs = _Arcs(flows, edges)
    return [arcs.paths_to(node, np.flatnonzero(starts), limit) for node in nodes]


class _Arcs:
    """The arcs of a walk as a search from their ends meets them: of several between two nodes, the one most taken."""

    def __init__(self, flows: Flows, edges: NDArray[np.bool_] | None) -> None:
        from scipy.sparse import csr_array

        graph, n_nodes = flows.graph, flows.graph.n_nodes
        shares = np.concatenate([flows.forward_share, flows.backward_share])
        taken = (shares > 0) & (flows.damping > 0)
        if edges is not None:
            taken &= np.concatenate([edges, edges])
        arcs = np.flatnonzero(taken)
        leaves = np.concatenate([graph.source, graph.target])[arcs]
        enters = np.concatenate([graph.target, graph.source])[arcs]
        pairs = enters.astype(np.int64) * n_nodes + leaves
        order = np.lexsort((-shares[arcs], pairs))
        first = order[np.diff(pairs[order], prepend=-1) > 0]
        self._flows = flows
        self._edges = arcs[first] % max(1, len(graph))
        self._shares = shares[arcs[first]]
        starts = np.searchsorted(enters[first], np.arange(n_nodes + 1)).astype(np.int32)
        lengths = -np.log(flows.damping * self._shares)
        self._backwards: Any = csr_array((lengths, leaves[first].astype(np.int32), starts), shape=(n_nodes, n_nodes))

    def paths_to(self, node: int, seeds: NDArray[np.intp], limit: int) -> list[FlowPath]:
        """Return the best paths to a node."""
        from scipy.sparse.csgraph import dijkstra

        distances, following = dijkstra(self._backwards, indices=node, return_predecessors=True)
        masses = self._flows.restart[seeds] * np.exp(-distances[seeds])
        told = (masses > 0) & (masses >= FAINTEST * masses.max(initial=0.0))
        best = np.argsort(-masses, kind="stable")[: min(limit, int(told.sum()))]
        return [self._path(seed, node, following) for seed in seeds[best].tolist()]

    def _path(self, seed: int, node: int, following: NDArray[np.int32]) -> FlowPath:
        steps: list[FlowStep] = []
        here, mass = seed, self._flows.restart.item(seed)
        while here != node:
            step = self._step(here, following.item(here))
            mass *= self._flows.damping * step.share
            steps.append(step)
            here = step.target
        return FlowPath(seed, node, mass, tuple(steps))

    def _step(self, source: int, target: int) -> FlowStep:
        starts, leaves = self._backwards.indptr, self._backwards.indices
        low, high = starts.item(target), starts.item(target + 1)
        place = low + int(np.searchsorted(leaves[low:high], source))
        return FlowStep(source, target, self._edges.item(place), self._shares.item(place))
