"""The schema declares every node and edge, and refuses whatever else is given."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import NotInSchema
from graph.relationships.schema import (
    EDGES,
    NODES,
    Edge,
    EdgeType,
    Node,
    NodeType,
    check_edge,
    check_node,
    time_text,
)
from graph.schema import MAX_ID
from tests.relationship_graphs import PAIRS, bad_values, edges, nodes, sample_edge, sample_node

BAD_IDS = ["", "  ", "a\nb", "a\x00b", "x" * (MAX_ID + 1), "\ud800"]


def with_value(properties: Any, name: str, value: object) -> Any:
    return {**properties, name: value}


def test_every_type_is_declared() -> None:
    assert set(NODES) == set(NodeType)
    assert set(EDGES) == set(EdgeType)


@given(nodes())
def test_a_node_as_declared_is_taken(node: Node) -> None:
    check_node(node)


@given(edges())
def test_an_edge_as_declared_is_taken(edge: Edge) -> None:
    check_edge(edge)


@pytest.mark.parametrize("of", NodeType)
@pytest.mark.parametrize("key", BAD_IDS)
def test_a_node_needs_an_id_that_can_be_repeated(of: NodeType, key: str) -> None:
    with pytest.raises(NotInSchema, match="is no id of a"):
        check_node(sample_node(of, key))


@pytest.mark.parametrize(("of", "source", "target"), PAIRS)
@pytest.mark.parametrize("key", BAD_IDS)
def test_an_edge_needs_ids_of_nodes(of: EdgeType, source: NodeType, target: NodeType, key: str) -> None:
    for ends in ((key, "b"), ("a", key)):
        with pytest.raises(NotInSchema, match="is no id of a"):
            check_edge(sample_edge(of, source, target, *ends))


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [(of, name, bad) for of, declared in NODES.items() for name, each in declared.items() for bad in bad_values(each)],
)
def test_a_node_refuses_what_a_property_may_not_be(of: NodeType, name: str, value: object) -> None:
    node = sample_node(of)
    with pytest.raises(NotInSchema, match=rf"^{of}\.{name} "):
        check_node(replace(node, properties=with_value(node.properties, name, value)))


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        (of, name, bad)
        for of, schema in EDGES.items()
        for name, each in schema.properties.items()
        for bad in bad_values(each)
    ],
)
def test_an_edge_refuses_what_a_property_may_not_be(of: EdgeType, name: str, value: object) -> None:
    edge = sample_edge(of, *EDGES[of].pairs[0])
    with pytest.raises(NotInSchema, match=rf"^{of}\.{name} "):
        check_edge(replace(edge, properties=with_value(edge.properties, name, value)))


@pytest.mark.parametrize("of", NodeType)
def test_a_node_has_no_other_properties(of: NodeType) -> None:
    node = sample_node(of)
    with pytest.raises(NotInSchema, match="has no property 'colour'"):
        check_node(replace(node, properties=with_value(node.properties, "colour", "red")))


@pytest.mark.parametrize(("of", "source", "target"), PAIRS)
def test_an_edge_has_no_other_properties(of: EdgeType, source: NodeType, target: NodeType) -> None:
    edge = sample_edge(of, source, target)
    with pytest.raises(NotInSchema, match="has no property 'colour'"):
        check_edge(replace(edge, properties=with_value(edge.properties, "colour", "red")))


@pytest.mark.parametrize("of", EdgeType)
def test_an_edge_links_declared_pairs_alone(of: EdgeType) -> None:
    for source, target in product(NodeType, NodeType):
        if (source, target) in EDGES[of].pairs:
            continue
        with pytest.raises(NotInSchema, match=f"^{of} does not go from {source} to {target}") as refused:
            check_edge(sample_edge(of, source, target))
        assert all(f"{start} to {end}" in str(refused.value) for start, end in EDGES[of].pairs)


@pytest.mark.parametrize("of", [of for of, source, target in PAIRS if source is target])
def test_no_node_is_linked_with_itself(of: EdgeType) -> None:
    (pair,) = EDGES[of].pairs
    with pytest.raises(NotInSchema, match="with itself"):
        check_edge(sample_edge(of, *pair, start="a", end="a"))


@given(st.datetimes(timezones=st.timezones()), st.datetimes(timezones=st.timezones()))
def test_texts_of_times_sort_as_the_times_do(one: datetime, other: datetime) -> None:
    if 1 < one.year < 9999 and 1 < other.year < 9999:
        assert (time_text(one) < time_text(other)) == (one.astimezone(UTC) < other.astimezone(UTC))


def test_a_time_is_written_in_utc_with_microseconds() -> None:
    in_oslo = datetime(2026, 11, 23, 13, tzinfo=timezone(timedelta(hours=1)))
    assert time_text(in_oslo) == "2026-11-23T12:00:00.000000+00:00"
