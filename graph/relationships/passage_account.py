"""The provenance of one passage: what the relationship graph knows of where it comes from and who used it.

Of people it tells no more than how many viewed the document; of conversations, those that are open to who asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType
from graph.relationships.tables import along

DOCUMENT_OF = f"SELECT document.id FROM {along('document_chunk -chunk_of-> document')} WHERE document_chunk.id = ?"
"""Selects the document of a passage."""

SOURCES_OF = f"""
    SELECT source.id FROM {along("document -sourced_from-> source")} WHERE document.id = ? ORDER BY source.id"""
"""Selects the sources of a document."""

_VECTOR = f"""
    SELECT vector.id, vector_store.id FROM {along("document_chunk <-embedding_of- vector")}
    LEFT JOIN stored_in ON stored_in.source = vector.key
    LEFT JOIN vector_store ON vector_store.key = stored_in.target WHERE document_chunk.id = ? ORDER BY vector.id"""
_VIEWERS = f"SELECT count(*) FROM {along('document <-viewed-')} WHERE document.id = ?"
_CITED = f"""
    SELECT conversation.id, conversation.title, message.id, message.created_at, number, (
        SELECT "user".id FROM part_of first
        LEFT JOIN created ON created.target = first.source LEFT JOIN "user" ON "user".key = created.source
        WHERE first.target = conversation.key ORDER BY first.position LIMIT 1
    ) AS owner
    FROM {along("document_chunk <-references_message_document_chunk- message -part_of-> conversation")}
    WHERE document_chunk.id = ? ORDER BY message.created_at, message.id"""


@dataclass(frozen=True, slots=True)
class Citation:
    """An answer that cites a passage.

    Attributes:
        conversation, title: of the conversation.
        message: the id of the answer.
        at: when it was given.
        number: what it cites the passage by; None where that is not known.
    """

    conversation: str
    title: str
    message: str
    at: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Account:
    """What is known of a passage.

    Attributes:
        chunk, document: their nodes.
        sources: what the document came from.
        vector: the id of its embedding; empty where it has none.
        store: the index that the embedding is stored in.
        viewers: how many users viewed the document.
        citations: answers that cite it, in conversations open to who asks, the earliest first.
    """

    chunk: Node
    document: Node
    sources: tuple[Node, ...]
    vector: str
    store: Node | None
    viewers: int
    citations: tuple[Citation, ...]


def account_of(record: RelationshipRecord, passage_id: str, user_id: str = "", *, own_only: bool = False) -> Account:
    """Return the provenance of a passage.

    Args:
        record: the relationship graph.
        passage_id: the id of the passage.
        user_id: who asks: told of conversations that they began, and of those that nobody is known to have begun.
        own_only: whether they are told of their own alone.

    Raises:
        BadInput: the relationship graph has no such passage.
    """
    chunk = record.node(NodeType.CHUNK, passage_id)
    row = record.execute(DOCUMENT_OF, (passage_id,)).fetchone()
    document = record.node(NodeType.DOCUMENT, str(row[0])) if row else None
    if chunk is None or document is None:
        raise unknown_passage()
    keys = record.execute(SOURCES_OF, (document.id,)).fetchall()
    sources = (record.node(NodeType.SOURCE, str(key)) for (key,) in keys)
    vector, store = record.execute(_VECTOR, (passage_id,)).fetchone() or ("", "")
    return Account(
        chunk,
        document,
        tuple(source for source in sources if source),
        str(vector),
        record.node(NodeType.VECTOR_STORE, str(store)) if store else None,
        int(record.execute(_VIEWERS, (document.id,)).fetchone()[0]),
        _citations(record, passage_id, user_id, own_only=own_only),
    )


def unknown_passage() -> BadInput:
    """Return the error for an id that names no passage, or none that may be seen."""
    return BadInput("There is no passage of that id", "Give the id of a passage as results have it")


def _citations(record: RelationshipRecord, passage_id: str, user_id: str, *, own_only: bool) -> tuple[Citation, ...]:
    open_to = {user_id} if own_only else {user_id, ""}
    rows = record.execute(_CITED, (passage_id,))
    return tuple(
        Citation(str(key), str(title or ""), str(message), str(at), number)
        for key, title, message, at, number, owner in rows
        if (owner or "") in open_to
    )
