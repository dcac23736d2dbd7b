"""The walk: relation-aware Personalized PageRank over typed edges, by one of three engines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.errors import BadInput
from graph.walk.engines import matrix, push, reference
from graph.walk.factors import EdgeFactors
from graph.walk.settings import Engine
from graph.walk.sparse import SparseVector

SPARSE_SEEDS = 1_000
"""Up to so many seeds, pushing from them is cheap."""

LARGE_GRAPH = 100_000
"""From so many edges on, pushing from few seeds is faster than going through all edges."""

SHORT_WALK, LARGE_FOR_SHORT_WALK = 0.6, 40_000
"""Up to that damping mass stays near its seeds, and pushing is faster from that many edges on."""


@dataclass(frozen=True)
class Walk:
    """The result of a walk.

    Attributes:
        reached: PageRank of the nodes that have any, summing to 1.
        engine: which engine computed it; never ``auto``.
        error: the scores are at most so far from the solution, as a sum over all nodes.
        arcs: how many arcs were followed; PRPACK does not tell.
    """

    reached: SparseVector
    engine: Engine
    error: float
    arcs: int | None = None

    @staticmethod
    def of(scores: NDArray[np.float64], engine: Engine, error: float, arcs: int | None = None) -> Walk:
        """Return the result whose scores are known of every node."""
        return Walk(SparseVector.of(scores), engine, error, arcs)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """PageRank of every node, made when it is first asked for."""
        return self.reached.dense()


def walk(
    graph: TypedGraph,
    restart: NDArray[np.float64] | SparseVector,
    factors: EdgeFactors,
    damping: float,
    engine: Engine = Engine.AUTO,
    *,
    tolerance: float = matrix.TOLERANCE,
) -> Walk:
    """Return the PageRank of every node.

    PR(v) = (1-d) r(v) + d Σ_u PR(u) w(u,v) / Σ_x w(u,x), with w = edge weight x factor of its kind, by the side it
    is left from. A node without outgoing weight gives its mass back to the restart vector. (HippoRAG 2; MARA-RAG
    phase 5.)

    Args:
        graph: the graph.
        restart: non-negative seed weights, one a node, or those of the seeds alone; normalised here.
        factors: one multiplier a kind of edge and side: finite and non-negative.
        damping: probability of following an edge, in [0, 1).
        engine: which engine computes it.
        tolerance: L1 distance to the solution at which ``matrix`` stops.

    Raises:
        BadInput: the restart vector has no positive weight or a negative one, the damping is out of range, or a
            factor is negative or no number.
        DependencyMissing: the engine is ``push`` and numba is not installed.
        WorkspaceDamaged: the engine is ``push``, and comes to arcs that lead nowhere.
    """
    _check(factors, damping)
    seeds = _normalise(restart, graph)
    chosen = choose_engine(engine, len(seeds.places), len(graph), damping)
    if chosen is Engine.PUSH:
        reached, error, arcs = push.solve(graph, seeds, factors, damping)
        return Walk(reached, chosen, error, arcs)
    if chosen is Engine.IGRAPH:
        return Walk.of(reference.solve(graph, seeds.dense(), factors, damping), chosen, reference.PRPACK_ERROR)
    scores, error, arcs = matrix.solve(graph, seeds.dense(), factors, damping, tolerance=tolerance)
    return Walk.of(scores, chosen, error, arcs)


def choose_engine(engine: Engine, n_seeds: int, n_edges: int, damping: float) -> Engine:
    """Return the engine itself, or the one that ``auto`` stands for.

    Raises:
        BadInput: there is no such engine.
    """
    if engine not in tuple(Engine):
        raise BadInput(f"There is no engine {engine!r}", f"Choose one of {', '.join(Engine)}")
    if engine != Engine.AUTO:
        return Engine(engine)
    sparse = n_seeds <= SPARSE_SEEDS and n_edges >= (LARGE_GRAPH if damping > SHORT_WALK else LARGE_FOR_SHORT_WALK)
    return Engine.PUSH if sparse and push.is_available() else Engine.MATRIX


def _check(factors: EdgeFactors, damping: float) -> None:
    if not 0 <= damping < 1:
        raise BadInput(f"Damping is {damping}", "Choose a number from 0 up to, but not including, 1")
    for side in (factors.from_entity, factors.from_passage):
        if not (np.isfinite(side) & (side >= 0)).all():
            raise BadInput("A relation factor is negative or no number", "Give finite numbers from 0 up")


def _normalise(restart: NDArray[np.float64] | SparseVector, graph: TypedGraph) -> SparseVector:
    """Return the seeds with a sum of 1."""
    shape = (restart.length,) if isinstance(restart, SparseVector) else restart.shape
    if shape != (graph.n_nodes,):
        raise BadInput(f"The restart has shape {shape}", f"Give one weight for each of {graph.n_nodes} nodes")
    seeds = restart.nonzero() if isinstance(restart, SparseVector) else SparseVector.of(restart)
    total = float(seeds.values.sum())
    if not (total > 0 and np.isfinite(total)):
        raise BadInput("The walk has no seed", "Rank by similarity instead")
    if seeds.values.min() < 0:
        raise BadInput("A seed's weight is negative", "Give numbers from 0 up")
    return replace(seeds, values=seeds.values / total)
