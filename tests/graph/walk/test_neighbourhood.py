from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.edges import Arcs, NodeArcs
from graph.errors import WorkspaceDamaged
from graph.walk.engines.transition import degrees
from graph.walk.neighbourhood import STEPS, reach
from graph.walk.sparse import SparseVector
from tests.builders import typed_graph
from tests.random_walks import Given, walks
from tests.walking import CAUSAL, MENTION, NEUTRAL, TEMPORAL, Vector, by_igraph

ROUNDING = 1e-9


def started(restart: Vector) -> SparseVector:
    """Return a start that sums to 1."""
    return SparseVector.of(restart / restart.sum())


@given(walks(), st.data())
def test_it_is_the_pagerank_without_long_ways_for_each_start(given_walk: Given, data: st.DataObject) -> None:
    graph, restart, factors, damping = given_walk
    exact = by_igraph(graph, restart, factors, damping).scores
    passages, nodes = np.arange(graph.n_entities, graph.n_nodes), np.arange(graph.n_nodes)
    other = np.zeros(graph.n_nodes)
    other[data.draw(st.integers(0, graph.n_nodes - 1))] = 1.0
    starts = [started(restart), started(other)]
    (of_passages,) = reach(graph, passages, starts[:1], factors, damping)
    assert (of_passages <= exact[passages] + ROUNDING).all()
    together = reach(graph, nodes, starts, factors, damping)
    for row, start in zip(together, starts, strict=True):
        assert row == pytest.approx(reach(graph, nodes, [start], factors, damping)[0])
    if degrees(graph, factors).all():
        assert np.abs(together[0] - exact).sum() <= damping ** (STEPS + 1) + ROUNDING


def test_a_walk_reaches_a_node_from_its_neighbours_and_theirs_and_from_nowhere_else() -> None:
    """A passage (4) that mentions entity 3; entities 0, 1, 2 and 3 in a row."""
    row = [(0, 1, TEMPORAL, 1.0), (1, 2, CAUSAL, 1.0), (2, 3, TEMPORAL, 1.0), (3, 4, MENTION, 1.0)]
    graph = typed_graph(4, 1, row).typed

    def reached_from(entity: int) -> float:
        start = SparseVector.of_mapping(5, {entity: 1.0})
        return float(reach(graph, np.array([4]), [start], NEUTRAL, 0.5)[0, 0])

    assert 0 < reached_from(2) < reached_from(3)
    assert reached_from(0) == reached_from(1) == 0


def test_arcs_that_lead_nowhere_are_told() -> None:
    graph = typed_graph(2, 1, [(0, 2, MENTION, 1.0), (1, 2, MENTION, 1.0)]).typed
    back = graph.arcs.backward
    astray = Arcs(back.starts, np.array([0, 9], dtype=np.int32), back.kind, back.weight)
    damaged = replace(graph, known_arcs=NodeArcs(graph.forward, astray, graph.n_arcs))
    with pytest.raises(WorkspaceDamaged, match="lead nowhere"):
        reach(damaged, np.array([2]), [SparseVector.of_mapping(3, {0: 1.0})], NEUTRAL, 0.5)
