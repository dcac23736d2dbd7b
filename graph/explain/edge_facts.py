"""The facts behind an edge between two entities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import EdgeKind
from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.retrieve.selection import Selection


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
