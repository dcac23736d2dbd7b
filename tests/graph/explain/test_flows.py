"""What edges carry: every bit of a walk's mass is accounted for, whatever the factors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.edges import EDGE_KINDS, EdgeKind, TypedGraph
from graph.explain.flows import Flows
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationFactors
from graph.walk.factors import EdgeFactors, edge_factors
from graph.walk.settings import DIRECTED, UNDIRECTED, FactorPolicy
from graph.walk.strengths import STRONGEST, TUNED_RELATIONS, WEAKEST, strengthened
from tests.builders import typed_graph
from tests.random_walks import Given, graphs, walked, walks
from tests.walking import MENTION, NEUTRAL, TEMPORAL

EXACT = 1e-8

some = settings(max_examples=30)


def edges_of(*edges: tuple[int, int, EdgeKind, float]) -> TypedGraph:
    """Two entities (0, 1) and two passages (2, 3)."""
    return typed_graph(2, 2, list(edges)).typed


@st.composite
def betas(draw: st.DrawFn) -> RelationFactors:
    def shares(names: list[str]) -> dict[str, float]:
        drawn = [draw(st.floats(0.0, 1.0)) for _ in names]
        return {name: share / (sum(drawn) or 1) for name, share in zip(names, drawn, strict=True)}

    return RelationFactors(shares(list(ENTITY_RELATIONS)), shares(list(PASSAGE_RELATIONS)))


@st.composite
def steered(draw: st.DrawFn) -> EdgeFactors:
    """Factors as questions have them: every policy, direction and tuning."""
    factors = edge_factors(
        draw(st.none() | betas()),
        policy=draw(st.sampled_from(FactorPolicy)),
        directions=draw(st.sampled_from([DIRECTED, UNDIRECTED])),
    )
    strengths = {relation: draw(st.sampled_from([WEAKEST, 1.0, STRONGEST])) for relation in TUNED_RELATIONS}
    return strengthened(factors, strengths) if draw(st.booleans()) else factors


def check_all_is_accounted_for(flows: Flows) -> None:
    graph = flows.graph
    assert flows.scores == pytest.approx(flows.restart + flows.inflow, abs=EXACT)
    leaving = np.bincount(graph.source, flows.forward, graph.n_nodes)
    leaving += np.bincount(graph.target, flows.backward, graph.n_nodes)
    walks_on = leaving > 0
    assert leaving[walks_on] == pytest.approx(flows.damping * flows.scores[walks_on], abs=EXACT)
    assert flows.restart.sum() + flows.inflow.sum() == pytest.approx(1, abs=EXACT)


class TestAnyWalk:
    @some
    @given(st.data(), graphs(), steered(), st.sampled_from([0.0, 0.5, 0.7, 0.99]))
    def test_a_nodes_mass_is_what_starts_there_and_what_comes_in(
        self, data: st.DataObject, graph: TypedGraph, factors: EdgeFactors, damping: float
    ) -> None:
        restart = np.zeros(graph.n_nodes)
        restart[data.draw(st.integers(0, graph.n_nodes - 1))] = 1.0
        restart[data.draw(st.integers(0, graph.n_nodes - 1))] += 0.25
        check_all_is_accounted_for(walked(graph, restart, factors, damping))

    @some
    @given(walks())
    def test_the_same_with_factors_of_any_kind(self, given_walk: Given) -> None:
        check_all_is_accounted_for(walked(*given_walk))

    @some
    @given(st.data(), walks())
    def test_what_some_edges_carry_and_what_the_others_do_make_up_the_inflow(
        self, data: st.DataObject, given_walk: Given
    ) -> None:
        flows = walked(*given_walk)
        some_edges = np.array([data.draw(st.booleans()) for _ in range(len(flows.graph))], dtype=bool)
        parts = [flows.inflow_over(np.flatnonzero(part)) for part in (some_edges, ~some_edges)]
        assert flows.inflow == pytest.approx(parts[0] + parts[1])


class TestOneWalk:
    def test_an_edge_carries_its_share_of_what_walks_on(self) -> None:
        graph = edges_of((0, 1, TEMPORAL, 3.0), (0, 2, MENTION, 1.0))
        flows = walked(graph, np.array([1.0, 0, 0, 0]), NEUTRAL, 0.5)
        assert flows.forward_share.tolist() == [0.75, 0.25]
        assert flows.backward_share.tolist() == [1.0, 1.0]
        assert flows.forward == pytest.approx(0.5 * flows.scores[0] * np.array([0.75, 0.25]))
        assert flows.backward == pytest.approx(0.5 * flows.scores[[1, 2]])

    def test_each_side_has_its_own_factor(self) -> None:
        graph = edges_of((0, 2, MENTION, 1.0), (0, 3, MENTION, 1.0), (1, 2, MENTION, 1.0))
        half = NEUTRAL.from_entity.copy()
        half[graph.kind[0]] = 0.0
        flows = walked(graph, np.array([1.0, 0, 0, 0]), EdgeFactors(half, NEUTRAL.from_passage), 0.5)
        assert flows.forward.tolist() == [0, 0, 0]
        flows = walked(graph, np.array([0, 0, 1.0, 0]), EdgeFactors(half, NEUTRAL.from_passage), 0.5)
        assert flows.backward_share.tolist() == [0.5, 1.0, 0.5]

    def test_what_a_node_without_edges_gives_back_starts_at_the_seeds_again(self) -> None:
        graph = edges_of((0, 1, TEMPORAL, 1.0))
        flows = walked(graph, np.array([1.0, 0, 0, 1.0]), NEUTRAL, 0.5)
        assert flows.restart[0] == pytest.approx(flows.restart[3])
        assert flows.restart.sum() == pytest.approx(0.5 + 0.5 * flows.scores[3])

    def test_a_graph_without_edges_has_no_flow(self) -> None:
        flows = walked(edges_of(), np.array([0, 1.0, 0, 3.0]), NEUTRAL, 0.7)
        assert flows.inflow.tolist() == [0, 0, 0, 0]
        assert flows.restart == pytest.approx([0, 0.25, 0, 0.75])

    def test_every_kind_of_edge_carries_mass(self) -> None:
        for kind in EDGE_KINDS:
            flows = walked(edges_of((0, 2 if kind.link else 1, kind, 0.4)), np.array([1.0, 0, 0, 0]), NEUTRAL, 0.7)
            assert flows.forward.tolist() == pytest.approx([0.7 * flows.scores[0]])
