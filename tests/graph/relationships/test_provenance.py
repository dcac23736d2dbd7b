"""Where a passage comes from is told by its source and metadata."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graph.errors import BadInput
from graph.relationships.provenance import (
    ProvenanceFilter,
    is_address,
    origin_of,
    passages_of,
    source_id,
    source_node,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, check_node
from graph.schema import MAX_ID, MetadataValue, Passage
from tests.graph.relationships.small_graph import NOON, Properties, conversation, document, say, user


def test_a_chunk_belongs_to_its_document_and_a_row_is_one_of_its_own() -> None:
    metadata: dict[str, MetadataValue] = {
        "document": "document-1",
        "chunk": 3,
        "file": "a.pdf",
        "references": "http://a/ https://b/?q=1 stale-id",
    }
    origin = origin_of(Passage("p1", "", "text", "reports/a.pdf", metadata))
    assert (origin.document, origin.number, origin.title) == ("document-1", 3, "a.pdf")
    assert origin.content_type == "application/pdf"
    assert origin.references == ("http://a/", "https://b/?q=1")
    for key in ["a\nb", "x" * (MAX_ID + 1)]:
        assert origin_of(Passage("p1", "t", "text", "a.txt", {"document": key})).document.startswith("document-")
    page = Passage("p", "t", "text", "https://ex.org/wiki/Nissan.pdf?x=.txt", {})
    assert origin_of(page).content_type == "application/pdf"
    assert origin_of(Passage("p", "t", "text", "notes.xyz", {})).content_type is None
    row = origin_of(Passage("p1", "Nissan", "text", "cars/prices.csv", {"year": 1933}))
    assert (row.document, row.number, row.path, row.title) == ("p1", 0, "cars/prices.csv", "Nissan")


def test_a_website_is_a_source_by_its_address_and_a_file_by_its_path() -> None:
    assert is_address("http://a")
    assert is_address("HTTPS://a")
    assert not is_address("ftp://a")
    assert source_id("abc") == "ba7816bf8f01cfea", "the start of a SHA-256"
    address = "https://en.example.org:8080/wiki/Nissan"
    site, file = source_node(address), source_node("cars/prices.csv")
    assert site.properties == {"name": "en.example.org", "type": "website", "uri": address}
    assert file.properties == {"name": "prices.csv", "type": "file", "uri": "cars/prices.csv"}
    assert site.id == source_id(address) != file.id
    check_node(source_node("/"))


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


def test_a_source_is_named_by_name_or_address_and_a_document_by_id_or_path(record: RelationshipRecord) -> None:
    for source, passages in [
        ("handbook.pdf", {"one-1", "two-1"}),
        ("uri-of-handbook", {"one-1", "two-1"}),
        ("example.org", {"new-1"}),
        ("one", {"one-1"}),
        ("one.md", {"one-1"}),
        ("handbook", set()),
    ]:
        assert passages_of(record, ProvenanceFilter(source=source)) == passages


def test_newer_means_after_the_end_of_a_day_or_after_a_moment(record: RelationshipRecord) -> None:
    for date, passages in [
        ("2024", {"two-1", "new-1"}),
        ("2024-12-31", {"two-1", "new-1"}),
        ("2025-01-01", {"new-1"}),
        ("2025-01-01T12:00:00Z", {"new-1"}),
        ("2025-01-01T11:59:59Z", {"two-1", "new-1"}),
        ("2025-01-02", set()),
    ]:
        assert passages_of(record, ProvenanceFilter(newer_than=date)) == passages
    with pytest.raises(BadInput, match="no date"):
        passages_of(record, ProvenanceFilter(newer_than="yesterday"))


def test_citations_count_in_the_conversation_and_to_the_user(record: RelationshipRecord) -> None:
    def cited(**ids: str) -> frozenset[str]:
        return passages_of(record, ProvenanceFilter(cited_before=True, **ids))

    assert cited(conversation_id="thread") == cited(user_id="mia") == {"new-1"}
    assert cited(conversation_id="other") == cited(user_id="tom") == cited(user_id="' OR 1=1 --") == frozenset()
    with pytest.raises(BadInput, match="Nothing tells where"):
        cited()


def test_all_conditions_hold(record: RelationshipRecord) -> None:
    assert passages_of(record, ProvenanceFilter("handbook.pdf", "2024")) == {"two-1"}
    assert passages_of(record, ProvenanceFilter("handbook.pdf", "", True, "thread")) == frozenset()
    assert passages_of(record, ProvenanceFilter("example.org", "2024", True, "thread")) == {"new-1"}
    assert not ProvenanceFilter(conversation_id="thread", user_id="mia")
