"""Concepts and their edges in the relationship graph, brought in step with a generation of the knowledge graph."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.errors import WorkspaceDamaged
from graph.relationships.digests import Digests, Hashes, chained, hashes_of_ids, summed
from graph.relationships.explanations import (
    EXPLANATION_TYPES,
    description_digests,
    descriptions,
    explanations,
    ids_of,
    relatedness,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.relationships.tables import table_of_nodes

EXPLAINS = (EdgeType.EXPLAINS, NodeType.DOCUMENT, NodeType.CONCEPT)
RELATED_TO = (EdgeType.RELATED_TO, NodeType.CONCEPT, NodeType.CONCEPT)

_FORGET = "DELETE FROM pruned WHERE type = ?"
_PAGE = 2_000
_SHARE_UNITS = 10_000

Ints = NDArray[np.int64]
EdgeKey = tuple[EdgeType, NodeType, NodeType]


def bring_concepts_in_step(relationships: RelationshipRecord, graph: KnowledgeGraph) -> tuple[int, int]:
    """Write the concepts of a generation with EXPLAINS and RELATED_TO, where they changed; drop what is gone.

    The documents are in step already. Documents and concepts whose edges have the digest of the last time are not
    looked at.

    Returns:
        How many concepts and how many edges were written or removed.

    Raises:
        WorkspaceDamaged: the chunks are not the passages of the generation.
    """
    document_of, documents = _documents(relationships, graph)
    ids = ids_of(graph)
    hashes = hashes_of_ids(ids)
    n_concepts = _write_concepts(relationships, graph, ids, hashes)
    explains = _explains(graph, document_of, documents, hashes)
    related = _related(graph, document_of, hashes)
    keys = dict(relationships.execute("SELECT key, id FROM document"))
    n_edges = _write_edges(relationships, explains, lambda group: keys[int(documents[group])], ids)
    n_edges += _write_edges(relationships, related, ids.__getitem__, ids)
    _forget_pruned_of_gone(relationships)
    return n_concepts, n_edges


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Edges of one type by the group that they leave: a document or a concept.

    Attributes:
        of: the type of the edges.
        groups: ascending, one element an edge.
        targets: indices of the entities that they reach.
        keys: what tells each group apart over time, one element a group.
        digests: one element a group.
        properties: returns those of the edge at a place.
    """

    of: EdgeKey
    groups: Ints
    targets: Ints
    keys: Hashes
    digests: Hashes
    properties: Callable[[int], dict[str, PropertyValue]]


def evidence_of(properties: Mapping[str, PropertyValue]) -> str:
    """Return what an edge rests on as a text: pruning remembers it, and takes an edge back once it is another."""
    return json.dumps(dict(properties), sort_keys=True, ensure_ascii=False)


def _documents(relationships: RelationshipRecord, graph: KnowledgeGraph) -> tuple[Ints, Ints]:
    """Return the number of each passage's document, and each document's key in the record."""
    query = "SELECT e.target FROM document_chunk c JOIN chunk_of e ON e.source = c.key ORDER BY c.id"
    keys = np.fromiter((key for (key,) in relationships.execute(query)), dtype=np.int64)
    if len(keys) != len(graph.passages):
        raise WorkspaceDamaged(
            f"The relationship graph has {len(keys):,} chunks of {len(graph.passages):,} passages",
            "Delete relationships.sqlite, or restore it from a backup",
        )
    documents, document_of = np.unique(keys, return_inverse=True)
    return document_of.astype(np.int64), documents


def _write_concepts(
    relationships: RelationshipRecord, graph: KnowledgeGraph, ids: Sequence[str], hashes: Hashes
) -> int:
    """Write the concepts that are new or changed, remove those that are gone; return how many."""
    labels = list(graph.entity_labels)
    told = ((f"{label}\0{graph.entity_type(place) or ''}").encode() for place, label in enumerate(labels))
    named = np.fromiter(map(zlib.crc32, told), dtype=np.uint64, count=len(labels))
    made = chained(named, description_digests(graph))
    known = Digests.load(relationships, "concepts")
    is_changed = known.differing(hashes, made)
    changed, described = np.flatnonzero(is_changed).tolist(), descriptions(graph, is_changed)
    with relationships.transaction():
        n_gone = relationships.remove_nodes(NodeType.CONCEPT, _concepts_hashed(relationships, known.gone(hashes)))
        relationships.put_nodes(
            Node(
                NodeType.CONCEPT,
                ids[each],
                {"name": labels[each], "description": described.get(each), "type": graph.entity_type(each)},
            )
            for each in changed
        )
        if n_gone or changed:
            Digests.of(hashes, made).save(relationships, "concepts")
    return len(changed) + n_gone


def _concepts_hashed(relationships: RelationshipRecord, hashes: Hashes) -> list[str]:
    """Return the ids of the concepts of these hashes."""
    if not len(hashes):
        return []
    ids = [key for (key,) in relationships.execute("SELECT id FROM concept")]
    marked = np.isin(hashes_of_ids(ids), hashes)
    return [ids[place] for place in np.flatnonzero(marked).tolist()]


def _explains(graph: KnowledgeGraph, document_of: Ints, documents: Ints, hashes: Hashes) -> _Grouped:
    found = explanations(graph, document_of)
    relevance, confidence = _units(found.relevance), _units(found.confidence)
    each = chained(hashes[found.concepts], relevance, found.kinds, confidence)

    def properties(place: int) -> dict[str, PropertyValue]:
        return {
            "relevance_score": relevance.item(place) / _SHARE_UNITS,
            "explanation_type": EXPLANATION_TYPES[found.kinds.item(place)].value,
            "confidence": confidence.item(place) / _SHARE_UNITS,
        }

    digests = summed(each, found.documents, len(documents))
    return _Grouped(EXPLAINS, found.documents, found.concepts, documents.astype(np.uint64), digests, properties)


