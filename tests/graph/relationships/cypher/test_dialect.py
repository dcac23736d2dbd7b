"""What servers say differently. Neither Memgraph nor Neo4j runs here: their words are compared with their manuals."""

from __future__ import annotations

import pytest

from graph.errors import BadInput
from graph.relationships.cypher.dialect import Dialect, Memgraph, Neo4j, VectorIndex, dialect_of


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Neo4j/5.26.0", "neo4j"),
        ("Neo4j/2026.01.1", "neo4j"),
        ("Neo4j/5.27-aura", "neo4j"),
        ("Neo4j/v5.11.0 compatible graph database server - Memgraph", "memgraph"),
        ("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)", "opencypher"),
        ("", "opencypher"),
    ],
)
def test_a_server_says_what_it_is(agent: str, name: str) -> None:
    assert dialect_of(agent).name == name
    assert dialect_of(agent, "memgraph").name == "memgraph", "the setting decides"


def test_a_dialect_that_nobody_speaks_is_refused() -> None:
    with pytest.raises(BadInput, match="MARA_GRAPH_DIALECT is 'sql'"):
        dialect_of("", "sql")


def test_memgraph_makes_its_vector_index_as_003_does() -> None:
    index = VectorIndex(dimension=384, capacity=1000, metric="cos", resize_coefficient=2)
    assert Memgraph().vector_index(index) == (
        "CREATE VECTOR INDEX vector_embedding_index ON :`Vector`(embedding) WITH CONFIG"
        ' {"dimension": 384, "capacity": 1000, "metric": "cos", "resize_coefficient": 2}'
    )
    assert Memgraph().constraint("User") == "CREATE CONSTRAINT ON (n:`User`) ASSERT n.id IS UNIQUE"


def test_neo4j_makes_its_own() -> None:
    assert Neo4j().vector_index(VectorIndex(dimension=3)) == (
        "CREATE VECTOR INDEX `vector_embedding_index` IF NOT EXISTS FOR (v:`Vector`) ON (v.`embedding`)"
        " OPTIONS {indexConfig: {`vector.dimensions`: 3, `vector.similarity_function`: 'cosine'}}"
    )
    with pytest.raises(BadInput, match="inner product"):
        Neo4j().vector_index(VectorIndex(dimension=3, metric="ip"))


def test_others_have_none_and_compare_each_vector() -> None:
    assert Dialect().vector_index(VectorIndex(dimension=3)) is None
    assert "reduce(" in Dialect().vector_search()


@pytest.mark.parametrize("name", ["a b", "x`", "", "1x", "x; DROP", "é"])
def test_the_name_of_an_index_is_a_plain_word(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be the name"):
        VectorIndex(dimension=3, name=name)
    with pytest.raises(BadInput, match="cannot be the name"):
        VectorIndex(dimension=3, property_name=name)


@pytest.mark.parametrize("odd", [{"dimension": 0}, {"capacity": 0}, {"resize_coefficient": 1}, {"metric": "x"}])
def test_settings_that_no_index_has_are_refused(odd: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        VectorIndex(**{"dimension": 3, **odd})  # type: ignore[arg-type]
