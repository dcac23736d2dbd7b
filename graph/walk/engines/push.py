"""The engine ``push``: mass flows from the seeds, node by node, and stops where too little of it is left to matter.

Forward push (Andersen, Chung and Lang 2006) on the typed graph: a node with more residual mass than ``threshold`` for
each of its arcs keeps 1 - damping of it and passes the rest on. The cost is bounded by the threshold, not by the size
of the graph; what has not been pushed is the error, exactly.

Two things halve the arcs that it follows. A node pushes a little more than it holds (successive over-relaxation), and
mass that returns pays the debt. And the threshold falls in steps, so that mass gathers before it is pushed on.
"""

from __future__ import annotations

import math
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

THRESHOLD = 3.5e-6
"""Residual mass an arc below which a node is left alone, times 1 - damping: chosen for the best 20 passages."""

_STEPS = (16, 4, 1)
"""Multiples of the threshold, one after the other."""

_ROUNDING = 1e-12
"""The greatest error of adding many small shares, in L1."""

_LEAST_EXPONENT = 14
"""Cells of a frontier as a power of 2, at first."""

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
) -> tuple[SparseVector, float, int]:
    """Return the PageRank of the nodes that mass came to, a bound on its L1 distance to the solution, and the cost.

    The cost is how many arcs were followed. No node but those has any PageRank here.

    Args:
        graph: the graph.
        restart: sums to 1; best of few nodes, since every seed is pushed.
        factors: one multiplier a kind of edge and side.
        damping: probability of following an edge, in [0, 1).
        threshold: residual mass an arc that may be left, above 0; ``THRESHOLD`` x (1 - damping) where None.

    Raises:
        DependencyMissing: numba is not installed.
        WorkspaceDamaged: arcs of the snapshot lead nowhere.
    """
    kernels = compiled()
    threshold = THRESHOLD * (1 - damping) if threshold is None else threshold
    state = _Mass(graph, np.stack([factors.from_entity, factors.from_passage]), damping, kernels)
    state.make_room(len(restart.places))
    seeds = restart.places.astype(np.uint32)
    returned, arcs = 1.0, 0
    for step in _STEPS:
        kernels.wake(threshold * step, state.frontier)
        while returned or state.is_waiting:
            kernels.give(seeds, restart.values * returned, graph.n_arcs, threshold * step, state.frontier)
            returned, followed = state.push(threshold * step)
            arcs += followed
    # Of what is left, 1 - damping would stay where it is; scaling to a sum of 1 gives as much away once more.
    nodes, scores, left = kernels.settled(state.frontier, 1 - damping)
    return SparseVector(graph.n_nodes, nodes, scores / scores.sum()), 2 * damping * left + _ROUNDING, arcs


def _stretch(damping: float) -> float:
    """Return by how much more than it holds a node pushes: at best as in ``matrix``, and never so much that it loops.

    A push of ω r takes |r| from its node, leaves (ω - 1) |r| there and gives damping ω |r| to others. So what is left
    to push falls by (2 - ω (1 + damping)) |r| at least: by an eighth of what a plain push takes away, or more.
    """
    return min(2 / (1 + math.sqrt(1 - damping**2)), (15 + damping) / (8 * (1 + damping)))


class _Mass:
    """The mass of a walk, in a frontier that grows with what is touched."""

    def __init__(self, graph: TypedGraph, factors: NDArray[np.float64], damping: float, kernels: ModuleType) -> None:
        self._graph, self._factors, self._damping, self._kernels = graph, factors, damping, kernels
        self.frontier: Frontier = kernels.new_frontier(_LEAST_EXPONENT)

    @property
    def is_waiting(self) -> bool:
        """Whether any node waits to push."""
        return bool(self.frontier.place[1] > 0)

    def make_room(self, nodes: int) -> None:
        """See to it that so many nodes more can be touched."""
        needed = int(self.frontier.place[2]) + nodes
        if needed > len(self.frontier.touched):
            larger = self._kernels.new_frontier((2 * needed - 1).bit_length())
            self._kernels.move(self.frontier, larger)
            self.frontier = larger

    def push(self, threshold: float) -> tuple[float, int]:
        """Push until none waits; return the mass given back to the restart, and how many arcs were followed."""
        graph, stretch = self._graph, _stretch(self._damping)
        returned, followed = 0.0, 0
        while True:
            returned, followed, end = self._kernels.push_mass(
                graph.forward,
                graph.backward,
                graph.n_arcs,
                graph.n_entities,
                self._factors,
                self._damping,
                stretch,
                threshold,
                self.frontier,
                returned,
                followed,
            )
            if end == self._kernels.DAMAGED:
                raise WorkspaceDamaged(
                    "The snapshot is damaged: arcs of its graph lead nowhere", "Run `mara doctor --repair`"
                )
            if end == self._kernels.DONE:
                return returned, followed
            self.make_room(len(self.frontier.touched) + 1 - int(self.frontier.place[2]))
