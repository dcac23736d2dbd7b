"""The engine ``igraph``: PRPACK, which solves the linear system to rounding; fastest on small graphs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.walk.engines.transition import arc_weights
from graph.walk.factors import EdgeFactors

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

PRPACK_ERROR = 1e-9
"""L1 distance to the solution that PRPACK stays within; measured, since it promises none."""


def solve(graph: TypedGraph, restart: NDArray[np.float64], factors: EdgeFactors, damping: float) -> NDArray[np.float64]:
    """Return the PageRank of every node; ``restart`` sums to 1.

    Undirected where every edge weighs the same from both sides, else with one arc each way.
    """
    forward, backward = arc_weights(graph, factors)
    if factors.symmetric:
        arcs, network = forward, graph.undirected
    else:
        arcs, network = np.concatenate([forward, backward]), graph.directed
    with on_one_thread():
        scores = network.personalized_pagerank(
            weights=arcs.tolist(),
            reset=restart.tolist(),
            damping=damping,
            directed=not factors.symmetric,
            implementation="prpack",
        )
    return np.asarray(scores)


def on_one_thread() -> AbstractContextManager[object]:
    """Return a context in which PRPACK has one thread.

    Its OpenMP threads wait for each other at every turn: on a busy machine two are ten times slower than one.
    """
    limited: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="openmp")
    return limited


@lru_cache(maxsize=1)
def _thread_pools() -> ThreadpoolController:
    """Return the controller of the thread pools that are loaded, igraph's among them."""
    import igraph  # noqa: F401 (it brings the pool along)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
