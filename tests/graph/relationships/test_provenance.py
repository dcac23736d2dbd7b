"""Where a passage comes from is told by its source and metadata."""

from __future__ import annotations

import pytest

from graph.relationships.provenance import is_address, origin_of, source_id, source_node
from graph.relationships.schema import Node, NodeType, check_node
from graph.schema import MAX_ID, MetadataValue, Passage
from graph.sources.loaders import kinds


def test_every_kind_of_file_that_is_read_has_a_content_type() -> None:
    assert all(kind.content_type for kind in kinds().values())


def test_a_row_is_a_document_of_its_own() -> None:
    origin = origin_of(Passage("p1", "Nissan", "text", "cars/prices.csv", {"year": 1933}))
    assert (origin.document, origin.number, origin.path, origin.title) == ("p1", 0, "cars/prices.csv", "Nissan")
    assert origin.content_type == "text/csv"
    assert origin.references == ()


def test_a_chunk_belongs_to_its_document() -> None:
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


@pytest.mark.parametrize(
    ("source", "metadata", "content_type"),
    [
        ("https://ex.org/wiki/Nissan", {}, "text/html"),
        ("https://ex.org/wiki/Nissan.pdf?x=.txt", {}, "application/pdf"),
        ("https://ex.org/wiki", {"file": "pages/wiki.md"}, "text/markdown"),
        ("notes.xyz", {}, None),
        ("", {}, None),
    ],
)
def test_the_kind_of_file_tells_the_content_type(
    source: str, metadata: dict[str, str], content_type: str | None
) -> None:
    assert origin_of(Passage("p", "", "text", source, metadata)).content_type == content_type


@pytest.mark.parametrize("document", ["a\nb", "x" * (MAX_ID + 1), " "])
def test_an_id_that_no_node_can_have_is_hashed(document: str) -> None:
    origin = origin_of(Passage("p", "t", "text", "a.txt", {"document": document}))
    assert origin.document.startswith("document-")
    assert origin == origin_of(Passage("q", "t", "other", "a.txt", {"document": document}))


def test_a_website_is_a_source_by_its_address_and_a_file_by_its_path() -> None:
    address = "https://en.example.org:8080/wiki/Nissan"
    site, file = source_node(address), source_node("cars/prices.csv")
    assert site.properties == {"name": "en.example.org", "type": "website", "uri": address}
    assert file.properties == {"name": "prices.csv", "type": "file", "uri": "cars/prices.csv"}
    assert site.id == source_id(address) != file.id
    for node in (site, file, source_node("/")):
        check_node(node)
    assert isinstance(site, Node)
    assert site.type is NodeType.SOURCE


def test_the_id_of_a_source_is_the_start_of_a_sha_256() -> None:
    assert source_id("abc") == "ba7816bf8f01cfea"


@pytest.mark.parametrize(
    ("path", "is_one"), [("http://a", True), ("HTTPS://a", True), ("ftp://a", False), ("http", False)]
)
def test_an_address_is_told_from_a_path(path: str, is_one: bool) -> None:
    assert is_address(path) is is_one
