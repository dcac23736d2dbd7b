"""The benchmark of the relationship graph: its world is as large as it says, and the same each time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.relationships import EXPLAINED, RELATED, NamedConcepts, World, publish
from graph.relationships.explanations import RELATED_PER_CONCEPT
from graph.relationships.history import record_turn
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EdgeType, NodeType

DOCUMENTS = 300


def test_its_graph_has_ten_edges_a_document_and_no_concept_of_too_many(tmp_path: Path) -> None:
    world = World(DOCUMENTS)
    publish(world.graph(), tmp_path)
    with RelationshipRecord.of(tmp_path, create=True) as record:
        record.put_nodes(world.nodes())
        record.link_all(world.edges())
        counts = record.counts()
        related = list(record.edges(EdgeType.RELATED_TO, NodeType.CONCEPT, NodeType.CONCEPT))
        for turn in world.turns(20):
            record_turn(record, turn, NamedConcepts())
        assert record.counts()[NodeType.MESSAGE] == 40
        assert record.counts()[NodeType.CONVERSATION] == 2
        assert record.counts()[EdgeType.MENTIONS] > 40
    assert counts[NodeType.DOCUMENT] == DOCUMENTS
    assert counts[EdgeType.EXPLAINS] == EXPLAINED * DOCUMENTS
    assert counts[EdgeType.RELATED_TO] == RELATED * DOCUMENTS
    degrees = Counter(end for edge in related for end in (edge.source, edge.target))
    assert max(degrees.values()) <= RELATED_PER_CONCEPT
