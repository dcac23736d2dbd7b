"""The subgraph that shows a walk, within the part that a filter lets be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import IS_SYNONYM_KIND
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.explain.flows import EdgeFacts, Flows
from graph.retrieve.selection import Selection

EDGES_PER_NODE = 3
"""Edges shown, for each node that is: more could not be told apart."""


@dataclass(frozen=True, eq=False)
class Visible:
    """The part of the graph that a filter lets be seen; all of it without one.

    Attributes:
        nodes: whether each node may be named, shape (n_nodes,).
        edges: whether each edge may be shown, shape (n_edges,): its ends may be named, and a selected passage holds it.
    """

    nodes: NDArray[np.bool_]
    edges: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """The nodes and edges shown.

    Attributes:
        nodes: each once, in the order in which they were taken.
        edges: between these nodes, the one that carries most first.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]


def visible_part(graph: KnowledgeGraph, selection: Selection | None, facts: EdgeFacts) -> Visible:
    """Return what a selection lets be seen.

    An edge of facts is seen where a selected passage supports one of its facts, an edge to a passage where the passage
    is selected, and a synonym where both names may be seen.

    Args:
        graph: the graph.
        selection: the run's filter.
        facts: the facts of edges under the same selection.
    """
    edges = graph.edges
    if selection is None:
        return Visible(np.ones(graph.n_nodes, dtype=bool), np.ones(len(edges), dtype=bool))
    nodes = np.concatenate([selection.entities, selection.passages])
    needs_no_fact = (edges.target >= graph.n_entities) | IS_SYNONYM_KIND[edges.kind]
    shown = needs_no_fact.copy()
    shown[facts.edges] = True
    return Visible(nodes, shown & nodes[edges.source] & nodes[edges.target])


def choose_subgraph(
    flows: Sequence[Flows], visible: Visible, nodes: Iterable[int], edges: Iterable[int], max_nodes: int
) -> Subgraph:
    """Return what is shown: what has to be, then the nodes that send most mass into it, then theirs.

    Args:
        flows: of the walks that are compared, the run's own last.
        visible: nothing else is shown.
        nodes: those that are shown in any case, all of them visible; they may be more than ``max_nodes``.
        edges: the same, between these nodes.
        max_nodes: how many nodes the others fill up to.
    """
    chosen = list(dict.fromkeys(nodes))
    shown = np.zeros(len(visible.nodes), dtype=bool)
    shown[chosen] = True
    while len(chosen) < max_nodes:
        sent = np.where(visible.nodes & ~shown, _sent_into(flows[-1], shown, visible.edges), 0.0)
        best = np.argsort(-sent, kind="stable")[: max_nodes - len(chosen)]
        best = best[sent[best] > 0]
        if not len(best):
            break
        chosen.extend(best.tolist())
        shown[best] = True
    return Subgraph(tuple(chosen), _strongest(flows, visible.edges, shown, list(edges), EDGES_PER_NODE * len(chosen)))


def _sent_into(flows: Flows, shown: NDArray[np.bool_], edges: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mass that each node sends over visible edges into what is shown."""
    graph = flows.graph
    forward = np.where(edges & shown[graph.target], flows.forward, 0.0)
    backward = np.where(edges & shown[graph.source], flows.backward, 0.0)
    sent = np.bincount(graph.source, forward, graph.n_nodes) + np.bincount(graph.target, backward, graph.n_nodes)
    return np.asarray(sent)


def _strongest(
    flows: Sequence[Flows], visible: NDArray[np.bool_], shown: NDArray[np.bool_], given: list[int], limit: int
) -> tuple[int, ...]:
    """Return the edges between shown nodes that carry most in any of the walks, the given ones in any case."""
    graph = flows[-1].graph
    between = np.flatnonzero(visible & shown[graph.source] & shown[graph.target])
    carried = np.max([flow.forward[between] + flow.backward[between] for flow in flows], axis=0)
    order = np.argsort(-carried, kind="stable")
    order = order[(carried[order] > 0) & ~np.isin(between[order], given)][: max(0, limit - len(set(given)))]
    kept = np.concatenate([np.array(sorted(set(given)), dtype=np.intp), between[order]])
    strength = flows[-1].forward[kept] + flows[-1].backward[kept]
    return tuple(kept[np.argsort(-strength, kind="stable")].tolist())
