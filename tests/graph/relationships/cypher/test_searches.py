"""The searches in Cypher find in the copy and on a server what they find in the record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships.conversation_search import conversation_search
from graph.relationships.cypher import queries
from graph.relationships.cypher.bolt import BoltServer
from graph.relationships.cypher.copies import open_copy
from graph.relationships.cypher.mirror import mirror
from graph.relationships.cypher.reading import Queryable
from graph.relationships.discovery import discover
from graph.relationships.record import RelationshipRecord
from tests.graph.relationships.cypher.conftest import SIMILARITIES
from tests.graph.relationships.small_graph import NOON


@pytest.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.slow)])
def store(record: RelationshipRecord, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Queryable]:
    if request.param == "embedded":
        with open_copy(tmp_path) as copy:
            yield copy
    else:
        server: BoltServer = request.getfixturevalue("server")
        mirror(tmp_path, server)
        yield server


def test_conversation_search_mixes_both_as_in_the_record(store: Queryable, record: RelationshipRecord) -> None:
    for thread in ("thread", "unknown"):
        expected: list[object] = [
            (each.id, each.path, each.similarity, each.concepts, each.relevance, pytest.approx(each.score))
            for each in conversation_search(record, thread, SIMILARITIES)
        ]
        rows = store.query(queries.CONVERSATION_SEARCH, {"conversation_id": thread, "query_id": "q"}).rows
        assert list(rows) == expected


def test_discovery_counts_concepts_as_in_the_record(store: Queryable, record: RelationshipRecord) -> None:
    for user_id in ("mia", "stranger"):
        rows = store.query(queries.DISCOVERY, {"user_id": user_id}).rows
        expected = discover(record, user_id=user_id, as_published=True)
        assert [row[:3] for row in rows] == [(each.id, each.path, each.relevance) for each in expected]


def test_messages_follow_each_other_views_are_dated_and_citations_numbered(store: Queryable) -> None:
    assert store.query(queries.THREAD, {"conversation_id": "thread"}).rows == (
        ("m1", "user", "Nissan", None),
        ("m2", "assistant", "Renault", "m1"),
        ("m3", "user", "Nissan", "m2"),
    )
    assert store.query(queries.VIEWS, {"user_id": "mia"}).rows == (("d-renault", 1, NOON, NOON),)
    assert store.query(queries.VIEWS, {"user_id": "stranger"}).rows == ()
    assert store.query(queries.CITATIONS, {"message_id": "m2"}).rows == (("d-nissan", 1),)
