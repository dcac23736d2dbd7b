from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.factors import DIRECTED, EdgeFactors, FactorPolicy, edge_factors, passage_side
from graph.knowledge_graph import EDGE_KINDS, IS_PASSAGE_KIND, EdgeKind, Edges, KnowledgeGraph, PassageLink
from graph.pagerank import walk
from graph.schema import RelationFactors, RelationType
from tests.builders import typed_graph

Vector = NDArray[np.float64]
Edge = tuple[int, int, EdgeKind, float]

TEMPORAL, CAUSAL = EdgeKind(RelationType.TEMPORAL), EdgeKind(RelationType.CAUSALITY)
MENTION = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)
NEUTRAL = edge_factors(None)
KINDS = len(EDGE_KINDS)


def dense_pagerank(graph: KnowledgeGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Vector:
    """PR(v) = (1-d) r(v) + d Σ_u PR(u) w(u,v) / Σ_x w(u,x), solved as a linear system; dangling nodes restart."""
    weight = np.zeros((graph.n_nodes, graph.n_nodes))
    edges = graph.edges
    back = passage_side(edges.kind, factors)
    for row in range(len(edges)):
        weight[edges.source[row], edges.target[row]] += edges.weight[row] * factors.from_entity[edges.kind[row]]
        weight[edges.target[row], edges.source[row]] += edges.weight[row] * back[row]
    restart = restart / restart.sum()
    out = weight.sum(axis=1, keepdims=True)
    transition = np.where(out > 0, weight / np.where(out > 0, out, 1), restart)
    return np.asarray(np.linalg.solve(np.eye(graph.n_nodes) - damping * transition.T, (1 - damping) * restart))


weights = st.sampled_from([0.0, 0.05, 0.5, 1.0, 3.5])
factor_values = st.sampled_from([0.0, 0.02, 0.3, 1.0, 10.0])
dampings = st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.85, 0.99])


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    n_entities, n_passages = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    edges: list[Edge] = []
    for kind in draw(st.lists(st.sampled_from(EDGE_KINDS), max_size=14)):
        a = draw(st.integers(0, n_entities - 1))
        b = (
            draw(st.integers(0, n_entities - 1))
            if kind.link is None
            else n_entities + draw(st.integers(0, n_passages - 1))
        )
        if a != b:
            edges.append((a, b, kind, draw(weights)))
    return typed_graph(n_entities, n_passages, edges)


@st.composite
def walks(draw: st.DrawFn, *, symmetric: bool = False) -> tuple[KnowledgeGraph, Vector, EdgeFactors, float]:
    graph = draw(graphs())
    restart = np.array(
        draw(st.lists(st.sampled_from([0.0, 0.05, 1.0]), min_size=graph.n_nodes, max_size=graph.n_nodes))
    )
    restart[draw(st.integers(0, graph.n_nodes - 1))] += 0.5
    from_entity = np.array(draw(st.lists(factor_values, min_size=KINDS, max_size=KINDS)))
    from_passage = from_entity.copy()
    if not symmetric:
        drawn = draw(st.lists(factor_values, min_size=KINDS, max_size=KINDS))
        from_passage[IS_PASSAGE_KIND] = np.array(drawn)[IS_PASSAGE_KIND]
    return graph, restart, EdgeFactors(from_entity, from_passage), draw(dampings)


def select(edges: Edges, rows: NDArray[np.bool_]) -> Edges:
    return Edges(*(getattr(edges, name)[rows] for name in ("source", "target", "kind", "weight", "count", "offset")))