def _related(graph: KnowledgeGraph, document_of: Ints, hashes: Hashes) -> _Grouped:
    found = relatedness(graph, document_of)
    confidence = _units(found.confidence)
    names = [kind.relation.value for kind in graph.kinds]
    relations = np.asarray([zlib.crc32(name.encode()) for name in names], dtype=np.uint64)[found.kinds]
    each = chained(hashes[found.second], relations, found.documents, confidence)

    def properties(place: int) -> dict[str, PropertyValue]:
        return {
            "relation": names[found.kinds.item(place)],
            "documents": found.documents.item(place),
            "confidence": confidence.item(place) / _SHARE_UNITS,
        }

    return _Grouped(RELATED_TO, found.first, found.second, hashes, summed(each, found.first, len(hashes)), properties)


def _units(shares: NDArray[np.float64]) -> Ints:
    return np.round(shares * _SHARE_UNITS).astype(np.int64)


def _write_edges(
    relationships: RelationshipRecord, edges: _Grouped, source_of: Callable[[int], str], ids: Sequence[str]
) -> int:
    """Write the groups whose digest is another, in transactions of a few thousand; return how many edges changed."""
    name = edges.of[0].value
    known = Digests.load(relationships, name)
    is_changed = known.differing(edges.keys, edges.digests)
    changed = np.flatnonzero(is_changed)
    if not len(changed) and not len(known.gone(edges.keys)):
        return 0
    # What is being written has no digest: if this is interrupted, the next step looks at it, whatever it has to be.
    _save(relationships, name, edges, ~is_changed)
    starts = np.searchsorted(edges.groups, np.arange(len(edges.keys) + 1))
    n_changed = 0
    for begin in range(0, len(changed), _PAGE):
        wanted: dict[str, dict[str, dict[str, PropertyValue]]] = {}
        for group in changed[begin : begin + _PAGE].tolist():
            places = range(starts.item(group), starts.item(group + 1))
            wanted[source_of(group)] = {ids[edges.targets.item(at)]: edges.properties(at) for at in places}
        with relationships.transaction():
            n_changed += _write_page(relationships, edges.of, wanted)
    _save(relationships, name, edges, np.ones(len(edges.keys), dtype=bool))
    return n_changed


def _save(relationships: RelationshipRecord, name: str, edges: _Grouped, kept: NDArray[np.bool_]) -> None:
    with relationships.transaction():
        Digests.of(edges.keys[kept], edges.digests[kept]).save(relationships, name)


def _write_page(
    relationships: RelationshipRecord, of: EdgeKey, wanted: Mapping[str, Mapping[str, dict[str, PropertyValue]]]
) -> int:
    """Make the edges that leave some nodes the wanted ones, less what was pruned; return how many changed."""
    there = _edges_from(relationships, of, list(wanted))
    pruned = _pruned_from(relationships, of, list(wanted))
    new: list[Edge] = []
    n_removed = 0
    for source, targets in wanted.items():
        kept = targets
        if gone := pruned.get(source):
            kept = {key: each for key, each in targets.items() if gone.get(key) != evidence_of(each)}
            for target in gone.keys() & kept.keys():
                relationships.execute(f"{_FORGET} AND source = ? AND target = ?", (of[0].value, source, target))
        for target in there[source].keys() - kept.keys():
            n_removed += relationships.unlink(_edge(of, source, target))
        new += (_edge(of, source, key, each) for key, each in kept.items() if there[source].get(key) != each)
    relationships.link_all(new)
    return len(new) + n_removed


def _edge(of: EdgeKey, source: str, target: str, properties: Mapping[str, PropertyValue] | None = None) -> Edge:
    edge_type, start, end = of
    return Edge(edge_type, (start, source), (end, target), properties or {})


def _edges_from(
    relationships: RelationshipRecord, of: EdgeKey, sources: Sequence[str]
) -> dict[str, dict[str, Mapping[str, PropertyValue]]]:
    """Return {source: {target: properties}} of the edges that are there."""
    found: dict[str, dict[str, Mapping[str, PropertyValue]]] = defaultdict(dict)
    for edge in relationships.edges(*of, "WHERE a.id IN (SELECT value FROM json_each(?))", (list(sources),)):
        found[edge.source[1]][edge.target[1]] = edge.properties
    return found


def _pruned_from(relationships: RelationshipRecord, of: EdgeKey, sources: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return {source: {target: evidence}} of the edges that were pruned."""
    query = "SELECT source, target, evidence FROM pruned WHERE type = ? AND source IN (SELECT value FROM json_each(?))"
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for source, target, evidence in relationships.execute(query, (of[0].value, list(sources))):
        found[source][target] = evidence
    return found


def _forget_pruned_of_gone(relationships: RelationshipRecord) -> None:
    """Forget pruned edges whose ends are not both there any more."""
    for edge_type, start, end in (EXPLAINS, RELATED_TO):
        relationships.execute(
            f'{_FORGET} AND (NOT EXISTS (SELECT 1 FROM "{table_of_nodes(start)}" WHERE id = pruned.source)'
            f' OR NOT EXISTS (SELECT 1 FROM "{table_of_nodes(end)}" WHERE id = pruned.target))',
            (edge_type.value,),
        )
