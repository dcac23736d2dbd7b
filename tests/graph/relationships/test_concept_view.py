"""Concepts and the edges at them follow from the published generation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships.concept_view import CONCEPT_EDGES
from graph.relationships.documents import relate
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, EdgeType, NodeType
from graph.relationships.tables import VIEWS
from graph.schema import Passage, RelationType, entity_id
from graph.storage.workspace import Workspace
from tests.builders import TripleParts, publish_workspace
from tests.graph.relationships.small_graph import concept, conversation, document, explains, related, say

PASSAGES = [
    Passage("nissan", "Nissan", "Nissan was founded in Yokohama.", "cars.jsonl"),
    Passage("datsun", "Datsun", "Datsun was a brand of Nissan.", "cars.jsonl"),
]
FACTS: dict[str, list[TripleParts]] = {
    "nissan": [("Nissan", "founded in", "Yokohama", RelationType.SPATIAL, 0.9)],
    "datsun": [("Datsun", "brand of", "Nissan", RelationType.HIERARCHICAL, 0.8)],
}
NISSAN, DATSUN, YOKOHAMA = map(entity_id, ("Nissan", "Datsun", "Yokohama"))
COMPUTED_TABLES = ("explains", "related_to")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    published = publish_workspace(tmp_path, PASSAGES, FACTS)
    bring_in_step(published)
    return published


def bring_in_step(workspace: Workspace) -> None:
    with workspace.open_record() as passages:
        relate(workspace, passages)


@pytest.fixture
def record(workspace: Workspace) -> Iterator[RelationshipRecord]:
    with RelationshipRecord.of(workspace.root) as opened:
        yield opened


def publish_again(workspace: Workspace, passages: list[Passage], removed: list[str]) -> RelationshipRecord:
    """Publish another generation, bring the graph in step with it and open the record."""
    publish_workspace(workspace.root, passages, FACTS, removed=removed)
    bring_in_step(workspace)
    return RelationshipRecord.of(workspace.root)


def without_nissan(workspace: Workspace) -> RelationshipRecord:
    return publish_again(workspace, [PASSAGES[1]], ["nissan"])


def rows_of(record: RelationshipRecord, table: str) -> int:
    return int(record.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


class TestWhatIsComputed:
    def test_as_many_are_listed_as_are_counted_and_none_is_in_the_tables(self, record: RelationshipRecord) -> None:
        assert not any(rows_of(record, table) for table in (*COMPUTED_TABLES, "concept"))
        counts = record.counts()
        assert (counts[NodeType.CONCEPT], counts[NodeType.VECTOR], counts[EdgeType.STORED_IN]) == (3, 2, 2)
        assert (counts[EdgeType.EXPLAINS], counts[EdgeType.RELATED_TO]) == (4, 2)
        for of in (NodeType.CONCEPT, NodeType.VECTOR, NodeType.VECTOR_STORE):
            assert len(list(record.nodes(of))) == counts[of]
        for edge_type in (EdgeType.EXPLAINS, EdgeType.RELATED_TO, EdgeType.STORED_IN, EdgeType.EMBEDDING_OF):
            ((start, end),) = EDGES[edge_type].pairs
            edges = list(record.edges(edge_type, start, end))
            assert len(edges) == counts[edge_type]

    def test_a_document_and_its_concepts_find_each_other_best_first(self, record: RelationshipRecord) -> None:
        explained = record.concepts.concepts_of("nissan")
        assert explained[0] == (NISSAN, 1.0)
        assert [key for key, _ in explained[1:]] == [YOKOHAMA]
        assert list(record.concepts.documents_of(NISSAN)) == ["nissan", "datsun"]
        assert record.concepts.concepts_of("unknown") == []
        assert list(record.concepts.documents_of("unknown")) == []

    def test_a_relation_is_seen_from_both_ends(self, record: RelationshipRecord) -> None:
        assert {each.id for each in record.concepts.neighbours(NISSAN)} == {DATSUN, YOKOHAMA}
        (near,) = record.concepts.neighbours(DATSUN)
        assert (near.id, near.name, near.relation) == (NISSAN, "Nissan", "HIERARCHICAL")


def test_a_mention_of_a_concept_goes_with_the_concept(workspace: Workspace, record: RelationshipRecord) -> None:
    record.put_node(conversation("thread"))
    say(record, "thread", "m", "Nissan", "Yokohama", by="")
    assert rows_of(record, "concept") == rows_of(record, "mentions") == 2
    assert record.execute("SELECT DISTINCT name FROM concept") == [("",)], "names are in the generation"
    node = record.node(NodeType.CONCEPT, NISSAN)
    assert node is not None
    assert node.properties["name"] == "Nissan"
    without_nissan(workspace).close()
    mentions = record.edges(EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT)
    assert [edge.target[1] for edge in mentions] == [NISSAN]


def test_when_a_workspace_gets_its_first_generation_what_was_imported_before_goes(tmp_path: Path) -> None:
    with RelationshipRecord.of(tmp_path, create=True) as record:
        record.put_nodes([document("nissan"), concept("Nissan"), concept("Port")])
        record.link_all([explains("nissan", "Nissan", 0.3), explains("nissan", "Port")])
    published = publish_workspace(tmp_path, PASSAGES, FACTS)
    bring_in_step(published)
    with RelationshipRecord.of(published.root) as later:
        assert later.concepts.concepts_of("nissan")[0] == (NISSAN, 1.0)
        assert later.node(NodeType.CONCEPT, entity_id("Port")) is None


def test_beside_a_generation_no_concept_of_others_is_taken_over(record: RelationshipRecord) -> None:
    counts = record.counts()
    record.put_nodes([concept("Port"), concept("Nissan"), conversation("thread")])
    record.link_all([explains("nissan", "Port", 0.9), related("Nissan", "Yokohama", confidence=0.25)])
    say(record, "thread", "m", "Port", "Nissan")
    mentions = record.edges(EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT)
    assert [edge.target[1] for edge in mentions] == [NISSAN]
    assert {of: record.counts()[of] for of in ("Concept", *CONCEPT_EDGES)} == {
        of: counts[of] for of in ("Concept", *CONCEPT_EDGES)
    }


def test_copies_in_a_file_of_before_go_and_what_people_said_stays(
    workspace: Workspace, record: RelationshipRecord
) -> None:
    for view in VIEWS:
        record.execute(f"DROP VIEW {view.lower()}")
        record.execute(f"CREATE TABLE {view.lower()} (source INTEGER, target INTEGER, revision INTEGER)")
    record.execute("CREATE TABLE digests (name TEXT)")
    record.put_node(conversation("thread"))
    say(record, "thread", "m", "Nissan")
    record.set_note("documents", "1 of before")
    bring_in_step(workspace)
    assert [node.id for node in record.nodes(NodeType.VECTOR)] == ["datsun", "nissan"]
    assert len(list(record.edges(EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT))) == 1
