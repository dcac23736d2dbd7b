"""The provenance of one passage: what the relationship graph knows of where it comes from and who used it.

Of people it tells no more than how many viewed the document; of conversations, those that are open to who asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType

_DOCUMENT = """
    SELECT document.id FROM document_chunk chunk JOIN chunk_of ON chunk_of.source = chunk.key
    JOIN document ON document.key = chunk_of.target WHERE chunk.id = ?"""
_SOURCES = """
    SELECT source.id FROM document JOIN sourced_from ON sourced_from.source = document.key
    JOIN source ON source.key = sourced_from.target WHERE document.id = ? ORDER BY source.id"""
_VECTOR = """
    SELECT vector.id, vector_store.id FROM document_chunk chunk JOIN embedding_of ON embedding_of.target = chunk.key
    JOIN vector ON vector.key = embedding_of.source
    LEFT JOIN stored_in ON stored_in.source = vector.key
    LEFT JOIN vector_store ON vector_store.key = stored_in.target WHERE chunk.id = ? ORDER BY vector.id"""
_VIEWERS = """
    SELECT count(*) FROM document JOIN viewed ON viewed.target = document.key WHERE document.id = ?"""
_CITED = """
    SELECT conversation.id, conversation.title, message.id, message.created_at, cited.number, (
        SELECT "user".id FROM part_of first
        LEFT JOIN created ON created.target = first.source LEFT JOIN "user" ON "user".key = created.source
        WHERE first.target = conversation.key ORDER BY first.position LIMIT 1
    ) AS owner
    FROM document_chunk chunk JOIN references_message_document_chunk cited ON cited.target = chunk.key
    JOIN message ON message.key = cited.source JOIN part_of ON part_of.source = message.key
    JOIN conversation ON conversation.key = part_of.target
    WHERE chunk.id = ? ORDER BY message.created_at, message.id"""


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
    row = record.execute(_DOCUMENT, (passage_id,)).fetchone()
    document = record.node(NodeType.DOCUMENT, str(row[0])) if row else None
    if chunk is None or document is None:
        raise unknown_passage()
    sources = (record.node(NodeType.SOURCE, str(key)) for (key,) in record.execute(_SOURCES, (document.id,)).fetchall())
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
