"""The engine ``push``: mass flows from the seeds, node by node, and stops where too little of it is left to matter.

Forward push (Andersen, Chung and Lang 2006) on the typed graph: a node with more residual mass than ``threshold`` for
each of its arcs keeps 1 - damping of it and passes the rest on. The cost is bounded by the threshold, not by the size
of the graph; what has not been pushed is the error, exactly.
"""

from __future__ import annotations

import threading
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.errors import DependencyMissing, WorkspaceDamaged
from graph.walk.factors import EdgeFactors
from graph.walk.sparse import SparseVector

if TYPE_CHECKING:
    from graph.walk.engines.compiled import Frontier

THRESHOLD = 2e-6
"""Residual mass an arc below which a node is left alone, times 1 - damping: chosen for the best 20 passages."""

_BUDGET = 100_000
"""Arcs followed before the best are looked at again."""

_ROUNDING = 1e-12
"""The greatest error of adding many small shares, in L1."""

_LEAST_EXPONENT, _MOST_KEPT_EXPONENT = 14, 20
"""Cells of a frontier as powers of 2: at first, and of the largest that is kept for the next walk (40 MiB)."""

_MOST_SPARE = 8

_spare: list[Frontier] = []
"""Empty frontiers, for any thread."""

_loading = threading.Lock()


def compiled() -> ModuleType:
    """Return the compiled loop; its first call in a process loads it (half a second) or compiles it.

    Raises:
        DependencyMissing: numba is not installed, or does not work with what is.
    """
    with _loading:
        try:
            from graph.walk.engines import compiled as kernels
        except ImportError as fault:
            raise DependencyMissing(
                f"The engine push needs numba ({fault})",
                "Install it with `pip install 'mara-rag[push]'`, or choose engine matrix",
            ) from fault
        return kernels


def is_available() -> bool:
    """Tell whether the engine can be used here."""
    try:
        compiled()
    except DependencyMissing:
        return False
    return True


def solve(
    graph: TypedGraph,
    restart: SparseVector,
    factors: EdgeFactors,
    damping: float,
    *,
    threshold: float | None = None,
    top_k: int | None = None,
) -> tuple[SparseVector, float, int]:
    """Return the PageRank of the nodes that mass came to, a bound on its L1 distance to the solution, and the cost.

    The cost is how many arcs were followed. No node but those has any PageRank here.

    Args:
        graph: the graph.
        restart: sums to 1; best of few nodes, since every seed is pushed.
        factors: one multiplier a kind of edge and side.
        damping: probability of following an edge, in [0, 1).
        threshold: residual mass an arc that may be left, above 0; ``THRESHOLD`` x (1 - damping) where None.
        top_k: stop earlier once the order of the best ``top_k`` passages cannot change any more.

    Raises:
        DependencyMissing: numba is not installed.
        WorkspaceDamaged: arcs of the snapshot lead nowhere.
    """
    kernels = compiled()
    threshold = THRESHOLD * (1 - damping) if threshold is None else threshold
    state = _Mass(graph, np.stack([factors.from_entity, factors.from_passage]), damping, threshold, kernels)
    try:
        state.make_room(len(restart.places))
        seeds = restart.places.astype(np.uint32)
        left, returned, arcs = 1.0, 1.0, 0
        while returned > 0 or state.is_waiting:
            kernels.give(seeds, restart.values * returned, graph.n_arcs, threshold, state.frontier)
            settled, returned, followed = state.push(_BUDGET)
            arcs += followed
            left = max(0.0, left - settled)
            slack = damping * left + (1 - damping) * returned
            if top_k and slack < 1 / top_k and _is_certain(state.of_passages(), graph.n_passages, slack, top_k):
                break
        # The scores so far are too small, by ``slack`` in all; scaling to a sum of 1 gives as much away once more.
        nodes, scores = state.settled()
    finally:
        state.give_back()
    return SparseVector(graph.n_nodes, nodes, scores * (1 / (1 - slack))), 2 * slack + _ROUNDING, arcs


class _Mass:
    """The mass of a walk, in a frontier that grows with what is touched, and is emptied for the next walk to use."""

    def __init__(
        self, graph: TypedGraph, factors: NDArray[np.float64], damping: float, threshold: float, kernels: ModuleType
    ) -> None:
        self._graph, self._factors, self._damping, self._threshold = graph, factors, damping, threshold
        self._kernels = kernels
        try:
            self.frontier: Frontier = _spare.pop()
        except IndexError:
            self.frontier = kernels.new_frontier(_LEAST_EXPONENT)

    @property
    def is_waiting(self) -> bool:
        """Whether any node waits to push."""
        return bool(self.frontier.place[1] > 0)

    def make_room(self, nodes: int) -> None:
        """See to it that so many nodes more can be touched."""
        needed = int(self.frontier.place[2]) + nodes
        if needed > len(self.frontier.queue):
            larger = self._kernels.new_frontier((2 * needed - 1).bit_length())
            self._kernels.move(self.frontier, larger)
            self.frontier = larger

    def push(self, budget: int) -> tuple[float, float, int]:
        """Push until none waits or ``budget`` arcs were followed; see `kernels.push_mass`."""
        graph = self._graph
        settled, returned, followed = 0.0, 0.0, 0
        while True:
            settled, returned, followed, end = self._kernels.push_mass(
                graph.forward,
                graph.backward,
                graph.n_arcs,
                graph.n_entities,
                self._factors,
                self._damping,
                self._threshold,
                self.frontier,
                budget,
                settled,
                returned,
                followed,
            )
            if end == self._kernels.DAMAGED:
                raise WorkspaceDamaged(
                    "The snapshot is damaged: arcs of its graph lead nowhere", "Run `mara doctor --repair`"
                )
            if end == self._kernels.DONE:
                return settled, returned, followed
            self.make_room(len(self.frontier.queue) + 1 - int(self.frontier.place[2]))

    def settled(self) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """Return the touched nodes, and the mass of each that came to rest, or would without a push."""
        nodes, masses = self._kernels.settled(self.frontier, 0, 1 - self._damping)
        return nodes, masses

    def of_passages(self) -> NDArray[np.float64]:
        """Return that mass of the passages among them."""
        masses: NDArray[np.float64]
        _, masses = self._kernels.settled(self.frontier, self._graph.n_entities, 1 - self._damping)
        return masses

    def give_back(self) -> None:
        """Empty the frontier for the next walk; a very large one is let go."""
        if len(self.frontier.cells) <= 1 << _MOST_KEPT_EXPONENT and len(_spare) < _MOST_SPARE:
            self._kernels.clear(self.frontier)
            _spare.append(self.frontier)


def _is_certain(settled: NDArray[np.float64], n_passages: int, slack: float, top_k: int) -> bool:
    """Tell whether nothing that is still to come can change the order of the best ``top_k`` passages.

    Args:
        settled: of the passages that were touched; all others have nothing.
        n_passages: how many there are.
        slack: what is still to come.
        top_k: how many are wanted.
    """
    compared = min(n_passages, top_k + 1)
    most = settled if len(settled) <= compared else np.partition(settled, -compared)[-compared:]
    best = np.concatenate([-np.sort(-most), np.zeros(compared - len(most))])
    return bool((best[:-1] - best[1:] > slack).all())
