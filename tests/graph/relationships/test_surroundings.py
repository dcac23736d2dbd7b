"""The surroundings of a document: what is next to it, in which order, how much of it, and nothing of people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from graph.relationships.surroundings import Surroundings, surroundings_of
from graph.schema import entity_id
from tests.graph.relationships.small_graph import NOON, Properties, cite, concept, document, explains, say, small_record

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RelationshipRecord]:
    with small_record(tmp_path) as opened:
        yield opened


def add_chunks(record: RelationshipRecord, document_id: str, count: int) -> None:
    for number in reversed(range(count)):
        properties: Properties = {"chunk_index": number, "path": document_id, "fingerprint": "f", "created_at": NOON}
        record.put_node(Node(NodeType.CHUNK, f"{document_id}#{number}", properties))
        record.link(
            Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, f"{document_id}#{number}"), (NodeType.DOCUMENT, document_id))
        )


def add_source(record: RelationshipRecord, document_id: str) -> None:
    record.put_node(Node(NodeType.SOURCE, "s", {"name": "cars.md", "type": "file", "uri": "cars.md"}))
    record.link(Edge(EdgeType.SOURCED_FROM, (NodeType.DOCUMENT, document_id), (NodeType.SOURCE, "s")))


def names(around: Surroundings) -> list[object]:
    return [node.properties["name"] for node in around.concepts]


def related(around: Surroundings) -> list[str]:
    return [node.id for node in around.related]


def cite_chunk(record: RelationshipRecord, message: str, chunk: str) -> None:
    record.link(Edge(EdgeType.REFERENCES, (NodeType.MESSAGE, message), (NodeType.CHUNK, chunk), {"number": 1}))


class TestWhatIsNextToIt:
    def test_documents_that_share_rare_concepts_come_first(self, record: RelationshipRecord) -> None:
        around = surroundings_of(record, "d-nissan")
        assert names(around) == ["Nissan", "Yokohama"]
        assert related(around) == ["d-alliance", "d-yokohama"], "equal: by id"
        record.put_node(document("d-more"))
        record.link(explains("d-more", "Nissan"))
        around = surroundings_of(record, "d-nissan")
        assert related(around) == ["d-yokohama", "d-alliance", "d-more"], "1/2, then 1/3 each"
        assert around.commonness == {entity_id("Nissan"): 3, entity_id("Yokohama"): 2}
        record.link(explains("d-alliance", "Yokohama", 0.1))
        around = surroundings_of(record, "d-nissan")
        assert related(around) == ["d-alliance", "d-more", "d-yokohama"], "1/3 + 1/3, then 1/3 each"
        assert list(around.explains("d-alliance")) == [entity_id("Nissan"), entity_id("Yokohama")]

    def test_a_date_is_explained_and_relates_nothing(self, record: RelationshipRecord) -> None:
        record.put_node(concept("1933"))
        record.link_all(explains(key, "1933", 0.9) for key in ("d-nissan", "d-silk", "d-alliance"))
        around = surroundings_of(record, "d-nissan")
        assert names(around) == ["Nissan", "1933", "Yokohama"]
        assert related(around) == ["d-alliance", "d-yokohama"]
        assert list(around.explains("d-alliance")) == [entity_id("Nissan")]

    def test_sources_passages_in_order_and_the_edges_between_all(self, record: RelationshipRecord) -> None:
        add_chunks(record, "d-nissan", 3)
        add_source(record, "d-nissan")
        around = surroundings_of(record, "d-nissan", chunks=2)
        assert ([chunk.id for chunk in around.chunks], around.of_chunks) == (["d-nissan#0", "d-nissan#1"], 3)
        assert [source.id for source in around.sources] == ["s"]
        nodes = {(node.type, node.id) for node in around.parts if isinstance(node, Node)}
        assert len(around.edges) == 7
        for edge in around.edges:
            assert {edge.source, edge.target} <= nodes
            assert record.edge(edge.type, edge.source, edge.target) == edge
        alone = surroundings_of(record, "d-plain")
        assert list(alone.parts) == [alone.document], "it explains nothing"


class TestHowMuch:
    def test_each_number_is_bounded(self, record: RelationshipRecord) -> None:
        many = [f"Concept {number:02}" for number in range(30)]
        record.put_nodes([*map(concept, many), *(document(f"x{number:02}") for number in range(30))])
        for number, name in enumerate(many):
            record.link_all([explains("d-plain", name, 1 - number / 100), explains(f"x{number:02}", name)])
        add_chunks(record, "d-plain", 20)
        around = surroundings_of(record, "d-plain", chunks=4, concepts=5, related=3)
        assert (len(around.chunks), len(around.concepts), related(around)) == (4, 5, ["x00", "x01", "x02"])
        assert (around.of_chunks, around.of_concepts) == (20, 30)

    def test_the_rarest_shared_concept_is_shown_however_little_relevant(self, record: RelationshipRecord) -> None:
        around = surroundings_of(record, "d-nissan", concepts=1)
        assert names(around) == ["Nissan", "Yokohama"], "the second is all that d-yokohama shares"
        assert names(surroundings_of(record, "d-nissan", concepts=1, related=1)) == ["Nissan"]
        assert names(surroundings_of(record, "d-nissan", concepts=0, related=0)) == []


class TestPeople:
    def test_messages_that_cite_it_or_a_passage_of_it_are_counted_once(self, record: RelationshipRecord) -> None:
        add_chunks(record, "d-nissan", 2)
        cite(record, "m2", "d-nissan")
        cite_chunk(record, "m2", "d-nissan#1")
        around = surroundings_of(record, "d-nissan#1")
        assert (around.document.id, around.messages) == ("d-nissan", 1), "a passage names its document"
        kinds = {each.type for each in around.parts if isinstance(each, Node)}
        assert kinds == {NodeType.DOCUMENT, NodeType.CONCEPT, NodeType.CHUNK}, "no message is part of it"
        say(record, "thread", "m4", at=3)
        cite_chunk(record, "m4", "d-nissan#0")
        assert surroundings_of(record, "d-nissan").messages == 2
        assert surroundings_of(record, "d-renault").messages == 0, "a view is no message"


def test_a_path_names_one_document_or_none(record: RelationshipRecord) -> None:
    assert surroundings_of(record, "d-port.md").document.id == "d-port"
    record.put_node(Node(NodeType.DOCUMENT, "d-port-2", document("d-port").properties))
    with pytest.raises(BadInput, match="Several documents") as refused:
        surroundings_of(record, "d-port.md")
    assert "'d-port'" in refused.value.hint
    for name in ("", "mia", "m1", "%"):
        with pytest.raises(BadInput, match="knows no document"):
            surroundings_of(record, name)
