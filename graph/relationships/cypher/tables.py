"""The relationship graph as rows: what a copy in another store holds of each type of node and edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, EdgeType, NodeType

Row = tuple[Any, ...]
T = TypeVar("T")

STAMP_LABEL = "MaraCopy"
"""The label of the one node of a copy that says what it is a copy of."""

CONTAINS = "CONTAINS"
"""PART_OF from the other end, from a conversation to a message: copies hold both, so that either may be asked for."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a copy holds of a type of edge between two types of nodes.

    Attributes:
        name: of the edges in the copy.
        type: of the edges in the record.
        source: what they leave, in the copy.
        target: what they reach, in the copy.
        backwards: whether the record holds them from the target to the source.
    """

    name: str
    type: EdgeType
    source: NodeType
    target: NodeType
    backwards: bool = False

    @property
    def properties(self) -> Sequence[str]:
        """The names of the edges' properties."""
        return tuple(EDGES[self.type].properties)

    @property
    def kept(self) -> tuple[EdgeType, NodeType, NodeType]:
        """The type and the ends of the edges in the record."""
        return (self.type, self.target, self.source) if self.backwards else (self.type, self.source, self.target)


def links() -> Iterator[Link]:
    """Yield each type of edge with each pair of types of nodes that it links."""
    for of, schema in EDGES.items():
        for source, target in schema.pairs:
            yield Link(of, of, source, target)
            if of is EdgeType.PART_OF:
                yield Link(CONTAINS, of, target, source, backwards=True)


def node_rows(record: RelationshipRecord, of: NodeType, since: int = -1) -> Iterator[Row]:
    """Yield the nodes of a type, of a stored one those that a later revision than ``since`` wrote, as `NODES` has them.

    A row is the id and the properties.
    """
    changed = () if record.computes(of) else ("WHERE revision > ?", (since,))
    for node in record.nodes(of, *changed):
        yield node.id, *(node.properties.get(name) for name in NODES[of])


def edge_rows(record: RelationshipRecord, link: Link, since: int = -1) -> Iterator[Row]:
    """Yield edges as `node_rows` does nodes: the ids of their ends, and properties as `EDGES` has them."""
    changed = () if record.computes(link.type) else ("WHERE e.revision > ?", (since,))
    for edge in record.edges(*link.kept, *changed):
        ends = (edge.target[1], edge.source[1]) if link.backwards else (edge.source[1], edge.target[1])
        yield *ends, *(edge.properties.get(name) for name in link.properties)


def copied_rows(record: RelationshipRecord, of: NodeType, since: int = -1, *, with_vectors: bool) -> Iterator[Row]:
    """Yield nodes as `node_rows` does, with all that a copy holds of them, see `copied_columns`."""
    rows = node_rows(record, of, since)
    graph = record.graph
    places = graph.passage_index if graph else {}
    if of is NodeType.CHUNK:
        return ((*row, graph.passages[places[row[0]]].text if graph and row[0] in places else None) for row in rows)
    if of is NodeType.VECTOR and with_vectors:
        return (
            (*row, graph.passage_vectors[places[row[1]]].tolist() if graph and row[1] in places else None)
            for row in rows
        )
    return rows


def copied_columns(of: NodeType, *, with_vectors: bool) -> list[str]:
    """Return the names of the values of `copied_rows`: those of `node_rows`, a chunk's text, and a vector's numbers."""
    more = {NodeType.CHUNK: ["content"], NodeType.VECTOR: ["embedding"] if with_vectors else []}
    return ["id", *NODES[of], *more.get(of, ())]


def pages(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    """Yield rows ``size`` at a time."""
    while page := list(islice(rows, size)):
        yield page
