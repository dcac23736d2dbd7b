"""Provenance as a filter: only passages of one source, of documents newer than a date, or cited before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from graph.errors import BadInput
from graph.metadata_filter import date_span
from graph.moments import ALWAYS
from graph.relationships.provenance import Origin, origin_of, source_node
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import time_text
from graph.relationships.tables import along
from graph.schema import Passage
from graph.storage.versions import Stood

_OF_SOURCE = f"""
    SELECT document_chunk.id FROM {along("source <-sourced_from- document <-chunk_of- document_chunk")}
    WHERE source.id = :source OR source.name = :source OR source.uri = :source
    UNION
    SELECT document_chunk.id FROM {along("document <-chunk_of- document_chunk")}
    WHERE document.id = :source OR document.path = :source"""
_SINCE = f"""
    SELECT document_chunk.id FROM {along("document <-chunk_of- document_chunk")}
    WHERE document.updated_at >= :moment"""
_CITED = f"""
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

    @property
    def of_documents(self) -> ProvenanceFilter:
        """The conditions on documents alone."""
        return ProvenanceFilter(self.source, self.newer_than)

    @property
    def of_citations(self) -> ProvenanceFilter:
        """The condition on citations alone."""
        return replace(self, source="", newer_than="")


def passages_of(record: RelationshipRecord, provenance: ProvenanceFilter) -> frozenset[str]:
    """Return the ids of the passages that meet all conditions, of which there is at least one.

    Raises:
        BadInput: the date is none, or neither a conversation nor a user tells whose citations count.
    """
    values = {
        "source": provenance.source,
        "conversation": provenance.conversation_id,
        "user": provenance.user_id,
        "moment": first_moment_after(provenance.newer_than) if provenance.newer_than else "",
    }
    if provenance.cited_before and not (provenance.conversation_id or provenance.user_id):
        raise BadInput("Nothing tells where a passage was cited before", "Give a conversation or a user")
    wanted = ((provenance.source, _OF_SOURCE), (provenance.newer_than, _SINCE), (provenance.cited_before, _CITED))
    return frozenset.intersection(*(_ids(record.execute(query, values)) for given, query in wanted if given))


def passages_that_stood(stood: Iterable[Stood], of_documents: ProvenanceFilter) -> frozenset[str]:
    """Return the ids of those passages that meet the conditions on documents, as the documents were at a moment.

    Args:
        stood: what stood at the moment.
        of_documents: the conditions, of which those on citations do not count. A document is newer than a date where a
            passage of it that stood had come, or had changed, after it.

    Raises:
        BadInput: the date is none.
    """
    moment = first_moment_after(of_documents.newer_than) if of_documents.newer_than else ""
    passages: dict[str, list[str]] = defaultdict(list)
    named, newer = set(), set()
    for each in stood:
        origin = origin_of(Passage(each.passage_id, "", "", each.source, each.metadata))
        passages[origin.document].append(each.passage_id)
        if of_documents.source in _names_of(origin):
            named.add(origin.document)
        if moment and each.since != ALWAYS and time_text(datetime.fromisoformat(each.since)) >= moment:
            newer.add(origin.document)
    found = set(passages)
    if of_documents.source:
        found &= named
    if moment:
        found &= newer
    return frozenset(key for document in found for key in passages[document])


def _names_of(origin: Origin) -> Iterator[str]:
    """Yield what a source or a document may be called by."""
    yield origin.document
    yield origin.path
    if origin.path != origin.document:
        source = source_node(origin.path)
        yield from (source.id, str(source.properties["name"]))


def first_moment_after(date: str) -> str:
    """Return the first moment that is newer than a date, as properties of the graph hold times.

    A year, a month or a day is over with its last moment. Raises BadInput where it is no ISO 8601 date.
    """
    span = date_span(date)
    if span is None:
        raise BadInput(
            f"{date[:60]!a} is no date", "Give one such as 2025, 2025-01, 2025-01-31 or 2025-01-31T12:00:00Z"
        )
    first, following = span
    microseconds = round(following * 1_000_000) + (first == following)
    return time_text(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds))


def _ids(rows: Iterable[tuple[str]]) -> frozenset[str]:
    return frozenset(key for (key,) in rows)