class TestAnyGraph:
    @given(walks())
    def test_scores_sum_to_one_and_solve_the_equation(
        self, given_walk: tuple[KnowledgeGraph, Vector, EdgeFactors, float]
    ) -> None:
        scores = walk(*given_walk)
        assert scores.sum() == pytest.approx(1, abs=1e-9)
        assert (scores >= 0).all()
        assert scores == pytest.approx(dense_pagerank(*given_walk), abs=1e-9)

    @given(walks(), st.sampled_from([1e-3, 0.7, 42.0]))
    def test_one_constant_on_all_factors_changes_nothing(
        self, given_walk: tuple[KnowledgeGraph, Vector, EdgeFactors, float], constant: float
    ) -> None:
        graph, restart, factors, damping = given_walk
        scaled = EdgeFactors(factors.from_entity * constant, factors.from_passage * constant)
        assert walk(graph, restart, scaled, damping) == pytest.approx(walk(*given_walk), abs=1e-9)

    @given(walks(), st.integers(0, KINDS - 1))
    def test_a_factor_of_zero_removes_exactly_the_edges_of_that_kind(
        self, given_walk: tuple[KnowledgeGraph, Vector, EdgeFactors, float], kind: int
    ) -> None:
        graph, restart, factors, damping = given_walk
        zeroed = EdgeFactors(factors.from_entity.copy(), factors.from_passage.copy())
        zeroed.from_entity[kind] = zeroed.from_passage[kind] = 0.0
        deleted = replace(graph, edges=select(graph.edges, graph.edges.kind != kind))
        assert walk(graph, restart, zeroed, damping) == pytest.approx(
            walk(deleted, restart, factors, damping), abs=1e-9
        )

    @given(walks(symmetric=True))
    def test_equal_factors_on_both_sides_are_the_undirected_walk(
        self, given_walk: tuple[KnowledgeGraph, Vector, EdgeFactors, float]
    ) -> None:
        graph, restart, factors, damping = given_walk
        undirected = graph.undirected.personalized_pagerank(
            weights=(graph.edges.weight * factors.from_entity[graph.edges.kind]).tolist(),
            reset=restart.tolist(),
            damping=damping,
        )
        assert walk(*given_walk) == pytest.approx(np.array(undirected), abs=1e-9)
        nearly = EdgeFactors(factors.from_entity, factors.from_passage * (1 + 1e-12))
        if not nearly.symmetric:
            assert walk(graph, restart, nearly, damping) == pytest.approx(walk(*given_walk), abs=1e-9)

    @given(walks(), st.randoms(use_true_random=False))
    def test_numbering_the_nodes_otherwise_numbers_the_scores_otherwise(
        self, given_walk: tuple[KnowledgeGraph, Vector, EdgeFactors, float], random: Random
    ) -> None:
        graph, restart, factors, damping = given_walk
        entities, passages = list(range(graph.n_entities)), list(range(graph.n_entities, graph.n_nodes))
        random.shuffle(entities)
        random.shuffle(passages)
        place = np.array([*entities, *passages])
        edges = replace(
            graph.edges,
            source=place[graph.edges.source].astype(np.int32),
            target=place[graph.edges.target].astype(np.int32),
        )
        moved_restart = np.zeros_like(restart)
        moved_restart[place] = restart
        moved = walk(replace(graph, edges=edges), moved_restart, factors, damping)
        assert moved[place] == pytest.approx(walk(*given_walk), abs=1e-9)

    @given(walks(symmetric=True), st.floats(0, 1))
    def test_uniform_beta_under_the_neutral_policy_is_the_walk_without_beta(
        self, given_walk: tuple[KnowledgeGraph, Vector, EdgeFactors, float], strength: float
    ) -> None:
        graph, restart, _, damping = given_walk
        with_beta = walk(graph, restart, edge_factors(RelationFactors.uniform(), strength=strength), damping)
        without = walk(graph, restart, NEUTRAL, damping)
        assert with_beta == pytest.approx(without, abs=1e-9)

    @given(graphs(), dampings)
    def test_a_passage_linked_with_a_seed_entity_is_reached(self, graph: KnowledgeGraph, damping: float) -> None:
        restart = np.zeros(graph.n_nodes)
        restart[0] = 1.0
        scores = walk(graph, restart, NEUTRAL, damping)
        linked = graph.edges.target[(graph.edges.source == 0) & (graph.edges.weight > 0)]
        assert (scores[linked] > 0).all() == (damping > 0 or not len(linked))


@pytest.mark.parametrize("factors", [NEUTRAL, edge_factors(None, directions=DIRECTED)], ids=["undirected", "directed"])
def test_large_graphs_solve_the_equation_too(factors: EdgeFactors) -> None:
    """The engine takes another method for graphs of more than 128 nodes."""
    random = np.random.default_rng(7)
    edges: list[Edge] = []
    for kind in random.choice(KINDS, 900):
        entity = int(random.integers(200))
        other = (
            int(random.integers(200, 300)) if EDGE_KINDS[kind].link else (entity + 1 + int(random.integers(199))) % 200
        )
        edges.append((entity, other, EDGE_KINDS[kind], float(random.choice([0.0, 0.1, 1.0, 3.5]))))
    graph = typed_graph(200, 100, edges)
    restart = random.choice([0.0, 0.0, 1.0], graph.n_nodes)
    scores = walk(graph, restart, factors, 0.7)
    assert scores == pytest.approx(dense_pagerank(graph, restart, factors, 0.7), abs=1e-9)


