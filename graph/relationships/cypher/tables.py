"""The relationship graph as rows: what a copy in another store holds of each type of node and edge."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from graph.relationships.record import RelationshipRecord, table_of_edges, table_of_nodes
from graph.relationships.schema import EDGES, NODES, EdgeType, NodeType

Row = tuple[Any, ...]

CONTAINS = "CONTAINS"
"""PART_OF from the other end, from a conversation to a message: copies hold both, so that either may be asked for."""


def links() -> Iterator[tuple[EdgeType, NodeType, NodeType]]:
    """Yield each type of edge with each pair of types of nodes that it links."""
    for of, schema in EDGES.items():
        for source, target in schema.pairs:
            yield of, source, target


def node_rows(record: RelationshipRecord, of: NodeType, since: int = -1) -> Iterator[Row]:
    """Yield the nodes of a type that a later revision than ``since`` wrote: id and properties, as `NODES` has them."""
    columns = ", ".join(f'"{name}"' for name in ("id", *NODES[of]))
    yield from record.execute(f'SELECT {columns} FROM "{table_of_nodes(of)}" WHERE revision > ?', (since,))


def edge_rows(
    record: RelationshipRecord, of: EdgeType, source: NodeType, target: NodeType, since: int = -1
) -> Iterator[Row]:
    """Yield edges as `node_rows` does nodes: the ids of their ends, and properties as `EDGES` has them."""
    columns = ", ".join(["a.id", "b.id", *(f'e."{name}"' for name in EDGES[of].properties)])
    yield from record.execute(
        f'SELECT {columns} FROM "{table_of_edges(of, source, target)}" e'
        f' JOIN "{table_of_nodes(source)}" a ON a.key = e.source'
        f' JOIN "{table_of_nodes(target)}" b ON b.key = e.target WHERE e.revision > ?',
        (since,),
    )


def pages(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Yield rows ``size`` at a time."""
    while page := list(islice(rows, size)):
        yield page
