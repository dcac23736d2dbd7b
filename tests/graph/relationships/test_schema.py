"""The schema declares every node and edge, and refuses whatever else is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from graph.errors import NotInSchema
from graph.relationships.exchange import Part
from graph.relationships.schema import (
    EDGES,
    NODES,
    EdgeType,
    NodeType,
    Property,
    check_edge,
    check_node,
)
from graph.schema import MAX_ID
from tests.relationship_graphs import PAIRS, bad_values, sample_edge, sample_node


def test_an_id_is_one_that_can_be_repeated() -> None:
    for key in ("", "  ", "a\nb", "a\x00b", "x" * (MAX_ID + 1), "\ud800"):
        for of in NodeType:
            with pytest.raises(NotInSchema, match="is no id of a"):
                check_node(sample_node(of, key))
        for pair in PAIRS:
            for ends in ((key, "b"), ("a", key)):
                with pytest.raises(NotInSchema, match="is no id of a"):
                    check_edge(sample_edge(*pair, *ends))


def refuse_values(part: Part, declared: Mapping[str, Property], check: Callable[[Any], None]) -> None:
    """Whatever a property of a node or an edge may not be is refused by its name, and so is any other property."""

    def changed(name: str, value: Any) -> Part:
        return replace(part, properties={**part.properties, name: value})

    for name, each in declared.items():
        for value in bad_values(each):
            with pytest.raises(NotInSchema, match=rf"^{part.type}\.{name} "):
                check(changed(name, value))
    with pytest.raises(NotInSchema, match="has no property 'colour'"):
        check(changed("colour", "red"))


def test_what_a_property_may_not_be_is_refused() -> None:
    for of, declared in NODES.items():
        refuse_values(sample_node(of), declared, check_node)
    for pair in PAIRS:
        refuse_values(sample_edge(*pair), EDGES[pair[0]].properties, check_edge)


def test_an_edge_links_declared_pairs_alone_and_no_node_with_itself() -> None:
    for of, source, target in product(EdgeType, NodeType, NodeType):
        if (source, target) in EDGES[of].pairs:
            if source is target:
                with pytest.raises(NotInSchema, match="with itself"):
                    check_edge(sample_edge(of, source, target, start="a", end="a"))
            continue
        with pytest.raises(NotInSchema, match=f"^{of} does not go from {source} to {target}") as refused:
            check_edge(sample_edge(of, source, target))
        assert all(f"{start} to {end}" in str(refused.value) for start, end in EDGES[of].pairs)
