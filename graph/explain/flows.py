"""The mass that a walk carries along each edge, either way: what an answer's explanation is made of.

A walk's scores are the solution of PR(v) = restart(v) + Σ flow(u → v); every term of it is given here. So is what an
edge stands for: the triples of a fact edge, and what the weight of a passage edge is made of. The graph keeps weights
and offsets; the rest is taken from the record that the graph was made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import IS_FACT_KIND, IS_PASSAGE_KIND, IS_SYNONYM_KIND, EdgeKind, TypedGraph, link_terms
from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.corrections.apply import Corrections, Stated
from graph.errors import BadInput
from graph.retrieve.selection import Selection
from graph.schema import Triple, entity_id
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.text import normalise_name
from graph.walk.engines.transition import arc_weights
from graph.walk.factors import EdgeFactors


class EdgeFacts:
    """Finds the facts of edges; with a selection, those that it supports alone."""

    def __init__(self, graph: KnowledgeGraph, selection: Selection | None = None) -> None:
        place = edges_of_facts(graph)
        stated = place >= 0
        if selection is not None:
            stated &= graph.facts.passages.holding(selection.passages)
        facts = np.flatnonzero(stated)
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


def edges_of_facts(graph: KnowledgeGraph) -> NDArray[np.intp]:
    """Return the place of the edge that each fact is part of; -1 for a fact without one."""
    edges, ends = graph.edges, graph.facts.ends
    kind_of = {kind: index for index, kind in enumerate(graph.kinds)}
    kinds = np.array([kind_of.get(EdgeKind(relation), -1) for relation in graph.facts.types])[graph.facts.relations]
    keys = _keys(graph, ends.min(axis=1), ends.max(axis=1), kinds)
    of_edges = _keys(graph, edges.source, edges.target, edges.kind)
    places = np.searchsorted(of_edges, keys)
    return np.where((np.append(of_edges, -1)[places] == keys) & (kinds >= 0), places, -1)


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
    flows: Sequence[Flows], visible: NDArray[np.bool_], shown: NDArray[np.bool_], fixed: list[int], limit: int
) -> tuple[int, ...]:
    """Return the edges between shown nodes that carry most in any of the walks, those of ``fixed`` in any case."""
    graph = flows[-1].graph
    between = np.flatnonzero(visible & shown[graph.source] & shown[graph.target])
    carried = np.max([flow.forward[between] + flow.backward[between] for flow in flows], axis=0)
    order = np.argsort(-carried, kind="stable")
    order = order[(carried[order] > 0) & ~np.isin(between[order], fixed)][: max(0, limit - len(set(fixed)))]
    kept = np.concatenate([np.array(sorted(set(fixed)), dtype=np.intp), between[order]])
    strength = flows[-1].forward[kept] + flows[-1].backward[kept]
    return tuple(kept[np.argsort(-strength, kind="stable")].tolist())


_NAMED = 3
_CHARACTERS_TOLD = 60


def find_entity(graph: KnowledgeGraph, named: str) -> int:
    """Return the node of an entity, by its id or its name in any spelling.

    Raises:
        BadInput: the workspace knows no such entity; names that hold this one, or else the nearest, are told.
    """
    name = normalise_name(named)
    node = graph.entity_index.get(named)
    if node is None and name:
        node = graph.entity_index.get(entity_id(named))
    if node is None:
        node = dict(graph.aliases).get(name)
    if node is None:
        known = dict(zip(graph.entity_names, graph.entity_labels, strict=True))
        near = [label for other, label in known.items() if name and name in other]
        near = near or [known[other] for other in get_close_matches(name, known, n=_NAMED)]
        told = ", ".join(label[:_CHARACTERS_TOLD] for label in near[:_NAMED])
        hint = f"Known are {told}" if told else "Spell its name as a passage does"
        raise BadInput(f"The workspace knows no entity {named[:_CHARACTERS_TOLD]!r}", hint)
    return node


def find_node(graph: KnowledgeGraph, named: str) -> int:
    """Return the node of a passage by its id, or else that of an entity; raises as `find_entity`."""
    place = graph.passage_index.get(named)
    return find_entity(graph, named) if place is None else graph.n_entities + place


def node_shown(graph: KnowledgeGraph, node: int) -> dict[str, str]:
    """Return who a node is: its ``kind``, ``id`` and ``label``, and the ``type`` of an entity that has one."""
    if node < graph.n_entities:
        entity_type = graph.entity_type(node)
        return {
            "kind": "entity",
            "id": entity_id(graph.entity_names[node]),
            "label": graph.entity_labels[node],
            **({"type": entity_type} if entity_type else {}),
        }
    passage = graph.passages[node - graph.n_entities]
    return {"kind": "passage", "id": passage.id, "label": passage.title or passage.id}


def edges_between(graph: KnowledgeGraph, entity: int, other: int | None = None) -> NDArray[np.intp]:
    """Return the edges of an entity, heaviest first; with ``other``, those between the two."""
    source, target = graph.edges.source, graph.edges.target
    if other is None:
        is_between = (source == entity) | (target == entity)
    else:
        is_between = ((source == entity) & (target == other)) | ((source == other) & (target == entity))
    rows = np.flatnonzero(is_between)
    return rows[np.argsort(-graph.edges.weight[rows], kind="stable")]


def edge_evidence(graph: KnowledgeGraph, record: Record, entity: int, edges: Sequence[int]) -> list[dict[str, Any]]:
    """Return what each of an entity's edges stands for, as plain values; docs/reference.md has the keys.

    Args:
        graph: the graph that the edges are of.
        record: what it was made from; where it moved on since, passages that it lost give nothing.
        entity: the node that the edges are told from.
        edges: indices of edges of that node.
    """
    facts = EdgeFacts(graph)
    facts_of_edge = {edge: facts.of(edge) for edge in edges}
    passages = {place for known in facts_of_edge.values() for fact in known for place in fact.passages}
    passages |= {_other(graph, entity, edge) - graph.n_entities for edge in edges if _is_link(graph, edge)}
    corrections = Corrections(record.corrections())
    entries = {
        entry.passage.id: (entry, corrections.stated(entry.passage, entry.extraction))
        for entry in record.entries([graph.passage_ids[place] for place in passages])
    }
    bodies = []
    for edge in edges:
        kind, other = graph.kinds[graph.edges.kind[edge]], _other(graph, entity, edge)
        body: dict[str, Any] = {
            "other": node_shown(graph, other),
            "relation": kind.relation.value,
            "link": kind.link.value if kind.link else None,
            **({"meaning": graph.own.definitions[kind.relation]} if kind.relation.is_own else {}),
            "weight": float(graph.edges.weight[edge]),
        }
        if kind.link is not None:
            body |= _link_evidence(graph, record, edge, entries.get(graph.passages[other - graph.n_entities].id))
        elif IS_FACT_KIND[graph.edges.kind[edge]]:
            places = sorted({place for fact in facts_of_edge[edge] for place in fact.passages})
            body["triples"] = _triples(graph, entries, edge, [graph.passage_ids[place] for place in places])
        bodies.append(body)
    return bodies


def _other(graph: KnowledgeGraph, entity: int, edge: int) -> int:
    source, target = graph.edges.source.item(edge), graph.edges.target.item(edge)
    return int(target if source == entity else source)


def _is_link(graph: KnowledgeGraph, edge: int) -> bool:
    return bool(IS_PASSAGE_KIND[graph.edges.kind[edge]])


def _ends(triple: Triple) -> tuple[str, str]:
    return normalise_name(triple.subject), normalise_name(triple.object)


def _triples(
    graph: KnowledgeGraph, entries: Mapping[str, tuple[Entry, Stated]], edge: int, passage_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the triples that a fact edge sums up, passage by passage."""
    ends = {graph.entity_names[node.item(edge)] for node in (graph.edges.source, graph.edges.target)}
    relation = graph.kinds[graph.edges.kind[edge]].relation
    return [
        {
            "passage": key,
            "subject": triple.subject,
            "predicate": triple.predicate,
            "object": triple.object,
            "relation": triple.relation.value,
            "confidence": triple.confidence,
        }
        for key in passage_ids
        if key in entries
        for triple in entries[key][1].triples
        if triple.relation == relation and set(_ends(triple)) == ends
    ]


def _link_evidence(
    graph: KnowledgeGraph, record: Record, edge: int, evidence: tuple[Entry, Stated] | None
) -> dict[str, Any]:
    """Return what the weight of a passage edge is made of."""
    name = graph.entity_names[graph.edges.source.item(edge)]
    if evidence is None or record.missing("names", [entity_id(name)]):
        return {"terms": None}
    entry, stated = evidence
    ends = [each for each in map(_ends, stated.triples) if all(each)]
    terms = link_terms(
        np.array([sum(subject == name for subject, _ in ends)]),
        np.array([sum(object_ == name for _, object_ in ends)]),
        (record.name_vectors([entity_id(name)]) * entry.vector).sum(axis=1),
        np.array([graph.edges.offset.item(edge)]),
        np.array([len(entry.passage.content)]),
    )
    return {"terms": {term: float(value[0]) for term, value in terms._asdict().items()}}
