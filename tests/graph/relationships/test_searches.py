"""Searches that are kept on request: a Query with SIMILARITY edges."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import MissingEndpoint
from graph.relationships.history import keep_search
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EdgeType, NodeType
from tests.graph.relationships.small_graph import small_record

AT = "2026-01-01T00:00:00.000000+00:00"


def kept(record: RelationshipRecord, name: str) -> dict[str, object]:
    edges = record.edges(EdgeType.SIMILARITY, NodeType.QUERY, NodeType.DOCUMENT)
    return {edge.target[1]: edge.properties["score"] for edge in edges if edge.source[1] == name}


def test_a_search_is_kept_with_its_similarities(tmp_path: Path) -> None:
    record = small_record(tmp_path)
    keep_search(record, "ports", "Which ports?", {"d-port": 0.75, "d-yokohama": 0.5}, AT)
    query = record.node(NodeType.QUERY, "ports")
    assert query
    assert query.properties == {"text": "Which ports?", "created_at": AT}
    assert kept(record, "ports") == {"d-port": 0.75, "d-yokohama": 0.5}


def test_another_of_the_same_name_replaces_it(tmp_path: Path) -> None:
    record = small_record(tmp_path)
    keep_search(record, "ports", "Which ports?", {"d-port": 0.75, "d-yokohama": 0.5}, AT)
    keep_search(record, "ports", "Which harbours?", {"d-silk": 0.25}, AT)
    assert kept(record, "ports") == {"d-silk": 0.25}


def test_one_that_names_an_unknown_document_leaves_the_last(tmp_path: Path) -> None:
    record = small_record(tmp_path)
    keep_search(record, "ports", "Which ports?", {"d-port": 0.75}, AT)
    with pytest.raises(MissingEndpoint):
        keep_search(record, "ports", "Which harbours?", {"d-silk": 0.25, "d-nowhere": 0.5}, AT)
    assert kept(record, "ports") == {"d-port": 0.75}
