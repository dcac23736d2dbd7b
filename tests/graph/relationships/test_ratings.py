"""The relevance of a view is the mean of its user's marks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships import conversations as past
from graph.relationships.history import NewTurn, rate_views, record_turn
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, NodeType
from graph.storage.marks import Mark, MarkKind
from tests.relationship_graphs import NOON, sample_node

WHO = "Who founded Nissan?"


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RelationshipRecord]:
    """Ada and Ben, who each were shown both documents; Ada asked in words that leaned on others."""
    with RelationshipRecord.of(tmp_path, create=True) as opened:
        for document in ("nissan", "aikawa"):
            opened.put_node(sample_node(NodeType.DOCUMENT, document))
            for chunk in (f"{document}-1", f"{document}-2"):
                opened.put_node(sample_node(NodeType.CHUNK, chunk))
                opened.link(Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, chunk), (NodeType.DOCUMENT, document)))
        cited = [past.Cited(1, "nissan-1"), past.Cited(2, "aikawa-1")]
        record_turn(opened, NewTurn("a", "And who?", "A.", NOON, NOON, "", "ada", understood=WHO, cited=cited))
        record_turn(opened, NewTurn("b", "When?", "B.", NOON, NOON, "", "ben", cited=cited))
        yield opened


def scores(record: RelationshipRecord, user: str) -> dict[str, float | None]:
    return {view.document: view.relevance_score for view in past.views(record, user)}


def person(passage: str, *, served: bool = True, question: str = WHO) -> Mark:
    return Mark(question, passage, MarkKind.PERSON, served)


def test_marks_of_a_person_count_for_the_asker_and_for_the_document(record: RelationshipRecord) -> None:
    none = [Mark(WHO, "nissan-1", kind) for kind in (MarkKind.GOLD, MarkKind.CITED)]
    assert rate_views(record, [*none, person("gone"), person("nissan-1", question="Never asked")]) == 0
    marks = [person("nissan-1"), person("nissan-2", served=False), person("nissan-1", question="And who?")]
    assert rate_views(record, [*marks, person("aikawa-1", served=False)]) == 2
    assert scores(record, "ada") == {"nissan": pytest.approx(1 / 3), "aikawa": -1.0}
    assert scores(record, "ben") == {"nissan": None, "aikawa": None}


def test_what_is_marked_no_more_has_no_relevance(record: RelationshipRecord) -> None:
    rate_views(record, [person("nissan-1")])
    before = record.revision
    assert rate_views(record, [person("nissan-1")]) == 0
    assert rate_views(record, []) == 1
    assert scores(record, "ada") == {"nissan": None, "aikawa": None}
    assert record.revision > before
