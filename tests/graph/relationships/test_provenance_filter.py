"""Provenance as a filter: which passages are of a source, of newer documents, or were cited before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graph.errors import BadInput
from graph.relationships.provenance import ProvenanceFilter, first_moment_after, passages_of
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from tests.graph.relationships.small_graph import NOON, Properties, conversation, document, say, user

SOURCES = (("uri-of-handbook", "handbook.pdf"), ("https://example.org/page", "example.org"))
DOCUMENTS = {
    "one": ("uri-of-handbook", "2024-12-31T23:59:59.000000+00:00"),
    "two": ("uri-of-handbook", "2025-01-01T12:00:00.000000+00:00"),
    "new": ("https://example.org/page", "2025-01-02T00:00:00.000000+00:00"),
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelationshipRecord]:
    """Three documents of a passage each: two of one source, the third newer and cited for Mia in one conversation."""
    with RelationshipRecord.of(tmp_path_factory.mktemp("filtered"), create=True) as record:
        record.put_nodes(
            Node(NodeType.SOURCE, uri, {"name": name, "type": "file", "uri": uri}) for uri, name in SOURCES
        )
        for key, (source, updated) in DOCUMENTS.items():
            record.put_node(Node(NodeType.DOCUMENT, key, {**document(key).properties, "updated_at": updated}))
            chunk: Properties = {"chunk_index": 0, "path": key, "fingerprint": key, "created_at": NOON}
            record.put_node(Node(NodeType.CHUNK, f"{key}-1", chunk))
            record.link(Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, f"{key}-1"), (NodeType.DOCUMENT, key)))
            record.link(Edge(EdgeType.SOURCED_FROM, (NodeType.DOCUMENT, key), (NodeType.SOURCE, source)))
        record.put_nodes([user("mia"), user("tom"), conversation("thread"), conversation("other")])
        say(record, "thread", "q", by="mia")
        say(record, "thread", "a", at=1)
        record.link(Edge(EdgeType.FOLLOWS, (NodeType.MESSAGE, "a"), (NodeType.MESSAGE, "q")))
        record.link(Edge(EdgeType.REFERENCES, (NodeType.MESSAGE, "a"), (NodeType.CHUNK, "new-1"), {"number": 1}))
        yield record


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("handbook.pdf", {"one-1", "two-1"}),
        ("uri-of-handbook", {"one-1", "two-1"}),
        ("example.org", {"new-1"}),
        ("one", {"one-1"}),
        ("one.md", {"one-1"}),
        ("handbook", set()),
        ("' OR ''='", set()),
        ("%", set()),
    ],
)
def test_a_source_is_named_by_name_or_address_and_a_document_by_id_or_path(
    record: RelationshipRecord, source: str, found: set[str]
) -> None:
    assert passages_of(record, ProvenanceFilter(source=source)) == found


@pytest.mark.parametrize(
    ("date", "found"),
    [
        ("2024", {"two-1", "new-1"}),
        ("2024-12-31", {"two-1", "new-1"}),
        ("2025-01-01", {"new-1"}),
        ("2025-01-01T12:00:00Z", {"new-1"}),
        ("2025-01-01T11:59:59Z", {"two-1", "new-1"}),
        ("2025-01-02", set()),
    ],
)
def test_newer_means_after_the_end_of_a_day_or_after_a_moment(
    record: RelationshipRecord, date: str, found: set[str]
) -> None:
    assert passages_of(record, ProvenanceFilter(newer_than=date)) == found


def test_citations_count_in_the_conversation_and_to_the_user(record: RelationshipRecord) -> None:
    def cited(**who: str) -> frozenset[str]:
        return passages_of(record, ProvenanceFilter(cited_before=True, **who))

    assert cited(conversation_id="thread") == cited(user_id="mia") == {"new-1"}
    assert cited(conversation_id="other") == cited(user_id="tom") == cited(user_id="' OR 1=1 --") == frozenset()


def test_all_conditions_hold(record: RelationshipRecord) -> None:
    narrow = ProvenanceFilter("handbook.pdf", "2024")
    assert passages_of(record, narrow) == {"two-1"}
    assert passages_of(record, ProvenanceFilter("handbook.pdf", "", True, "thread")) == frozenset()
    assert passages_of(record, ProvenanceFilter("example.org", "2024", True, "thread")) == {"new-1"}


def test_somebody_has_to_be_named_whose_citations_count(record: RelationshipRecord) -> None:
    with pytest.raises(BadInput, match="Nothing tells where"):
        passages_of(record, ProvenanceFilter(cited_before=True))


@pytest.mark.parametrize("date", ["yesterday", "2025-13", "2025-02-30", ""])
def test_what_is_no_date_is_refused(date: str) -> None:
    with pytest.raises(BadInput, match="no date"):
        first_moment_after(date)


def test_conditions_on_documents_and_on_citations_come_apart() -> None:
    whole = ProvenanceFilter("a", "2025", True, "thread", "mia")
    assert whole.of_documents == ProvenanceFilter("a", "2025")
    assert whole.of_citations == ProvenanceFilter("", "", True, "thread", "mia")
    assert not ProvenanceFilter(conversation_id="thread", user_id="mia")
