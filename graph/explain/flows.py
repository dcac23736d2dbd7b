"""The mass that a walk carries along each edge, either way: what an answer's explanation is made of.

A walk's scores are the solution of PR(v) = restart(v) + Σ flow(u → v); every term of it is given here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import EdgeKind, TypedGraph
from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.retrieve.selection import Selection
from graph.walk.engines.transition import arc_weights
from graph.walk.factors import EdgeFactors


class EdgeFacts:
    """Finds the facts of edges; with a selection, those that it supports alone."""

    def __init__(self, graph: KnowledgeGraph, selection: Selection | None = None) -> None:
        edges = graph.edges
        kind_of = {kind: index for index, kind in enumerate(graph.kinds)}
        kinds = np.array([kind_of.get(EdgeKind(relation), -1) for relation in graph.facts.types])[graph.facts.relations]
        keys = _keys(graph, graph.facts.ends.min(axis=1), graph.facts.ends.max(axis=1), kinds)
        of_edges = _keys(graph, edges.source, edges.target, edges.kind)
        place = np.searchsorted(of_edges, keys)
        held = (np.append(of_edges, -1)[place] == keys) & (kinds >= 0)
        if selection is not None:
            held &= graph.facts.passages.holding(selection.passages)
        facts = np.flatnonzero(held)
        order = np.argsort(place[facts], kind="stable")
        self._facts, self._edges = facts[order], place[facts][order]
        self._graph, self._selection = graph, selection

    @property
    def edges(self) -> NDArray[np.intp]:
        """The edges that have facts, each once, ascending."""
        return np.unique(self._edges)

    def of(self, edge: int) -> list[GraphFact]:
        """Return an edge's facts, those that most passages hold first, ties in their order."""
        low, high = np.searchsorted(self._edges, [edge, edge + 1])
        facts = map(self._graph.facts.rows.at, self._facts[low:high].tolist())
        shown = [fact if self._selection is None else self._selection.fact(fact.fact.id) for fact in facts]
        return sorted([fact for fact in shown if fact], key=lambda fact: -len(fact.passages))


def _keys(
    graph: KnowledgeGraph, source: NDArray[np.integer], target: NDArray[np.integer], kind: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return one number an edge, ascending in the order of the graph's edges."""
    keys: NDArray[np.int64] = (source.astype(np.int64) * graph.n_nodes + target) * len(graph.kinds) + kind
    return keys


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
