"""Where a passage comes from: the document that it is part of, the source of that, and the pages that it links to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from graph.errors import BadInput
from graph.moments import last_moment
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType, time_text
from graph.relationships.tables import along
from graph.schema import MAX_ID, Passage, stable_id
from graph.sources.loaders import content_type_of
from graph.text import has_controls, is_unicode

WEBSITE, FILE = "website", "file"
"""The types of sources."""

_SCHEMES = ("http", "https")
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a passage.

    Attributes:
        document: id of the document.
        number: the passage's place in the document, from 0.
        path: the file or address that the document came from; its id where none is known.
        title: the document's, else the last part of its path.
        content_type: its MIME type; None where the kind of file is not known.
        references: addresses of the web pages that the passage links to.
    """

    document: str
    number: int
    path: str
    title: str
    content_type: str | None
    references: tuple[str, ...]


def origin_of(passage: Passage) -> Origin:
    """Return where a passage comes from, by its source and metadata."""
    document = _usable(str(passage.metadata.get("document") or passage.id))
    path = passage.source or document
    file = str(passage.metadata.get("file") or path)
    suffix = PurePosixPath(urlsplit(file).path if is_address(file) else file).suffix.lower()
    return Origin(
        document=document,
        number=passage.number,
        path=path,
        title=passage.title or path.rstrip("/").rpartition("/")[2] or path,
        content_type=content_type_of(suffix) or ("text/html" if is_address(path) else None),
        references=tuple(filter(is_address, str(passage.metadata.get("references", "")).split())),
    )


def _usable(document: str) -> str:
    """Return the id of a document, or a hash of it where no node could have it."""
    usable = document.strip() and not has_controls(document) and len(document) <= MAX_ID and is_unicode(document)
    return document if usable else stable_id("document", document)


def is_address(path: str) -> bool:
    """Tell the address of a web page from the path of a file."""
    return path.partition("://")[0].lower() in _SCHEMES and "://" in path


def source_id(uri: str) -> str:
    """Return the id of the source at an address or path: the first 16 digits of its SHA-256."""
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def source_node(uri: str) -> Node:
    """Return the source at an address or path: a website by its host, a file by its name."""
    if is_address(uri):
        name, kind = urlsplit(uri).hostname or uri, WEBSITE
    else:
        name, kind = PurePosixPath(uri).name or uri, FILE
    return Node(NodeType.SOURCE, source_id(uri), {"name": name, "type": kind, "uri": uri})


DOCUMENT_OF = f"SELECT document.id FROM {along('document_chunk -chunk_of-> document')} WHERE document_chunk.id = ?"
"""Selects the document of a passage."""

_SOURCES_OF = f"""
    SELECT source.id FROM {along("document -sourced_from-> source")} WHERE document.id = ? ORDER BY source.id"""

_VIEWERS = f"SELECT count(*) FROM {along('document <-viewed-')} WHERE document.id = ?"
_CITED = f"""
    SELECT conversation.id, conversation.title, message.id, message.created_at, number, (
        SELECT "user".id FROM part_of first
        LEFT JOIN created ON created.target = first.source LEFT JOIN "user" ON "user".key = created.source
        WHERE first.target = conversation.key ORDER BY first.position LIMIT 1
    ) AS owner
    FROM {along("document_chunk <-references_message_document_chunk- message -part_of-> conversation")}
    WHERE document_chunk.id = ? ORDER BY message.created_at, message.id"""


