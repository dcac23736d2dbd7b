"""The paths by which a walk's mass comes from a seed to a passage.

The mass along a path is what starts at its seed, times damping x share of every step. The path with most of it is a
shortest path, where a step's length is -log(damping x share): Dijkstra's algorithm, from the passage backwards, finds
the best path from every seed at once.

Edges to passages carry most of a walk's mass, so that the heaviest paths seldom tell what the graph knows. Where they
take no fact, the best path over one is told, too: the best among those that visit no node twice, since otherwise going
to a neighbour by a fact and straight back would do. Two searches find it. One goes forwards from all seeds at once,
through two layers of the graph, "no fact yet" and "a fact taken" (Dijkstra): it tells with how much mass each node can
be reached at best. The other goes backwards from the passage, path by path, the most promising by those figures first
(A*: Hart, Nilsson and Raphael, "A formal basis for the heuristic determination of minimum cost paths", 1968), so that
the first that is whole is the best.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import IS_FACT_KIND
from graph.explain.flows import Flows

SHOWN_PATHS = 3
"""Paths a passage, each from another seed."""

FAINTEST = 1e-3
"""A path that brings less than this share of the best one's mass is not told."""

MOST_TRIED = 2000
"""Ends of paths that are gone on with for one passage; where none is whole by then, no path is told."""

