from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.edges import Arcs, NodeArcs, TypedGraph
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


@given(walks())
def test_what_it_gives_is_a_part_of_the_pagerank(given_walk: Given) -> None:
    graph, restart, factors, damping = given_walk
    exact = by_igraph(graph, restart, factors, damping).scores
    passages = np.arange(graph.n_entities, graph.n_nodes)
    (found,) = reach(graph, passages, [started(restart)], factors, damping)
    assert (found <= exact[passages] + ROUNDING).all()


@given(walks())
def test_among_all_nodes_it_lacks_what_takes_more_steps_alone(given_walk: Given) -> None:
    graph, restart, factors, damping = given_walk
    (found,) = reach(graph, np.arange(graph.n_nodes), [started(restart)], factors, damping)
    if degrees(graph, factors).all():
        exact = by_igraph(graph, restart, factors, damping).scores
        assert np.abs(found - exact).sum() <= damping ** (STEPS + 1) + ROUNDING


@given(walks(), st.data())
def test_starts_do_not_touch_each_other(given_walk: Given, data: st.DataObject) -> None:
    graph, restart, factors, damping = given_walk
    other = np.zeros(graph.n_nodes)
    other[data.draw(st.integers(0, graph.n_nodes - 1))] = 1.0
    nodes, starts = np.arange(graph.n_nodes), [started(restart), started(other)]
    together = reach(graph, nodes, starts, factors, damping)
    for row, start in zip(together, starts, strict=True):
        assert row == pytest.approx(reach(graph, nodes, [start], factors, damping)[0])


class TestBeyond:
    """A passage (4) that mentions entity 3; entities 0, 1, 2 and 3 in a row."""

    graph = typed_graph(4, 1, [(0, 1, TEMPORAL, 1.0), (1, 2, CAUSAL, 1.0), (2, 3, TEMPORAL, 1.0), (3, 4, MENTION, 1.0)])

    def reached_from(self, entity: int) -> float:
        start = SparseVector.of_mapping(5, {entity: 1.0})
        return float(reach(self.graph.typed, np.array([4]), [start], NEUTRAL, 0.5)[0, 0])

    def test_a_walk_from_a_neighbour_of_a_node_reaches_it(self) -> None:
        assert self.reached_from(3) > 0

    def test_a_start_beside_a_neighbour_reaches_it_too(self) -> None:
        assert 0 < self.reached_from(2) < self.reached_from(3)

    def test_no_walk_goes_over_nodes_that_are_neither(self) -> None:
        assert self.reached_from(0) == self.reached_from(1) == 0


def test_arcs_that_lead_nowhere_are_told() -> None:
    graph = typed_graph(2, 1, [(0, 2, MENTION, 1.0), (1, 2, MENTION, 1.0)]).typed
    back = graph.arcs.backward
    astray = Arcs(back.starts, np.array([0, 9], dtype=np.int32), back.kind, back.weight)
    damaged = TypedGraph(
        graph.n_entities,
        graph.n_passages,
        graph.source,
        graph.target,
        graph.kind,
        graph.weight,
        known_arcs=NodeArcs(graph.forward, astray, graph.n_arcs),
    )
    with pytest.raises(WorkspaceDamaged, match="lead nowhere"):
        reach(damaged, np.array([2]), [SparseVector.of_mapping(3, {0: 1.0})], NEUTRAL, 0.5)
