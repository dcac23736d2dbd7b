from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction import edges as arcs
from graph.construction.edges import (
    EDGE_KINDS,
    Arcs,
    EdgeKind,
    Edges,
    NodeArcs,
    TypedGraph,
    load_arcs,
    sort_edges,
    write_arcs,
)
from graph.relations import PassageLink
from graph.schema import RelationType
from tests.builders import typed_graph
from tests.random_walks import graphs


def test_edges_are_sorted_by_source_target_and_kind() -> None:
    rows = [(1, 2, 0), (0, 2, 1), (0, 2, 0), (0, 1, 3)]
    source, target, kind = (np.array(column) for column in zip(*rows, strict=True))
    weight, offset = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.int32)
    edges = sort_edges(
        Edges(source.astype(np.int32), target.astype(np.int32), kind.astype(np.uint8), weight, weight, offset)
    )
    assert list(zip(edges.source, edges.target, edges.kind, strict=True)) == sorted(rows)
    assert edges.weight.tolist() == edges.offset.tolist() == [3, 2, 1, 0]


COLUMNS = ("source", "target", "kind", "weight")


def written(graph: TypedGraph, folder: Path, at_once: int = 1 << 20) -> NodeArcs:
    """Write a graph's edges and their arcs, and open the arcs."""
    for name in COLUMNS:
        np.save(folder / f"edge_{name}.npy", getattr(graph, name))
    write_arcs(folder, graph.n_nodes, at_once=at_once)
    columns = graph.target, graph.kind, graph.weight
    return load_arcs(folder, columns, graph.n_entities, graph.n_nodes, len(EDGE_KINDS))


def assert_same(one: NodeArcs, other: NodeArcs) -> None:
    for here, there in ((one.forward, other.forward), (one.backward, other.backward)):
        for name in Arcs._fields:
            mine, theirs = getattr(here, name), getattr(there, name)
            assert np.array_equal(mine, theirs), name
            assert mine.dtype == theirs.dtype, name
    assert np.array_equal(one.counts, other.counts)
    assert one.counts.dtype == other.counts.dtype


@settings(max_examples=50)
@given(graphs(), st.integers(1, 12), st.integers(1, 12))
def test_stored_arcs_are_those_that_a_process_would_derive(graph: TypedGraph, at_once: int, read: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arcs, "_READ_AT_ONCE", read)
        assert_same(written(graph, Path(name), at_once), graph.arcs)


def one_edge(weight: float = 1.0) -> TypedGraph:
    """Two entities and a passage, which the first names."""
    source, target, kind = np.array([0], np.int32), np.array([2], np.int32), np.array([0], np.uint8)
    return TypedGraph(2, 1, source, target, kind, np.array([weight], np.float32))


def test_a_graph_with_the_arcs_of_other_edges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="other edges"):
        replace(one_edge(0.5), known_arcs=written(one_edge(), tmp_path))


def test_edges_between_nodes_that_are_none_are_refused(tmp_path: Path) -> None:
    for column in ["source", "target"]:
        written(one_edge(), tmp_path)
        np.save(tmp_path / f"edge_{column}.npy", np.array([3], np.int32))
        with pytest.raises(ValueError, match="within 0 and 2"):
            write_arcs(tmp_path, 3)


def test_links_that_no_fact_makes_can_be_left_out() -> None:
    """Of the passages 3 and 4 the title is linked, with 5 and 6 a name; in 3 and 5 a fact holds it."""
    for titles, mentions, kept in [
        (True, True, [3, 4, 5, 6]),
        (False, True, [3, 5, 6]),
        (True, False, [3, 4, 5]),
        (False, False, [3, 5]),
    ]:
        title, mention = (EdgeKind(RelationType.PRIMARY, link) for link in (PassageLink.OWN_TITLE, PassageLink.MENTION))
        links = [(0, 3, title), (0, 4, title), (1, 5, mention), (1, 6, mention)]
        edges = [(0, 1, EdgeKind(RelationType.TEMPORAL), 1.0), *((*link, 1.0) for link in links)]
        graph = typed_graph(3, 4, edges)
        in_fact = np.isin(graph.edges.target, [3, 5]).astype(np.float32)
        graph = replace(graph, edges=replace(graph.edges, count=in_fact))
        part = graph.with_links(titles=titles, mentions=mentions)
        assert part.target.tolist() == [1, *kept], titles
        assert (part.n_entities, part.n_passages) == (3, 4), titles


def test_edges_out_of_order_are_refused() -> None:
    source, target = np.array([1, 0], np.int32), np.array([2, 2], np.int32)
    with pytest.raises(ValueError, match="order"):
        TypedGraph(2, 1, source, target, np.zeros(2, np.uint8), np.ones(2, np.float32))
