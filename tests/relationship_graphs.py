"""Nodes and edges of every declared type, for tests of the relationship graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from graph.relationships.schema import (
    EDGES,
    NODES,
    Edge,
    EdgeType,
    Node,
    NodeType,
    Property,
    PropertyKind,
    PropertyValue,
    time_text,
)
from graph.relationships.tables import VIEWS

PAIRS = [(of, source, target) for of, schema in EDGES.items() for source, target in schema.pairs]
"""(type, from, to) of every edge that the schema allows."""

STORED_NODES = [of for of in NodeType if of not in VIEWS]
STORED_PAIRS = [pair for pair in PAIRS if pair[0] not in VIEWS]
"""The types that are written; the others are views of them."""

NOON = time_text(datetime(2026, 11, 23, 12, tzinfo=UTC))


def sample_value(declared: Property) -> PropertyValue:
    """Return one value that a property takes."""
    if declared.choices:
        return declared.choices[0]
    if declared.kind is PropertyKind.TIME:
        return NOON
    if declared.kind is PropertyKind.TEXT:
        return "青石 'quoted\"; --"
    return declared.most if declared.most is not None else (declared.least or 0) + 3


def sample_values(declared: Mapping[str, Property]) -> dict[str, PropertyValue]:
    """Return a value for every property."""
    return {name: sample_value(each) for name, each in declared.items()}


def sample_node(of: NodeType, key: str = "a") -> Node:
    """Return a node of a type with all its properties."""
    return Node(of, key, sample_values(NODES[of]))


def sample_edge(of: EdgeType, source: NodeType, target: NodeType, start: str = "a", end: str = "b") -> Edge:
    """Return an edge with all its properties."""
    return Edge(of, (source, start), (target, end), sample_values(EDGES[of].properties))


def bad_values(declared: Property) -> Iterator[object]:
    """Yield values that a property refuses."""
    if declared.required:
        yield None
    yield b"bytes"
    yield ["a list"]
    if declared.kind in (PropertyKind.TEXT, PropertyKind.TIME):
        yield 7
        yield "half of a pair \ud800"
    else:
        yield from ("7", True, float("nan"), float("inf"), 10**400)
    if declared.kind is PropertyKind.INTEGER:
        yield 1.5
    if declared.kind is PropertyKind.TIME:
        yield from ("", "yesterday", "2026-11-23T12:00:00+00:00", "2026-11-23T12:00:00.000000+01:00")
    if declared.choices:
        yield "none of them"
    if declared.least is not None:
        yield declared.least - 1
    if declared.most is not None:
        yield declared.most + 1