Doubles = NDArray[np.float64]
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
    """Return for each node its best paths and, where none of them takes a fact, the best one that does, as the last.

    That one is told however little it brings, and may start where another one does.

    Args:
        flows: of the walk.
        nodes: where the paths are to lead.
        edges: which edges a path may take; all of them without.
        seeds: which nodes a path may start at, of those where mass starts; all of them without.
    """
    arcs, starts = _taken_arcs(flows, edges), np.flatnonzero((flows.restart > 0) & (True if seeds is None else seeds))
    best, over_facts = _BestPaths(flows, arcs, starts), _FactPaths(flows, arcs, starts)
    paths_of_flows = []
    for node in nodes:
        paths = best.paths_to(node, SHOWN_PATHS)
        if not any(IS_FACT_KIND[flows.graph.kind[step.edge]] for path in paths for step in path.steps):
            paths.extend(over_facts.paths_to(node))
        paths_of_flows.append(paths)
    return paths_of_flows


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs in the order of the nodes that they enter, and then of those that they leave.

    Attributes:
        starts: shape (n_nodes + 1,): the arcs that enter node v stand from starts[v] to starts[v + 1].
        leaves: the node that each leaves.
        enters: the node that each enters.
        edges: which edge each is of.
        is_fact: whether that stands for facts.
        shares: of the mass that walks on from where it leaves, the part that takes it, in (0, 1].
        lengths: -log(damping x share).
    """

    starts: NDArray[np.int32]
    leaves: NDArray[np.int32]
    enters: NDArray[np.int32]
    edges: NDArray[np.intp]
    is_fact: NDArray[np.bool_]
    shares: NDArray[np.float64]
    lengths: NDArray[np.float64]

    def strongest(self) -> _Arcs:
        """Return, of two between the same nodes, the one most taken; that of no fact where both are."""
        same = (self.enters[1:] == self.enters[:-1]) & (self.leaves[1:] == self.leaves[:-1])
        fact_is_more = self.shares[1:] > self.shares[:-1]
        kept = np.ones(len(self.edges), dtype=bool)
        kept[:-1] &= ~(same & fact_is_more)
        kept[1:] &= ~(same & ~fact_is_more)
        starts = np.searchsorted(self.enters[kept], np.arange(len(self.starts))).astype(np.int32)
        return _Arcs(starts, *(getattr(self, column.name)[kept] for column in fields(self)[1:]))


def _taken_arcs(flows: Flows, edges: NDArray[np.bool_] | None = None) -> _Arcs:
    """Return the arcs that mass takes: from one node to another, the most taken of no fact and the most taken of facts.

    Args:
        flows: of the walk.
        edges: those that may be taken; all of them without.
    """
    graph, n_nodes = flows.graph, flows.graph.n_nodes
    shares = np.concatenate([flows.forward_share, flows.backward_share])
    taken = (shares > 0) & (flows.damping > 0)
    if edges is not None:
        taken &= np.concatenate([edges, edges])
    arcs = np.flatnonzero(taken)
    edge = arcs % max(1, len(graph))
    leaves = np.concatenate([graph.source, graph.target])[arcs]
    enters = np.concatenate([graph.target, graph.source])[arcs]
    is_fact = IS_FACT_KIND[graph.kind[edge]]
    sort = (enters.astype(np.int64) * n_nodes + leaves) * 2 + is_fact
    order = np.lexsort((-shares[arcs], sort))
    first = order[np.diff(sort[order], prepend=-1) > 0]
    return _Arcs(
        starts=np.searchsorted(enters[first], np.arange(n_nodes + 1)).astype(np.int32),
        leaves=leaves[first].astype(np.int32),
        enters=enters[first].astype(np.int32),
        edges=edge[first],
        is_fact=is_fact[first],
        shares=shares[arcs[first]],
        lengths=-np.log(flows.damping * shares[arcs[first]]),
    )


class _BestPaths:
    """Finds the paths by which most of a walk's mass comes."""

    def __init__(self, flows: Flows, arcs: _Arcs, seeds: NDArray[np.intp]) -> None:
        from scipy.sparse import csr_array

        n_nodes = flows.graph.n_nodes
        self._flows, self._seeds = flows, seeds
        self._arcs = arcs = arcs.strongest()
        self._backwards: Any = csr_array((arcs.lengths, arcs.leaves, arcs.starts), shape=(n_nodes, n_nodes))

    def paths_to(self, node: int, limit: int) -> list[FlowPath]:
        """Return the best paths to a node, each from another seed, best first, ties by the seed's index.

        Those that bring less than `FAINTEST` of what the best one brings are left out.
        """
        from scipy.sparse.csgraph import dijkstra

        seeds = self._seeds
        distances, following = dijkstra(self._backwards, indices=node, return_predecessors=True)
        masses = self._flows.restart[seeds] * np.exp(-distances[seeds])
        is_heavy = (masses > 0) & (masses >= FAINTEST * masses.max(initial=0.0))
        best = np.argsort(-masses, kind="stable")[: min(limit, int(is_heavy.sum()))]
        return [self._path(seed, node, following) for seed in seeds[best].tolist()]

    def _path(self, seed: int, node: int, following: NDArray[np.int32]) -> FlowPath:
        steps: list[FlowStep] = []
        here = seed
        while here != node:
            steps.append(self._step(here, following.item(here)))
            here = steps[-1].target
        return _path_of(self._flows, seed, node, tuple(steps))

    def _step(self, source: int, target: int) -> FlowStep:
        arcs = self._arcs
        low, high = arcs.starts.item(target), arcs.starts.item(target + 1)
        place = low + int(np.searchsorted(arcs.leaves[low:high], source))
        return FlowStep(source, target, arcs.edges.item(place), arcs.shares.item(place))


@dataclass(frozen=True, slots=True)
class _Ending:
    """The end of a path: a node and the way from there.

    Attributes:
        node: where it begins.
        takes_fact: whether a fact is on its way.
        length: -log of what of the mass goes all that way.
        steps: its way, in order.
        bound: the least length of a path that ends so, from its seed.
        is_whole: whether it is such a path itself, rather than an ending that may be gone on with.
    """

    node: int
    takes_fact: bool
    length: float
    steps: tuple[FlowStep, ...]
    bound: float
    is_whole: bool


