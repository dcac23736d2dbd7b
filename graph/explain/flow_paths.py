"""The paths by which a walk's mass comes from a seed to a passage.

The mass along a path is what starts at its seed, times damping x share of every step. The path with most of it is a
shortest path, where a step's length is -log(damping x share): Dijkstra's algorithm, from the passage backwards, finds
the best path from every seed at once.

Edges to passages carry most of a walk's mass, so that the heaviest paths seldom tell what the graph knows. Where they
take no fact, the best path that comes by a fact to a name of the passage is told, too: of the best ways from all seeds
(Dijkstra's algorithm once more, forwards), each followed by a fact and the step to the passage, the one with most mass
that visits no node twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import IS_FACT_KIND
from graph.explain.flows import Flows

SHOWN_PATHS = 3
"""Paths a passage, each from another seed."""

FAINTEST = 1e-3
"""A path that brings less than this share of the best one's mass is not told."""

Bools = NDArray[np.bool_]


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


def told_paths(
    flows: Flows,
    nodes: Sequence[int],
    edges: Bools | None = None,
    seeds: Bools | None = None,
) -> list[list[FlowPath]]:
    """Return for each node its best paths and, where none of them takes a fact, the best one by a fact, as the last.

    That one is told however little it brings, and may start where another one does.

    Args:
        flows: of the walk.
        nodes: where the paths are to lead.
        edges: which edges a path may take; all of them without.
        seeds: which nodes a path may start at, of those where mass starts; all of them without.
    """
    search = PathSearch(flows, edges, seeds)
    paths_of_flows = []
    for node in nodes:
        paths = search.best_to(node)
        if not any(IS_FACT_KIND[flows.graph.kind[step.edge]] for path in paths for step in path.steps):
            paths.extend(search.by_fact_to(node))
        paths_of_flows.append(paths)
    return paths_of_flows


class PathSearch:
    """Finds the paths by which most of a walk's mass comes.

    Args:
        flows: of the walk.
        edges: which edges a path may take; all of them without.
        seeds: which nodes a path may start at, of those where mass starts; all of them without.
    """

    def __init__(self, flows: Flows, edges: Bools | None = None, seeds: Bools | None = None) -> None:
        graph, n_nodes = flows.graph, flows.graph.n_nodes
        self._flows = flows
        self._seeds = np.flatnonzero((flows.restart > 0) & (True if seeds is None else seeds))
        shares = np.concatenate([flows.forward_share, flows.backward_share])
        taken = (shares > 0) & (flows.damping > 0)
        if edges is not None:
            taken &= np.concatenate([edges, edges])
        arcs = np.flatnonzero(taken)
        of_edge = arcs % max(1, len(graph))
        leaves = np.concatenate([graph.source, graph.target])[arcs].astype(np.int64)
        enters = np.concatenate([graph.target, graph.source])[arcs].astype(np.int64)
        is_fact = IS_FACT_KIND[graph.kind[of_edge]]
        # By their ends; of several, first the one most taken, and of these the one of no fact.
        order = np.lexsort((is_fact, -shares[arcs], leaves, enters))
        self._leaves, self._enters, self._is_fact = leaves[order], enters[order], is_fact[order]
        self._edges, self._shares = of_edge[order], shares[arcs[order]]
        self._lengths = -np.log(flows.damping * self._shares)
        self._ends = self._enters * n_nodes + self._leaves
        self._is_best = np.diff(self._ends, prepend=-1) > 0

    def best_to(self, node: int, limit: int = SHOWN_PATHS) -> list[FlowPath]:
        """Return the best paths to a node, each from another seed, best first, ties by the seed's index.

        Those that bring less than `FAINTEST` of what the best one brings are left out.
        """
        from scipy.sparse.csgraph import dijkstra

        seeds = self._seeds
        distances, following = dijkstra(self._backwards, indices=node, return_predecessors=True)
        masses = self._flows.restart[seeds] * np.exp(-distances[seeds])
        is_heavy = (masses > 0) & (masses >= FAINTEST * masses.max(initial=0.0))
        best = np.argsort(-masses, kind="stable")[: min(limit, int(is_heavy.sum()))]
        ways = (_chain(seed, following) for seed in seeds[best].tolist())
        return [self._path(way, self._arcs_along(way)) for way in ways]

    def by_fact_to(self, node: int) -> list[FlowPath]:
        """Return the best path that comes by a fact to a name of a passage, if there is one."""
        reached, before = self._reached
        to_passage = self._is_best & (self._enters == node)
        last = np.full(len(before), np.inf)
        last[self._leaves[to_passage]] = self._lengths[to_passage]
        lengths = np.where(self._is_fact, reached[self._leaves] + self._lengths + last[self._enters], np.inf)
        order = np.argsort(lengths, kind="stable")
        for fact in order[np.isfinite(lengths[order])].tolist():
            way = _chain(self._leaves.item(fact), before)[-2::-1]
            name = self._enters.item(fact)
            if name not in way and node not in way:
                arcs = [*self._arcs_along(way), fact, *self._arcs_along([name, node])]
                return [self._path([*way, name, node], arcs)]
        return []

    @cached_property
    def _backwards(self) -> Any:
        """The lengths of the most taken arcs, by the node that each enters and then the one that it leaves."""
        from scipy.sparse import csr_array

        ends, n_nodes = (self._enters[self._is_best], self._leaves[self._is_best]), self._flows.graph.n_nodes
        return csr_array((self._lengths[self._is_best], ends), shape=(n_nodes, n_nodes))

    @cached_property
    def _reached(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """-log of the most mass that one path brings to each node, and the node before; for a seed, one beyond all."""
        from scipy.sparse import block_array, csr_array
        from scipy.sparse.csgraph import dijkstra

        n_nodes, seeds = self._flows.graph.n_nodes, self._seeds
        begin = csr_array((-np.log(self._flows.restart[seeds]), (np.zeros_like(seeds), seeds)), shape=(1, n_nodes))
        layers = block_array([[self._backwards.T, None], [begin, csr_array((1, 1))]], format="csr")
        reached, before = dijkstra(layers, indices=n_nodes, return_predecessors=True)
        return reached, before

    def _arcs_along(self, nodes: Sequence[int]) -> list[int]:
        """Return the most taken arcs between nodes that follow each other."""
        ends = [target * self._flows.graph.n_nodes + source for source, target in pairwise(nodes)]
        return [int(place) for place in np.searchsorted(self._ends, ends)]

    def _path(self, nodes: Sequence[int], arcs: Sequence[int]) -> FlowPath:
        steps = tuple(
            FlowStep(source, target, self._edges.item(arc), self._shares.item(arc))
            for (source, target), arc in zip(pairwise(nodes), arcs, strict=True)
        )
        mass = self._flows.restart.item(nodes[0])
        for step in steps:
            mass *= self._flows.damping * step.share
        return FlowPath(nodes[0], nodes[-1], mass, steps)


def _chain(node: int, following: NDArray[np.int32]) -> list[int]:
    """Return a node and those that follow it, one after the other."""
    nodes = []
    while node >= 0:
        nodes.append(node)
        node = following.item(node)
    return nodes
