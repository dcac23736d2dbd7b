from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction import edges as arcs
from graph.construction.edges import EDGE_KINDS, Arcs, NodeArcs, TypedGraph, load_arcs, write_arcs
from tests.random_walks import graphs

COLUMNS = ("source", "target", "kind", "weight")


def written(graph: TypedGraph, folder: Path, at_once: int = 1 << 20) -> NodeArcs:
    """Write a graph's edges and their arcs, and open the arcs."""
    for name in COLUMNS:
        np.save(folder / f"edge_{name}.npy", getattr(graph, name))
    write_arcs(folder, graph.n_nodes, at_once=at_once)
    columns = graph.target, graph.kind, graph.weight
    return load_arcs(folder, columns, graph.n_entities, graph.n_nodes, len(EDGE_KINDS), thorough=True)


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