def account_of(
    record: RelationshipRecord, passage_id: str, user_id: str = "", *, own_only: bool = False
) -> dict[str, Any]:
    """Return what is known of a passage, as JSON: its chunk, document, sources, vector, viewers and citations.

    Args:
        record: the relationship graph.
        passage_id: the id of the passage.
        user_id: the user: shown citations in conversations that they began, and in those without a known user.
        own_only: whether they are told of their own alone.

    Raises:
        BadInput: the relationship graph has no such passage.
    """
    chunk = record.node(NodeType.CHUNK, passage_id)
    row = record.execute(DOCUMENT_OF, (passage_id,)).fetchone()
    document = record.node(NodeType.DOCUMENT, str(row[0])) if row else None
    if chunk is None or document is None:
        raise unknown_passage()
    keys = record.execute(_SOURCES_OF, (document.id,))
    sources = [source for (key,) in keys if (source := record.node(NodeType.SOURCE, str(key)))]
    store = next(record.nodes(NodeType.VECTOR_STORE), None)
    open_to = {user_id} if own_only else {user_id, ""}
    return {
        "chunk": chunk.properties["chunk_index"],
        "document": as_json(document),
        "sources": [as_json(source) for source in sources],
        "vector": {"id": passage_id, "store": as_json(store) if store else None},
        "viewers": int(record.execute(_VIEWERS, (document.id,)).fetchone()[0]),
        "cited_in": [
            {"conversation": key, "title": title or "", "message": message, "at": at, "number": number}
            for key, title, message, at, number, owner in record.execute(_CITED, (passage_id,))
            if (owner or "") in open_to
        ],
    }


def as_json(node: Node) -> dict[str, Any]:
    """Return the id and the properties of a node."""
    return {"id": node.id, **node.properties}


def unknown_passage() -> BadInput:
    """Return the error for an id that names no passage, or none that may be seen."""
    return BadInput("There is no passage of that id", "Give the id of a passage as results have it")


_OF_SOURCE = f"""
    SELECT document_chunk.id FROM {along("source <-sourced_from- document <-chunk_of- document_chunk")}
    WHERE source.id = :source OR source.name = :source OR source.uri = :source
    UNION
    SELECT document_chunk.id FROM {along("document <-chunk_of- document_chunk")}
    WHERE document.id = :source OR document.path = :source"""
_SINCE = f"""
    SELECT document_chunk.id FROM {along("document <-chunk_of- document_chunk")}
    WHERE document.updated_at > :moment"""
_CITED_BEFORE = f"""
    SELECT document_chunk.id
    FROM {along("conversation <-part_of- message -references_message_document_chunk-> document_chunk")}
    WHERE conversation.id = :conversation
    UNION
    SELECT document_chunk.id FROM {along('"user" -created->')} JOIN follows ON follows.target = created.target
    JOIN references_message_document_chunk cited ON cited.source = follows.source
    JOIN document_chunk ON document_chunk.key = cited.target WHERE "user".id = :user"""


@dataclass(frozen=True, slots=True)
class ProvenanceFilter:
    """Conditions on where passages come from; all that are given are to hold.

    Attributes:
        source: id, name or address of a source, or id or path of a document; empty for any.
        newer_than: an ISO 8601 date: documents that were updated after it; empty for any.
        cited_before: whether only passages count that answers cited, in the conversation or to the user.
        conversation_id: whose citations count.
        user_id: whose citations count.
    """

    source: str = ""
    newer_than: str = ""
    cited_before: bool = False
    conversation_id: str = ""
    user_id: str = ""

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return bool(self.source or self.newer_than or self.cited_before)


def passages_of(record: RelationshipRecord, provenance: ProvenanceFilter) -> frozenset[str]:
    """Return the ids of the passages that meet all conditions, of which there is at least one.

    Raises:
        BadInput: the date is none, or neither a conversation nor a user tells whose citations count.
    """
    values = {
        "source": provenance.source,
        "conversation": provenance.conversation_id,
        "user": provenance.user_id,
        "moment": _last_moment_of(provenance.newer_than) if provenance.newer_than else "",
    }
    if provenance.cited_before and not (provenance.conversation_id or provenance.user_id):
        raise BadInput("Nothing tells where a passage was cited before", "Give a conversation or a user")
    wanted = (
        (provenance.source, _OF_SOURCE),
        (provenance.newer_than, _SINCE),
        (provenance.cited_before, _CITED_BEFORE),
    )
    return frozenset.intersection(
        *(frozenset(key for (key,) in record.execute(query, values)) for is_wanted, query in wanted if is_wanted)
    )


def _last_moment_of(date: str) -> str:
    """Return the last moment of a date, as properties of the graph hold times. Raises BadInput where it is none."""
    return time_text(datetime.fromisoformat(last_moment(date)))
