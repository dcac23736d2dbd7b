"""The mass that a walk carries along each edge, either way: what an answer's explanation is made of.

A walk's scores are the solution of PR(v) = restart(v) + Σ flow(u → v); every term of it is given here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.walk.engines.transition import arc_weights
from graph.walk.factors import EdgeFactors

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Flows:
    """The flow of a walk: the mass that starts at each node, and the mass that each edge carries.

    Attributes:
        graph: what was walked.
        scores: PageRank of every node.
        restart: the mass that starts at each node, what nodes without outgoing weight give back included.
        damping: probability of following an edge.
        forward_share: one an edge: of the mass that walks on from its source, the part that takes this edge, in [0, 1].
        backward_share: the same from its target.
    """

    graph: TypedGraph
    scores: Doubles
    restart: Doubles
    damping: float
    forward_share: Doubles
    backward_share: Doubles

    @cached_property
    def forward(self) -> Doubles:
        """The mass that each edge carries from its source to its target."""
        return self.damping * self.scores[self.graph.source] * self.forward_share

    @cached_property
    def backward(self) -> Doubles:
        """The mass that each edge carries from its target to its source."""
        return self.damping * self.scores[self.graph.target] * self.backward_share

    @cached_property
    def inflow(self) -> Doubles:
        """The mass that comes into each node, over all of its edges."""
        return self.inflow_over(np.arange(len(self.graph)))

    def inflow_over(self, edges: NDArray[np.integer]) -> Doubles:
        """Return the mass that comes into each node over some edges, shape (n_nodes,)."""
        graph = self.graph
        into_targets = np.bincount(graph.target[edges], self.forward[edges], graph.n_nodes)
        return np.asarray(into_targets + np.bincount(graph.source[edges], self.backward[edges], graph.n_nodes))


def flows_of(graph: TypedGraph, scores: Doubles, restart: Doubles, factors: EdgeFactors, damping: float) -> Flows:
    """Return the flows of a walk, from what `graph.walk.pagerank.walk` was given and what it found.

    An edge carries d PR(u) w(u,v) / Σ_x w(u,x) from u to v, with w = edge weight x factor.

    Args:
        graph: what was walked.
        scores: PageRank of every node.
        restart: the seeds' weights, one a node, with a positive sum.
        factors: one multiplier a kind of edge and side.
        damping: probability of following an edge.
    """
    forward, backward = arc_weights(graph, factors)
    leaving = np.asarray(np.bincount(graph.source, forward, graph.n_nodes), dtype=np.float64)
    leaving += np.bincount(graph.target, backward, graph.n_nodes)
    given_back = float(scores[leaving <= 0].sum())
    return Flows(
        graph=graph,
        scores=scores,
        restart=restart / restart.sum() * (1 - damping + damping * given_back),
        damping=damping,
        forward_share=_shares(forward, leaving[graph.source]),
        backward_share=_shares(backward, leaving[graph.target]),
    )


def _shares(weights: NDArray[np.floating[Any]], totals: Doubles) -> Doubles:
    shares: Doubles = np.divide(weights, totals, out=np.zeros(len(weights)), where=totals > 0)
    return shares
