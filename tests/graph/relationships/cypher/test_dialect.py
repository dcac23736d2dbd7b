"""What servers say differently. Neither Memgraph nor Neo4j runs here: their words are compared with their manuals."""

from __future__ import annotations

import pytest

from graph.errors import BadInput
from graph.relationships.cypher.bolt import VectorIndex, dialect_of


def test_a_server_says_what_it_is() -> None:
    for agent, name in [
        ("Neo4j/5.26.0", "neo4j"),
        ("Neo4j/2026.01.1", "neo4j"),
        ("Neo4j/5.27-aura", "neo4j"),
        ("Neo4j/v5.11.0 compatible graph database server - Memgraph", "memgraph"),
        ("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)", "opencypher"),
        ("", "opencypher"),
    ]:
        assert dialect_of(agent).name == name
        assert dialect_of(agent, "memgraph").name == "memgraph", "the setting decides"


def test_each_makes_its_own_vector_index_or_compares_each_vector() -> None:
    memgraph = dialect_of("", "memgraph")
    assert memgraph.vector_index(VectorIndex(dimension=384, capacity=1000)) == (
        "CREATE VECTOR INDEX vector_embedding_index ON :`Vector`(embedding) WITH CONFIG"
        ' {"dimension": 384, "capacity": 1000, "metric": "cos", "resize_coefficient": 2}'
    )
    assert memgraph.constraint("User") == "CREATE CONSTRAINT ON (n:`User`) ASSERT n.id IS UNIQUE"
    assert dialect_of("", "neo4j").vector_index(VectorIndex(dimension=3)) == (
        "CREATE VECTOR INDEX `vector_embedding_index` IF NOT EXISTS FOR (v:`Vector`) ON (v.`embedding`)"
        " OPTIONS {indexConfig: {`vector.dimensions`: 3, `vector.similarity_function`: 'cosine'}}"
    )
    assert dialect_of("").vector_index(VectorIndex(dimension=3)) == ""
    assert "reduce(" in dialect_of("").search
    with pytest.raises(BadInput, match="The dialect of MARA_GRAPH_URL is 'sql'"):
        dialect_of("", "sql")