class _FactPaths:
    """Finds the best paths over facts of one walk."""

    def __init__(self, flows: Flows, arcs: _Arcs, seeds: NDArray[np.intp]) -> None:
        self._flows, self._arcs, self._seeds = flows, arcs, seeds
        self._start = np.full(flows.graph.n_nodes, np.inf)
        self._start[seeds] = -np.log(flows.restart[seeds])

    def paths_to(self, node: int) -> list[FlowPath]:
        """Return the best path over a fact, if there is one."""
        waiting: list[tuple[float, int, _Ending, Iterator[_Ending]]] = []
        longer = self._longer(_Ending(node, False, 0.0, (), 0.0, False))
        for tried in range(MOST_TRIED):
            _wait(waiting, tried, longer)
            if not waiting:
                return []
            _, number, ending, siblings = heapq.heappop(waiting)
            if ending.is_whole:
                return [_path_of(self._flows, ending.node, node, ending.steps)]
            _wait(waiting, number, siblings)
            longer = self._longer(ending)
        return []

    @cached_property
    def _reached(self) -> tuple[Doubles, Doubles]:
        """-log of the most mass that one path brings to each node: any path, and one over a fact; inf for none."""
        from scipy.sparse import block_array, csr_array
        from scipy.sparse.csgraph import dijkstra

        n_nodes, either, facts = len(self._start), self._arcs.strongest(), self._arcs.is_fact

        def matrix(lengths: Doubles, rows: NDArray[np.integer], columns: NDArray[np.integer], n_rows: int) -> Any:
            return csr_array((lengths, (rows, columns)), shape=(n_rows, n_nodes))

        yet, taken = (
            matrix(self._arcs.lengths[kept], self._arcs.leaves[kept], self._arcs.enters[kept], n_nodes)
            for kept in (~facts, facts)
        )
        after = matrix(either.lengths, either.leaves, either.enters, n_nodes)
        begin = matrix(self._start[self._seeds], np.zeros_like(self._seeds), self._seeds, 1)
        layers = block_array([[yet, taken, None], [None, after, None], [begin, None, csr_array((1, 1))]], format="csr")
        lengths = dijkstra(layers, indices=2 * n_nodes)
        without, over_fact = lengths[:n_nodes], lengths[n_nodes : 2 * n_nodes]
        return np.minimum(without, over_fact), over_fact

    def _longer(self, ending: _Ending) -> Iterator[_Ending]:
        """Yield the paths one step longer than an ending, the most promising first."""
        all_arcs, (any_way, by_fact) = self._arcs, self._reached
        arcs = np.arange(all_arcs.starts[ending.node], all_arcs.starts[ending.node + 1])
        arcs = arcs[~np.isin(all_arcs.leaves[arcs], [ending.node, *(step.target for step in ending.steps)])]
        takes_fact = all_arcs.is_fact[arcs] | ending.takes_fact
        length = ending.length + all_arcs.lengths[arcs]
        nodes = all_arcs.leaves[arcs]
        onward = length + np.where(takes_fact, any_way[nodes], by_fact[nodes])
        whole = np.where(takes_fact, length + self._start[nodes], np.inf)
        bound = np.concatenate([whole, onward])
        order = np.argsort(bound, kind="stable")
        for place in order[np.isfinite(bound[order])].tolist():
            at = place % len(arcs)
            node, arc = nodes.item(at), arcs.item(at)
            step = FlowStep(node, ending.node, all_arcs.edges.item(arc), all_arcs.shares.item(arc))
            yield _Ending(
                node,
                takes_fact.item(at),
                length.item(at),
                (step, *ending.steps),
                bound.item(place),
                is_whole=place < len(arcs),
            )


def _path_of(flows: Flows, seed: int, node: int, steps: tuple[FlowStep, ...]) -> FlowPath:
    mass = flows.restart.item(seed)
    for step in steps:
        mass *= flows.damping * step.share
    return FlowPath(seed, node, mass, steps)


def _wait(waiting: list[tuple[float, int, _Ending, Iterator[_Ending]]], number: int, longer: Iterator[_Ending]) -> None:
    """Put the next of some paths among those that wait; of each ending's, one alone waits at a time."""
    if (first := next(longer, None)) is not None:
        heapq.heappush(waiting, (first.bound, number, first, longer))
