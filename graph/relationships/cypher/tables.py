"""The relationship graph as rows: what a copy in another store holds of each type of node and edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from graph.errors import WorkspaceMissing
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, EdgeType, NodeType
from graph.relationships.tables import columns_of_edges, columns_of_nodes, joined_tables, table_of_nodes
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.storage.workspace import Workspace

Row = tuple[Any, ...]
T = TypeVar("T")

_PASSAGES = 1_000

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
    """Yield the nodes of a type that a later revision than ``since`` wrote: id and properties, as `NODES` has them."""
    query = f'SELECT {columns_of_nodes(of)} FROM "{table_of_nodes(of)}" WHERE revision > ?'
    yield from record.execute(query, (since,))


def edge_rows(record: RelationshipRecord, link: Link, since: int = -1) -> Iterator[Row]:
    """Yield edges as `node_rows` does nodes: the ids of their ends, and properties as `EDGES` has them."""
    ends = "b.id, a.id" if link.backwards else "a.id, b.id"
    query = f"SELECT {ends}{columns_of_edges(link.type)} FROM {joined_tables(*link.kept)} WHERE e.revision > ?"
    yield from record.execute(query, (since,))


def copied_rows(
    record: RelationshipRecord, of: NodeType, passages: Record | None, since: int = -1, *, with_vectors: bool
) -> Iterator[Row]:
    """Yield nodes as `node_rows` does, with all that a copy holds of them, see `copied_columns`."""
    rows = node_rows(record, of, since)
    if of is NodeType.CHUNK:
        return _with_passages(rows, 0, passages, lambda entry: entry.passage.text)
    if of is NodeType.VECTOR and with_vectors:
        return _with_passages(rows, 1, passages, lambda entry: entry.vector.tolist())
    return rows


def copied_columns(of: NodeType, *, with_vectors: bool) -> list[str]:
    """Return the names of the values of `copied_rows`: those of `node_rows`, a chunk's text, and a vector's numbers."""
    more = {NodeType.CHUNK: ["content"], NodeType.VECTOR: ["embedding"] if with_vectors else []}
    return ["id", *NODES[of], *more.get(of, ())]


def pages(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    """Yield rows ``size`` at a time."""
    while page := list(islice(rows, size)):
        yield page


@contextmanager
def passages_of(root: Path) -> Iterator[Record | None]:
    """Open the record of passages; None where the workspace has none."""
    try:
        record = Workspace(root).open_record()
    except WorkspaceMissing:
        yield None
        return
    with record:
        yield record


def _with_passages(
    rows: Iterator[Row], place: int, passages: Record | None, value: Callable[[Entry], Any]
) -> Iterator[Row]:
    """Append to each row a value of the passage that it names at that place; null where there is no such passage."""
    for page in pages(rows, _PASSAGES):
        entries = passages.entries([row[place] for row in page]) if passages else ()
        found = {entry.passage.id: value(entry) for entry in entries}
        yield from ((*row, found.get(row[place])) for row in page)
