"""What servers of Cypher say differently: constraints, vector indexes and the search in them.

Everything else that is sent here is the same for all. Memgraph's words follow its manual and 003; no test runs them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from graph.errors import BadInput
from graph.relationships.cypher.queries import nearest_chunks

DIALECT_VARIABLE = "MARA_GRAPH_DIALECT"
"""Names the dialect of the graph server, where what the server says of itself does not."""

VECTOR_INDEX = "vector_embedding_index"
"""The name of the index of the passages' vectors (003)."""

Metric = Literal["cos", "l2sq", "ip"]

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,62}")
_NEO4J = re.compile(r"Neo4j/[0-9][\w.+-]*")
_NEO4J_METRICS: dict[Metric, str] = {"cos": "cosine", "l2sq": "euclidean"}
_EXACT = "reduce(sum = 0.0, place IN range(0, size($vector) - 1) | sum + v.embedding[place] * $vector[place])"
_BY_INDEX = """\
MATCH (v)-[:EMBEDDING_OF]->(c:DocumentChunk)
RETURN c.id AS id, c.content AS content, distance, similarity
ORDER BY similarity DESC, id
"""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The settings of a vector index, as 003 names them.

    Attributes:
        dimension: of the vectors, 1 or more.
        capacity: vectors that it is made for; Memgraph alone asks for it.
        metric: how vectors are compared: by their cosine, squared distance or inner product.
        resize_coefficient: by how much a full index grows, 2 or more; Memgraph alone asks for it.
    """

    dimension: int
    capacity: int = 10_000
    metric: Metric = "cos"
    resize_coefficient: int = 2
    name: str = VECTOR_INDEX
    property_name: str = "embedding"

    def __post_init__(self) -> None:
        """Raise BadInput for settings that no index has."""
        for name in (self.name, self.property_name):
            if not _NAME.fullmatch(name):
                raise BadInput(f"{name[:60]!r} cannot be the name of an index or a property", "Use letters, digits, _")
        if min(self.dimension, self.capacity) < 1 or self.resize_coefficient < 2:
            raise BadInput("A vector index needs a dimension, a capacity and a resize coefficient of 2 or more")
        if self.metric not in ("cos", "l2sq", "ip"):
            raise BadInput(f"There is no metric {str(self.metric)[:20]!r}", "Choose cos, l2sq or ip")


class Dialect:
    """What any server of Cypher understands that follows Neo4j 5 in its constraints and has no vector index."""

    name = "opencypher"

    def constraint(self, label: str) -> str:
        """Return the statement that lets an id stand for one node of a label, and finds it by that."""
        return f"CREATE CONSTRAINT `mara_{label}` IF NOT EXISTS FOR (n:`{label}`) REQUIRE n.id IS UNIQUE"

    def vector_index(self, index: VectorIndex) -> str | None:
        """Return the statement that makes a vector index; None where the server has none."""
        return None

    def vector_search(self) -> str:
        """Return the query for the chunks nearest to ``$vector``, ``$k`` of them, by the index ``$index`` if there is.

        Without an index each vector is compared; all are unit vectors.
        """
        return nearest_chunks(_EXACT)


class Neo4j(Dialect):
    """Neo4j 5 and later."""

    name = "neo4j"

    def vector_index(self, index: VectorIndex) -> str | None:
        """Return Neo4j's statement. Raises BadInput for the inner product, which it does not have."""
        if index.metric not in _NEO4J_METRICS:
            raise BadInput("Neo4j has no vector index of the inner product", "Choose cos or l2sq")
        return (
            f"CREATE VECTOR INDEX `{index.name}` IF NOT EXISTS FOR (v:`Vector`) ON (v.`{index.property_name}`)"
            f" OPTIONS {{indexConfig: {{`vector.dimensions`: {index.dimension},"
            f" `vector.similarity_function`: '{_NEO4J_METRICS[index.metric]}'}}}}"
        )

    def vector_search(self) -> str:
        """Return the search by Neo4j's index, whose score of a cosine is (1 + cosine) / 2."""
        return (
            "CALL db.index.vector.queryNodes($index, $k, $vector) YIELD node AS v, score\n"
            f"WITH v, 2 * score - 1 AS similarity, 2 - 2 * score AS distance\n{_BY_INDEX}"
        )


class Memgraph(Dialect):
    """Memgraph 3."""

    name = "memgraph"

    def constraint(self, label: str) -> str:
        """Return Memgraph's statement; it changes nothing where the constraint is there."""
        return f"CREATE CONSTRAINT ON (n:`{label}`) ASSERT n.id IS UNIQUE"

    def vector_index(self, index: VectorIndex) -> str | None:
        """Return Memgraph's statement (003)."""
        return (
            f"CREATE VECTOR INDEX {index.name} ON :`Vector`({index.property_name}) WITH CONFIG"
            f' {{"dimension": {index.dimension}, "capacity": {index.capacity}, "metric": "{index.metric}",'
            f' "resize_coefficient": {index.resize_coefficient}}}'
        )

    def vector_search(self) -> str:
        """Return the search by Memgraph's index."""
        return (
            "CALL vector_search.search($index, $k, $vector) YIELD node AS v, distance, similarity\n"
            f"WITH v, distance, similarity\n{_BY_INDEX}"
        )


_DIALECTS: dict[str, Dialect] = {each.name: each for each in (Dialect(), Neo4j(), Memgraph())}


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
