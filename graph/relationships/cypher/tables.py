"""The relationship graph as rows: what a copy in another store holds of each type of node and edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from graph.errors import WorkspaceMissing
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, EdgeType, NodeType
from graph.relationships.tables import table_of_edges, table_of_nodes
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.storage.workspace import Workspace

Row = tuple[Any, ...]

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


def links() -> Iterator[Link]:
    """Yield each type of edge with each pair of types of nodes that it links."""
    for of, schema in EDGES.items():
        for source, target in schema.pairs:
            yield Link(of, of, source, target)
            if of is EdgeType.PART_OF:
                yield Link(CONTAINS, of, target, source, backwards=True)


def node_rows(record: RelationshipRecord, of: NodeType, since: int = -1) -> Iterator[Row]:
    """Yield the nodes of a type that a later revision than ``since`` wrote: id and properties, as `NODES` has them."""
    columns = ", ".join(f'"{name}"' for name in ("id", *NODES[of]))
    yield from record.execute(f'SELECT {columns} FROM "{table_of_nodes(of)}" WHERE revision > ?', (since,))


def edge_rows(record: RelationshipRecord, link: Link, since: int = -1) -> Iterator[Row]:
    """Yield edges as `node_rows` does nodes: the ids of their ends, and properties as `EDGES` has them."""
    ends = ("b.id", "a.id") if link.backwards else ("a.id", "b.id")
    columns = ", ".join([*ends, *(f'e."{name}"' for name in link.properties)])
    source, target = (link.target, link.source) if link.backwards else (link.source, link.target)
    yield from record.execute(
        f'SELECT {columns} FROM "{table_of_edges(link.type, source, target)}" e'
        f' JOIN "{table_of_nodes(source)}" a ON a.key = e.source'
        f' JOIN "{table_of_nodes(target)}" b ON b.key = e.target WHERE e.revision > ?',
        (since,),
    )


def pages(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
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


@contextmanager
def snapshot(record: RelationshipRecord) -> Iterator[None]:
    """Read the record as it stands now, whatever is written meanwhile."""
    with record.as_it_stands():
        yield


def with_passages(
    rows: Iterator[Row], place: int, passages: Record | None, value: Callable[[Entry], Any]
) -> Iterator[Row]:
    """Append to each row a value of the passage that it names at that place; null where there is no such passage."""
    for page in pages(rows, _PASSAGES):
        entries = passages.entries([row[place] for row in page]) if passages else ()
        found = {entry.passage.id: value(entry) for entry in entries}
        yield from ((*row, found.get(row[place])) for row in page)