class TestSmallGraphs:
    def test_mass_flows_by_modified_weight(self) -> None:
        """From the seed, TEMPORAL at 0.9 x 0.7 and CAUSALITY at 0.8 x 0.05 share what is followed."""
        beta = RelationFactors(
            {"HIERARCHICAL": 0.1, "TEMPORAL": 0.7, "SPATIAL": 0.1, "CAUSALITY": 0.05, "ATTRIBUTION": 0.05},
            RelationFactors.uniform().entity_passage,
        )
        graph = typed_graph(3, 1, [(0, 1, TEMPORAL, 0.9), (0, 2, CAUSAL, 0.8)])
        scores = walk(graph, np.array([1.0, 0, 0, 0]), edge_factors(beta, policy=FactorPolicy.CATEGORY), 0.5)
        assert scores[1] / scores[2] == pytest.approx(0.63 / 0.04)

    def test_parallel_edges_of_two_types_stay_two_edges(self) -> None:
        both = typed_graph(3, 0, [(0, 1, TEMPORAL, 1.0), (0, 1, CAUSAL, 2.0), (0, 2, TEMPORAL, 1.0)])
        seed = np.array([1.0, 0, 0])
        scores = walk(both, seed, NEUTRAL, 0.5)
        assert scores[1] / scores[2] == pytest.approx(3.0)
        no_causes = edge_factors(None)
        no_causes.from_entity[EDGE_KINDS.index(CAUSAL)] = no_causes.from_passage[EDGE_KINDS.index(CAUSAL)] = 0.0
        scores = walk(both, seed, no_causes, 0.5)
        assert scores[1] == pytest.approx(scores[2])

    def test_an_isolated_seed_keeps_its_mass_and_isolated_nodes_get_none(self) -> None:
        graph = typed_graph(3, 1, [(0, 1, TEMPORAL, 1.0)])
        scores = walk(graph, np.array([0.0, 0.0, 0.0, 2.0]), NEUTRAL, 0.85)
        assert scores.tolist() == pytest.approx([0, 0, 0, 1])

    def test_an_edge_of_weight_zero_is_none(self) -> None:
        graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 0.0), (0, 2, MENTION, 1.0)])
        scores = walk(graph, np.array([1.0, 0, 0]), NEUTRAL, 0.5)
        assert scores[1] == 0
        assert scores[2] == pytest.approx(1 / 3)

    def test_other_weights_can_be_walked_on(self) -> None:
        graph = typed_graph(3, 0, [(0, 1, TEMPORAL, 1.0), (0, 2, TEMPORAL, 1.0)])
        scores = walk(graph, np.array([1.0, 0, 0]), NEUTRAL, 0.5, weights=np.array([3.0, 1.0], dtype=np.float32))
        assert scores[1] / scores[2] == pytest.approx(3.0)

    def test_without_any_edge_the_walk_stays_at_its_seeds(self) -> None:
        assert walk(typed_graph(1, 2, []), np.array([0.0, 3.0, 1.0]), NEUTRAL, 0.5).tolist() == pytest.approx(
            [0, 0.75, 0.25]
        )

    def test_when_every_factor_is_zero_the_walk_stays_at_its_seeds(self) -> None:
        graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 1.0), (0, 2, MENTION, 1.0)])
        nothing = EdgeFactors(np.zeros(KINDS), np.zeros(KINDS))
        assert walk(graph, np.array([1.0, 0, 1.0]), nothing, 0.7).tolist() == pytest.approx([0.5, 0, 0.5])


class TestRefused:
    graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 1.0)])

    @pytest.mark.parametrize("restart", [[0.0, 0.0, 0.0], [np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0]])
    def test_a_restart_without_positive_weight(self, restart: list[float]) -> None:
        with pytest.raises(BadInput, match="no seed"):
            walk(self.graph, np.array(restart), NEUTRAL, 0.5)

    @pytest.mark.parametrize("damping", [-0.1, 1.0, 1.5, np.nan])
    def test_a_damping_out_of_range(self, damping: float) -> None:
        with pytest.raises(BadInput, match="Damping"):
            walk(self.graph, np.ones(3), NEUTRAL, damping)
