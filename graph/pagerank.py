"""The walk: relation-aware Personalized PageRank over typed edges, without a loop over edges or a copy of the graph."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.factors import EdgeFactors, passage_side
from graph.knowledge_graph import KnowledgeGraph

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def walk(
    graph: KnowledgeGraph,
    restart: NDArray[np.float64],
    factors: EdgeFactors,
    damping: float,
    *,
    weights: NDArray[np.float32] | None = None,
) -> NDArray[np.float64]:
    """Return the PageRank of every node, summing to 1.

    PR(v) = (1-d) r(v) + d Σ_u PR(u) w(u,v) / Σ_x w(u,x), with w = edge weight x factor of its kind, by the side it
    is left from. A node without outgoing weight gives its mass back to the restart vector. (HippoRAG 2; MARA-RAG
    phase 5.)

    Args:
        graph: the snapshot.
        restart: non-negative seed weights, one a node; normalised here.
        factors: one multiplier a kind of edge and side.
        damping: probability of following an edge, in [0, 1).
        weights: edge weights to walk on instead of ``graph.edges.weight``.

    Raises:
        BadInput: the restart vector has no positive weight, or the damping is out of range.
    """
    total = float(restart.sum())
    if not total > 0 or not np.isfinite(total):
        raise BadInput("The walk has no seed", "Rank by similarity instead")
    if not 0 <= damping < 1:
        raise BadInput(f"Damping is {damping}", "Choose a number from 0 up to, but not including, 1")
    base = np.asarray(graph.edges.weight if weights is None else weights, dtype=np.float64)
    forward = base * factors.from_entity[graph.edges.kind]
    if factors.symmetric:
        arcs, network = forward, graph.undirected
    else:
        arcs, network = np.concatenate([forward, base * passage_side(graph.edges.kind, factors)]), graph.directed
    # PRPACK's OpenMP threads wait for each other at every turn: on a busy machine two are ten times slower than one.
    with _thread_pools().limit(limits=1, user_api="openmp"):
        scores = network.personalized_pagerank(
            weights=arcs.tolist(),
            reset=(restart / total).tolist(),
            damping=damping,
            directed=not factors.symmetric,
            implementation="prpack",
        )
    return np.asarray(scores)


@lru_cache(maxsize=1)
def _thread_pools() -> ThreadpoolController:
    """Return the controller of the thread pools that are loaded, igraph's among them."""
    import igraph  # noqa: F401 (it brings the pool along)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
