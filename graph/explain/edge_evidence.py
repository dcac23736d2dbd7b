"""What an edge stands for: the triples of a fact edge, and what the weight of a passage edge is made of.

The graph keeps weights and offsets. The rest is taken from the record that the graph was made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edge_weights import link_terms
from graph.construction.edges import IS_FACT_KIND, IS_PASSAGE_KIND
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.corrections.apply import Corrections, Stated
from graph.errors import BadInput
from graph.explain.flows import EdgeFacts
from graph.schema import Triple, entity_id
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.text import normalise_name

_NAMED = 3
_CHARACTERS_TOLD = 60


def find_entity(graph: KnowledgeGraph, named: str) -> int:
    """Return the node of an entity, by its id or its name in any spelling.

    Raises:
        BadInput: the workspace knows no such entity; names that hold this one, or else the nearest, are told.
    """
    node = _entity(graph, named)
    if node is None:
        near = _near(named, dict(zip(graph.entity_names, graph.entity_labels, strict=True)))
        raise BadInput(f"The workspace knows no entity {_cut(named)!r}", near or "Spell its name as a passage does")
    return node


def find_node(graph: KnowledgeGraph, named: str) -> int:
    """Return the node of an entity, or of a passage by its id or title.

    Raises:
        BadInput: there is neither, or several passages have the title; names and titles near to it are told.
    """
    if named in graph.passage_index:
        return graph.n_entities + graph.passage_index[named]
    node = _entity(graph, named)
    if node is not None:
        return node
    titled = [place for place, passage in enumerate(graph.passages) if passage.title == named]
    if len(titled) > 1:
        raise BadInput(f"{len(titled)} passages are called {_cut(named)!r}", "Name one by its id")
    if not titled:
        titles = {normalise_name(passage.title): passage.title for passage in graph.passages}
        near = _near(named, {**titles, **dict(zip(graph.entity_names, graph.entity_labels, strict=True))})
        hint = near or "Spell an entity as a passage does; name a passage by its id or title"
        raise BadInput(f"The workspace knows no entity or passage {_cut(named)!r}", hint)
    return graph.n_entities + titled[0]


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
        found = (source == entity) | (target == entity)
    else:
        found = ((source == entity) & (target == other)) | ((source == other) & (target == entity))
    rows = np.flatnonzero(found)
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
    held = {edge: facts.of(edge) for edge in edges}
    passages = {place for known in held.values() for fact in known for place in fact.passages}
    passages |= {_other(graph, entity, edge) - graph.n_entities for edge in edges if _is_link(graph, edge)}
    corrections = Corrections(record.corrections())
    entries = {
        entry.passage.id: (entry, corrections.stated(entry.passage, entry.extraction))
        for entry in record.entries([graph.passage_ids[place] for place in passages])
    }
    told = []
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
            places = sorted({place for fact in held[edge] for place in fact.passages})
            body["triples"] = _triples(graph, entries, edge, [graph.passage_ids[place] for place in places])
        told.append(body)
    return told


def _entity(graph: KnowledgeGraph, named: str) -> int | None:
    node = graph.entity_index.get(named)
    if node is None and normalise_name(named):
        node = graph.entity_index.get(entity_id(named))
    if node is None:
        node = dict(graph.aliases).get(normalise_name(named))
    return node


def _near(named: str, known: Mapping[str, str]) -> str:
    """Return which names hold this one or, if none does, are spelled much like it; empty if there is none.

    Args:
        named: what somebody asked for.
        known: what each name is shown as, by its normal form.
    """
    part = normalise_name(named)
    if not part:
        return ""
    near = [label for name, label in known.items() if part in name]
    near = near or [known[name] for name in get_close_matches(part, known, n=_NAMED)]
    return f"Known are {', '.join(map(_cut, near[:_NAMED]))}" if near else ""


def _cut(name: str) -> str:
    return f"{name[:_CHARACTERS_TOLD]}…" if len(name) > _CHARACTERS_TOLD else name


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
    graph: KnowledgeGraph, record: Record, edge: int, held: tuple[Entry, Stated] | None
) -> dict[str, Any]:
    """Return what the weight of a passage edge is made of."""
    offset = graph.edges.offset.item(edge)
    stands_at = offset if offset >= 0 else None
    name = graph.entity_names[graph.edges.source.item(edge)]
    if held is None or record.missing("names", [entity_id(name)]):
        return {"terms": None, "as_subject": None, "as_object": None, "offset": stands_at}
    entry, stated = held
    ends = [each for each in map(_ends, stated.triples) if all(each)]
    as_subject, as_object = (sum(each[side] == name for each in ends) for side in (0, 1))
    vector = record.name_vectors([entity_id(name)])
    terms = link_terms(
        np.array([as_subject]),
        np.array([as_object]),
        (vector * entry.vector).sum(axis=1),
        np.array([offset]),
        np.array([len(entry.passage.content)]),
    )
    return {
        "terms": {term: float(value[0]) for term, value in terms._asdict().items()},
        "as_subject": as_subject,
        "as_object": as_object,
        "offset": stands_at,
    }
