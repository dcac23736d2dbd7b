"""The benchmark of the relationship graph: its world is as large as it says, and the same each time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.relationships import EXPLAINED, RELATED, NamedConcepts, World, publish, spread
from graph.construction.edges import EDGE_TYPES
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


def test_it_is_the_same_each_time() -> None:
    first, second = (World(50) for _ in range(2))
    graphs = first.graph(), second.graph()
    assert list(graphs[0].entity_names) == list(graphs[1].entity_names)
    for column in EDGE_TYPES:
        assert np.array_equal(*(getattr(graph.edges, column) for graph in graphs))


def test_a_spread_is_told_of_some_times() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"p50": 2.0, "p95": 2.9, "least": 1.0, "most": 3.0}
