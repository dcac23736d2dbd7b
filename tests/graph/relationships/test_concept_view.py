"""Concepts and the edges at them follow from the published generation; what a user wrote is laid over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graph.errors import MissingEndpoint
from graph.relationships.documents import relate
from graph.relationships.exchange import import_lines, parts_of, to_json_line
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, Edge, EdgeType, Node, NodeType
from graph.relationships.tables import VIEWS
from graph.relationships.upkeep import n_pruned, prune, restore
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
            assert all(record.edge(edge_type, edge.source, edge.target) == edge for edge in edges)

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
    assert record.edge(EdgeType.MENTIONS, (NodeType.MESSAGE, "m"), (NodeType.CONCEPT, NISSAN)) is not None
    assert rows_of(record, "concept") == 2
    assert record.execute("SELECT DISTINCT name FROM concept").fetchall() == [("",)], "names are in the generation"
    node = record.node(NodeType.CONCEPT, NISSAN)
    assert node is not None
    assert node.properties["name"] == "Nissan"
    without_nissan(workspace).close()
    mentions = record.edges(EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT)
    assert [edge.target[1] for edge in mentions] == [NISSAN]


def confident(edge: Edge, confidence: float) -> Edge:
    return replace(edge, properties={**edge.properties, "confidence": confidence})


class TestWhatAUserWrote:
    """It is laid over what is computed, and outlasts the generation."""

    PORT = entity_id("Port")

    @pytest.fixture
    def surer(self, record: RelationshipRecord) -> Edge:
        """A computed edge with another confidence, written."""
        (first, *_) = record.edges(EdgeType.EXPLAINS, NodeType.DOCUMENT, NodeType.CONCEPT)
        record.link(confident(first, 0.123))
        return confident(first, 0.123)

    def test_it_takes_the_place_of_what_is_computed_until_it_is_unlinked(
        self, record: RelationshipRecord, surer: Edge
    ) -> None:
        assert record.edge(surer.type, surer.source, surer.target) == surer
        edges = list(record.edges(EdgeType.EXPLAINS, NodeType.DOCUMENT, NodeType.CONCEPT))
        assert surer in edges
        assert len(edges) == record.counts()[EdgeType.EXPLAINS] == 4
        lines = [to_json_line(part) for part in parts_of(record)]
        assert record.unlink(surer)
        computed = record.edge(surer.type, surer.source, surer.target)
        assert computed is not None
        assert computed == record.concepts.computed_edge(surer) != surer
        assert not record.unlink(surer)
        import_lines(record, lines)
        assert [to_json_line(part) for part in parts_of(record)] == lines
        assert rows_of(record, "explains") == 1
        record.link(computed)
        assert rows_of(record, "explains") == 0, "the computed needs no row"

    def test_edges_to_a_new_concept_are_added_and_go_with_their_ends(
        self, workspace: Workspace, record: RelationshipRecord, surer: Edge
    ) -> None:
        record.put_nodes([concept("Port"), concept("Tea"), concept("Yokohama")])
        edges = [explains("nissan", "Port", 0.9), related("Port", "Nissan", "SPATIAL")]
        record.link_all([*edges, related("Nissan", "Yokohama", confidence=0.25)])
        counts = record.counts()
        assert (counts[NodeType.CONCEPT], counts[EdgeType.EXPLAINS], counts[EdgeType.RELATED_TO]) == (5, 5, 3)
        assert record.concepts.concepts_of("nissan")[1] == (self.PORT, 0.9)
        assert list(record.concepts.documents_of(self.PORT)) == ["nissan"]
        assert [near.name for near in record.concepts.neighbours(self.PORT)] == ["Nissan"]
        new = Passage("renault", "Renault", "Renault is French.", "cars.jsonl")
        with publish_again(workspace, [new], []) as later:
            for edge in (surer, *edges):
                stored = later.edge(edge.type, edge.source, edge.target)
                assert stored is not None
                assert stored.properties == edge.properties
            assert later.concepts.label(self.PORT) == "Port"
        with without_nissan(workspace) as later:
            assert later.concepts.concepts_of("nissan") == []
            assert list(later.concepts.documents_of(self.PORT)) == []
            assert later.node(NodeType.CONCEPT, YOKOHAMA) is None, "its name is in the generation"
            later.link(explains("datsun", "Tea", 0.5))
            assert list(later.concepts.documents_of(entity_id("Tea"))) == ["datsun"]

    def test_it_is_never_pruned_and_what_is_pruned_needs_no_step(self, record: RelationshipRecord, surer: Edge) -> None:
        edges = record.counts()[EdgeType.EXPLAINS]
        (done, _) = prune(record, 0.9)
        assert record.edge(surer.type, surer.source, surer.target) == surer
        assert n_pruned(record) >= done.pruned == edges - record.counts()[EdgeType.EXPLAINS] > 0
        assert restore(record) > 0
        assert record.counts()[EdgeType.EXPLAINS] == edges

    def test_what_is_rolled_back_is_not_seen(self, record: RelationshipRecord, surer: Edge) -> None:
        def link_and_fail() -> None:
            record.link(confident(surer, 0.9))
            assert record.edge(surer.type, surer.source, surer.target) == confident(surer, 0.9)
            record.link(explains("nissan", "Port"))

        with pytest.raises(MissingEndpoint, match="no Concept"), record.transaction():
            link_and_fail()
        assert record.edge(surer.type, surer.source, surer.target) == surer

    def test_when_a_workspace_gets_its_first_generation_what_was_imported_before_goes(self, tmp_path: Path) -> None:
        (tmp_path / "new").mkdir()
        with RelationshipRecord.of(tmp_path / "new", create=True) as record:
            record.put_nodes([document("nissan"), concept("Nissan"), concept("Port")])
            record.link_all([explains("nissan", "Nissan", 0.3), explains("nissan", "Port")])
        published = publish_workspace(tmp_path / "new", PASSAGES, FACTS)
        bring_in_step(published)
        with RelationshipRecord.of(published.root) as later:
            assert later.concepts.concepts_of("nissan")[0] == (NISSAN, 1.0)
            assert later.node(NodeType.CONCEPT, self.PORT) is None


class TestAWorkspaceOfBefore:
    """Of a file that held what is computed, what people said stays, and the rest goes with the next step."""

    @pytest.fixture
    def record(self, workspace: Workspace, record: RelationshipRecord) -> RelationshipRecord:
        for name in ("Nissan", "Yokohama", "Gone"):
            record.put_node(Node(NodeType.CONCEPT, entity_id(name), {"name": name, "description": "of before"}))
        record.link_all([explains("nissan", "Gone"), related("Nissan", "Gone")])
        for view in VIEWS:
            record.execute(f"DROP VIEW {view.lower()}")
            record.execute(f"CREATE TABLE {view.lower()} (source INTEGER, target INTEGER, revision INTEGER)")
        record.execute("CREATE TABLE digests (name TEXT)")
        record.put_node(conversation("thread"))
        say(record, "thread", "m", "Nissan")
        record.set_note("documents", "1 of before")
        return record

    def test_its_copies_go_and_its_mentions_stay(self, workspace: Workspace, record: RelationshipRecord) -> None:
        bring_in_step(workspace)
        assert not any(rows_of(record, table) for table in COMPUTED_TABLES)
        assert [node.id for node in record.nodes(NodeType.VECTOR)] == ["datsun", "nissan"]
        assert record.execute("SELECT id, name, description FROM concept").fetchall() == [(NISSAN, "", None)]
        assert len(list(record.edges(EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT))) == 1
