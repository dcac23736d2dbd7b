"""The searches of 003 in Cypher, on a graph worked out by hand: as in the record, so in the copy and on a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from graph.relationships.conversation_search import conversation_search
from graph.relationships.cypher import queries
from graph.relationships.cypher.bolt import BoltServer, ServerSettings
from graph.relationships.cypher.copies import open_copy
from graph.relationships.cypher.mirror import mirror
from graph.relationships.cypher.reading import CellValue, Queryable
from graph.relationships.discovery import discover
from graph.relationships.record import RelationshipRecord
from tests.bolt_server import PASSWORD, USER, BoltEndpoint
from tests.graph.relationships.cypher.conftest import SIMILARITIES, fill
from tests.graph.relationships.small_graph import NOON

GIVEN: list[CellValue] = [{"id": key, "score": score} for key, score in SIMILARITIES.items()]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small")


@pytest.fixture(scope="module")
def record(workspace: Path) -> RelationshipRecord:
    return fill(workspace)


@pytest.fixture(scope="module", params=["embedded", pytest.param("server", marks=pytest.mark.slow)])
def store(record: RelationshipRecord, workspace: Path, request: pytest.FixtureRequest) -> Iterator[Queryable]:
    if request.param == "embedded":
        with open_copy(workspace) as copy:
            yield copy
        return
    endpoint: BoltEndpoint = request.getfixturevalue("endpoint")
    reached = ServerSettings(ServerSettings.of(endpoint.address).url, USER, PASSWORD, endpoint.new_database())
    with BoltServer(reached) as server:
        mirror(workspace, server)
        yield server


def found_in(store: Queryable, thread: str, *, stored: bool) -> list[tuple[object, ...]]:
    if stored:
        rows = store.query(queries.CONVERSATION_SEARCH, {"conversation_id": thread, "query_id": "q"}).rows
    else:
        given: Mapping[str, CellValue] = {"conversation_id": thread, "similarities": GIVEN}
        rows = store.query(queries.CONVERSATION_SEARCH_OF_SCORES, given).rows
    return [(*row[:-1], round(float(str(row[-1])), 12)) for row in rows]


def test_conversation_search_mixes_both_as_in_the_record(store: Queryable, record: RelationshipRecord) -> None:
    for stored in (True, False):
        assert found_in(store, "thread", stored=stored) == [
            ("d-nissan", "d-nissan.md", 0.8, 1, 0.5, 0.71),
            ("d-alliance", "d-alliance.md", 0.5, 2, 1.0, 0.65),
            ("d-plain", "d-plain.md", 0.9, 0, 0.0, 0.63),
            ("d-renault", "d-renault.md", 0.6, 1, 0.5, 0.57),
            ("d-port", "d-port.md", 0.1, 0, 0.0, 0.07),
        ]
        for thread in ("thread", "unknown"):
            assert found_in(store, thread, stored=stored) == [
                (each.id, each.path, each.similarity, each.concepts, each.relevance, round(each.score, 12))
                for each in conversation_search(record, thread, SIMILARITIES)
            ]


def test_discovery_counts_concepts_as_in_the_record(store: Queryable, record: RelationshipRecord) -> None:
    assert store.query(queries.DISCOVERY, {"user_id": "mia"}).rows == (
        ("d-yokohama", "d-yokohama.md", 2, 3),
        ("d-alliance", "d-alliance.md", 1, 1),
        ("d-nissan", "d-nissan.md", 1, 1),
    )
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


def test_the_query_of_003_for_conversations_runs_as_it_is_written(store: Queryable) -> None:
    query = """
        // Find documents related to the current query that are connected to the conversation
        MATCH (q:Query {id: $query_id})
        MATCH (c:Conversation {id: $conversation_id})
        MATCH (c)-[:CONTAINS]->(m:Message)-[:MENTIONS]->(concept:Concept)
        MATCH (d:Document)-[:EXPLAINS]->(concept)
        WITH d, count(distinct concept) AS conceptRelevance

        // Combine with vector similarity
        MATCH (q)-[s:SIMILARITY]->(d)
        WITH d, s.score AS vectorSimilarity, conceptRelevance

        // Calculate combined relevance score
        RETURN d.id, d.path,
               (vectorSimilarity * 0.7) + (conceptRelevance * 0.3) AS relevance
        ORDER BY relevance DESC
        LIMIT 5
    """
    rows = store.query(query, {"query_id": "q", "conversation_id": "thread"}).rows
    assert [(row[0], round(float(str(row[2])), 9)) for row in rows] == [
        ("d-alliance", 0.95),
        ("d-nissan", 0.86),
        ("d-renault", 0.72),
    ]
