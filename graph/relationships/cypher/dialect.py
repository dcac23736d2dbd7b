"""What servers of Cypher say differently: constraints, vector indexes and the search in them.

Everything else that is sent here is the same for all. Memgraph's words follow its manual and 003; no test runs them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graph.errors import BadInput
from graph.relationships.cypher.queries import nearest_chunks

DIALECT_VARIABLE = "MARA_GRAPH_DIALECT"
"""Names the dialect of the graph server, where what the server says of itself does not."""

VECTOR_INDEX = "vector_embedding_index"
"""The name of the index of the passages' vectors (003)."""

_NEO4J = re.compile(r"Neo4j/[0-9][\w.+-]*")
_EXACT = "reduce(sum = 0.0, place IN range(0, size($vector) - 1) | sum + v.embedding[place] * $vector[place])"
_BY_INDEX = """\
MATCH (v)-[:EMBEDDING_OF]->(c:DocumentChunk)
RETURN c.id AS id, c.content AS content, distance, similarity
ORDER BY similarity DESC, id
"""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The settings of a vector index of cosines.

    Attributes:
        dimension: of the vectors, 1 or more.
        capacity: vectors that it is made for; Memgraph alone asks for it.
    """

    dimension: int
    capacity: int = 10_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of a kind of server.

    Attributes:
        search: the query for the chunks nearest to ``$vector``, ``$k`` of them, by the index ``$index`` if there is
            one. Without an index each vector is compared; all are unit vectors.
        constraint_of: the statement that lets an id stand for one node of a ``{label}``, and finds it by that.
        index_of: the statement that makes a vector index of a ``{dimension}`` and a ``{capacity}``; empty for none.
    """

    name: str
    search: str
    constraint_of: str = "CREATE CONSTRAINT `mara_{label}` IF NOT EXISTS FOR (n:`{label}`) REQUIRE n.id IS UNIQUE"
    index_of: str = ""

    def constraint(self, label: str) -> str:
        """Return the statement that makes the ids of a label unique; it changes nothing where they are so already."""
        return self.constraint_of.format(label=label)

    def vector_index(self, index: VectorIndex) -> str:
        """Return the statement that makes a vector index; empty where the server has none."""
        return self.index_of.format(dimension=index.dimension, capacity=index.capacity)


_DIALECTS = {
    each.name: each
    for each in (
        Dialect("opencypher", nearest_chunks(_EXACT)),
        Dialect(
            "neo4j",
            # Neo4j's score of a cosine is (1 + cosine) / 2.
            "CALL db.index.vector.queryNodes($index, $k, $vector) YIELD node AS v, score\n"
            f"WITH v, 2 * score - 1 AS similarity, 2 - 2 * score AS distance\n{_BY_INDEX}",
            index_of=f"CREATE VECTOR INDEX `{VECTOR_INDEX}` IF NOT EXISTS FOR (v:`Vector`) ON (v.`embedding`)"
            " OPTIONS {{indexConfig: {{`vector.dimensions`: {dimension}, `vector.similarity_function`: 'cosine'}}}}",
        ),
        Dialect(
            "memgraph",
            "CALL vector_search.search($index, $k, $vector) YIELD node AS v, distance, similarity\n"
            f"WITH v, distance, similarity\n{_BY_INDEX}",
            constraint_of="CREATE CONSTRAINT ON (n:`{label}`) ASSERT n.id IS UNIQUE",
            index_of=f"CREATE VECTOR INDEX {VECTOR_INDEX} ON :`Vector`(embedding) WITH CONFIG"
            ' {{"dimension": {dimension}, "capacity": {capacity}, "metric": "cos", "resize_coefficient": 2}}',
        ),
    )
}
"""The dialects by name: any server that follows Neo4j 5 in its constraints and has no vector index, and two others."""


def dialect_of(agent: str, setting: str = "") -> Dialect:
    """Return the dialect of a server.

    Args:
        agent: what the server says it is, such as ``Neo4j/5.26.0``; others say that they are compatible with that.
        setting: the dialect's name, which then decides.

    Raises:
        BadInput: there is no dialect of that name.
    """
    if setting:
        if setting not in _DIALECTS:
            raise BadInput(f"{DIALECT_VARIABLE} is {setting[:40]!r}", f"Set it to {', '.join(_DIALECTS)}, or unset it")
        return _DIALECTS[setting]
    if "memgraph" in agent.lower():
        return _DIALECTS["memgraph"]
    return _DIALECTS["neo4j" if _NEO4J.fullmatch(agent.strip()) else "opencypher"]
