"""The surroundings of one document: its sources and chunks, what it explains, and the documents that explain the same.

Of people it tells no more than how many messages cite the document.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from graph.errors import BadInput
from graph.relationships.discovery import DOCUMENT_LIMIT, commonness
from graph.relationships.limits import CHUNKS, CONCEPTS, RELATED, SOURCES
from graph.relationships.provenance import DOCUMENT_OF, SOURCES_OF
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from graph.relationships.tables import along
from graph.text import is_date

SHARED_LIMIT = 200
"""Concepts by which related documents are looked for, at most: those that the document explains best."""

_BY_PATH = "SELECT id FROM document WHERE path = ? ORDER BY id LIMIT 2"
_CHUNKS = f"""
    SELECT document_chunk.id FROM {along("document <-chunk_of- document_chunk")}
    WHERE document.id = ? ORDER BY chunk_index, document_chunk.id LIMIT ?"""
_CHUNK_COUNT = f"SELECT count(*) FROM {along('document <-chunk_of-')} WHERE document.id = ?"
_MESSAGES = f"""
    SELECT count(*) FROM (
        SELECT references_message_document.source FROM {along("document <-references_message_document-")}
        WHERE document.id = :id
        UNION
        SELECT references_message_document_chunk.source
        FROM {along("document <-chunk_of- document_chunk <-references_message_document_chunk-")} WHERE document.id = :id
    ) AS found"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A document and what is next to it in the relationship graph.

    Attributes:
        document: its node.
        sources: what it came from.
        chunks: the first of its passages.
        concepts: what it explains, the most relevant first: those asked for, and those that related documents share.
        related: documents that explain the same, by what they share, where a concept of n documents counts 1/n.
        edges: CHUNK_OF, SOURCED_FROM and EXPLAINS between these nodes.
        commonness: {concept: how many documents explain it, counted up to `graph.relationships.discovery.COMMON`}.
        of_chunks: how many passages the document has.
        of_concepts: how many concepts it explains.
        messages: how many messages cite it, or a passage of it.
    """

    document: Node
    sources: tuple[Node, ...]
    chunks: tuple[Node, ...]
    concepts: tuple[Node, ...]
    related: tuple[Node, ...]
    edges: tuple[Edge, ...]
    commonness: Mapping[str, int]
    of_chunks: int
    of_concepts: int
    messages: int

    @property
    def parts(self) -> Iterator[Node | Edge]:
        """All nodes, then all edges."""
        yield from [self.document, *self.sources, *self.chunks, *self.concepts, *self.related]
        yield from self.edges

    def explains(self, document_id: str) -> dict[str, Edge]:
        """Return {concept: the edge by which a document explains it}, in the order of the concepts."""
        return {
            edge.target[1]: edge
            for edge in self.edges
            if edge.type is EdgeType.EXPLAINS and edge.source[1] == document_id
        }


def surroundings_of(
    record: RelationshipRecord, name: str, *, chunks: int = CHUNKS, concepts: int = CONCEPTS, related: int = RELATED
) -> Surroundings:
    """Return the surroundings of a document.

    Dates relate no documents: those that share a year are about different things. Of each related document, the rarest
    concept that it shares is among the concepts, beyond the number that is asked for.

    Args:
        record: the relationship graph.
        name: id of the document or of a passage of it, or the path that no other document has.
        chunks: how many of its passages are read at most.
        concepts: how many concepts are read at most by their relevance.
        related: how many related documents are read at most.

    Raises:
        BadInput: the relationship graph knows no such document, or several of that path.
    """
    document = _document(record, name)
    end = (NodeType.DOCUMENT, document.id)
    every = [key for key, _ in record.concepts.concepts_of(document.id)]
    explained = [(key, record.concepts.label(key) or "") for key in every[:SHARED_LIMIT]]
    common = {key: commonness(record, key) for key, _ in explained}
    leading = [key for key, name in explained if not is_date(name)]
    shares = _shares(record, document.id, leading, common)
    weights = {other: round(sum(1 / common[concept] for concept in shared), 9) for other, shared in shares.items()}
    best = heapq.nsmallest(related, weights, key=lambda other: (-weights[other], other))
    wanted = {key for key, _ in explained[:concepts]} | {min(shares[other], key=common.__getitem__) for other in best}
    shown = [key for key, _ in explained if key in wanted]
    sources = _nodes(record, NodeType.SOURCE, f"{SOURCES_OF} LIMIT ?", (document.id, SOURCES))
    passages = _nodes(record, NodeType.CHUNK, _CHUNKS, (document.id, chunks))
    return Surroundings(
        document=document,
        sources=sources,
        chunks=passages,
        concepts=tuple(filter(None, (record.node(NodeType.CONCEPT, key) for key in shown))),
        related=tuple(filter(None, (record.node(NodeType.DOCUMENT, key) for key in best))),
        edges=(
            *(Edge(EdgeType.SOURCED_FROM, end, (NodeType.SOURCE, source.id)) for source in sources),
            *(Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, chunk.id), end) for chunk in passages),
            *_explaining(record, [document.id], shown),
            *_explaining(record, best, [key for key in shown if key in leading]),
        ),
        commonness={key: common[key] for key in shown},
        of_chunks=int(record.execute(_CHUNK_COUNT, (document.id,)).fetchone()[0]),
        of_concepts=len(every),
        messages=int(record.execute(_MESSAGES, {"id": document.id}).fetchone()[0]),
    )


def _document(record: RelationshipRecord, name: str) -> Node:
    """Return the document of an id, of a passage's id, or of a path."""
    if document := record.node(NodeType.DOCUMENT, name):
        return document
    rows = record.execute(DOCUMENT_OF, (name,)).fetchall() or record.execute(_BY_PATH, (name,)).fetchall()
    if len(rows) > 1:
        raise BadInput(f"Several documents came from {name!r}", f"Give the id of one, such as {rows[0][0]!r}")
    document = record.node(NodeType.DOCUMENT, str(rows[0][0])) if rows else None
    if document is None:
        raise BadInput(
            f"The relationship graph knows no document called {name!r}",
            "Give the id of a document or passage, or a path, as results name them",
        )
    return document


def _shares(
    record: RelationshipRecord, document_id: str, concepts: Iterable[str], common: Mapping[str, int]
) -> dict[str, list[str]]:
    """Return {another document: the concepts that it explains, too}; of a concept, only who explains it best counts."""
    concepts_of: dict[str, list[str]] = defaultdict(list)
    for concept in concepts:
        if common[concept] > 1:
            for other in record.concepts.documents_of(concept)[:DOCUMENT_LIMIT]:
                if other != document_id:
                    concepts_of[other].append(concept)
    return concepts_of


def _nodes(record: RelationshipRecord, of: NodeType, query: str, values: tuple[str, int]) -> tuple[Node, ...]:
    keys = [str(key) for (key,) in record.execute(query, values)]
    return tuple(filter(None, (record.node(of, key) for key in keys)))


def _explaining(record: RelationshipRecord, documents: Iterable[str], concepts: Iterable[str]) -> Iterator[Edge]:
    for document, concept in product(documents, concepts):
        if edge := record.edge(EdgeType.EXPLAINS, (NodeType.DOCUMENT, document), (NodeType.CONCEPT, concept)):
            yield edge
