from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.edges import EDGE_KINDS, IS_PASSAGE_KIND, EdgeKind, PassageLink
from graph.engines import matrix, push
from graph.errors import BadInput
from graph.factors import DIRECTED, EdgeFactors, EdgeMultipliers, FactorPolicy, edge_factors
from graph.pagerank import LARGE_GRAPH, SPARSE_SEEDS, Engine, Walk, choose_engine, walk, walk_batch
from graph.schema import RelationFactors, RelationType
from graph.typed_graph import TypedGraph
from tests.builders import typed_graph

Vector = NDArray[np.float64]
Edge = tuple[int, int, EdgeKind, float]
Given = tuple[TypedGraph, Vector, EdgeFactors, float]
Solver = Callable[..., Walk]

TEMPORAL, CAUSAL = EdgeKind(RelationType.TEMPORAL), EdgeKind(RelationType.CAUSALITY)
MENTION = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)
NEUTRAL = edge_factors(None)
KINDS = len(EDGE_KINDS)


def by_igraph(
    graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float, multipliers: EdgeMultipliers | None = None
) -> Walk:
    return walk(graph, restart, factors, damping, Engine.IGRAPH, multipliers=multipliers)


def by_matrix(
    graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float, multipliers: EdgeMultipliers | None = None
) -> Walk:
    return walk(graph, restart, factors, damping, Engine.MATRIX, multipliers=multipliers)


def by_push(
    graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float, multipliers: EdgeMultipliers | None = None
) -> Walk:
    return walk(graph, restart, factors, damping, Engine.PUSH, multipliers=multipliers)


def by_exact_matrix(
    graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float, multipliers: EdgeMultipliers | None = None
) -> Walk:
    rows, errors, arcs = matrix.solve(
        graph,
        restart[None] / restart.sum(),
        factors,
        damping,
        multipliers=multipliers,
        dtype=np.float64,
        tolerance=1e-12,
    )
    return Walk(rows[0], Engine.MATRIX, float(errors[0]), arcs)


def by_exact_push(
    graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float, multipliers: EdgeMultipliers | None = None
) -> Walk:
    scores, error, arcs = push.solve(
        graph, restart / restart.sum(), factors, damping, multipliers=multipliers, threshold=1e-13
    )
    return Walk(scores, Engine.PUSH, error, arcs)


EXACT = [by_igraph, by_exact_matrix, by_exact_push]
ALL = [*EXACT, by_matrix, by_push]
exact = pytest.mark.parametrize("solve", EXACT, ids=["igraph", "matrix", "push"])
few = settings(max_examples=40)
every = pytest.mark.parametrize("solve", ALL, ids=["igraph", "matrix", "push", "matrix as it is", "push as it is"])


def far(one: Walk, other: Walk) -> float:
    """How far two walks are apart beyond what they admit."""
    return float(np.abs(one.scores - other.scores).sum() - one.error - other.error)


def dense_pagerank(
    graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float, multipliers: EdgeMultipliers | None = None
) -> Walk:
    """PR(v) = (1-d) r(v) + d Σ_u PR(u) w(u,v) / Σ_x w(u,x), solved as a linear system; dangling nodes restart."""
    edge_weight = graph.weight.astype(np.float64)
    if multipliers:
        edge_weight[multipliers.edges] *= multipliers.values
    weight = np.zeros((graph.n_nodes, graph.n_nodes))
    for row, kind in enumerate(graph.kind):
        back = factors.from_passage if EDGE_KINDS[kind].link else factors.from_entity
        weight[graph.source[row], graph.target[row]] += edge_weight[row] * factors.from_entity[kind]
        weight[graph.target[row], graph.source[row]] += edge_weight[row] * back[kind]
    restart = restart / restart.sum()
    out = weight.sum(axis=1, keepdims=True)
    transition = np.where(out > 0, weight / np.where(out > 0, out, 1), restart)
    scores = np.linalg.solve(np.eye(graph.n_nodes) - damping * transition.T, (1 - damping) * restart)
    return Walk(np.asarray(scores), Engine.IGRAPH, 1e-9)


weights = st.sampled_from([0.0, 0.05, 0.5, 1.0, 3.5])
factor_values = st.sampled_from([0.0, 0.02, 0.3, 1.0, 10.0])
dampings = st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.85, 0.99])


@st.composite
def graphs(draw: st.DrawFn) -> TypedGraph:
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
    return typed_graph(n_entities, n_passages, edges).typed


@st.composite
def walks(draw: st.DrawFn, *, symmetric: bool = False) -> Given:
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


@st.composite
def multipliers_of(draw: st.DrawFn, graph: TypedGraph) -> EdgeMultipliers:
    chosen = draw(st.lists(st.integers(0, len(graph) - 1), unique=True)) if len(graph) else []
    values = draw(st.lists(factor_values, min_size=len(chosen), max_size=len(chosen)))
    return EdgeMultipliers(np.array(chosen, dtype=np.int64), np.array(values, dtype=np.float64))


def keep(graph: TypedGraph, rows: NDArray[np.bool_]) -> TypedGraph:
    return TypedGraph(
        graph.n_entities, graph.n_passages, *(getattr(graph, c)[rows] for c in ("source", "target", "kind", "weight"))
    )


@every
class TestAnyGraph:
    @few
    @given(walks())
    def test_scores_sum_to_one_and_are_as_near_to_the_solution_as_they_say(
        self, solve: Solver, given_walk: Given
    ) -> None:
        found = solve(*given_walk)
        assert found.scores.sum() == pytest.approx(1, abs=1e-5)
        assert (found.scores >= 0).all()
        assert far(found, dense_pagerank(*given_walk)) <= 0

    @few
    @given(walks(), st.sampled_from([1e-3, 0.7, 42.0]), st.sampled_from([1e-3, 0.7, 42.0]))
    def test_a_constant_on_all_factors_of_a_side_changes_nothing(
        self, solve: Solver, given_walk: Given, of_entities: float, of_passages: float
    ) -> None:
        graph, restart, factors, damping = given_walk
        scaled = EdgeFactors(factors.from_entity * of_entities, factors.from_passage * of_passages)
        assert far(solve(graph, restart, scaled, damping), solve(*given_walk)) <= 0

    @few
    @given(walks(), st.integers(0, KINDS - 1))
    def test_a_factor_of_zero_removes_exactly_the_edges_of_that_kind(
        self, solve: Solver, given_walk: Given, kind: int
    ) -> None:
        graph, restart, factors, damping = given_walk
        zeroed = EdgeFactors(factors.from_entity.copy(), factors.from_passage.copy())
        zeroed.from_entity[kind] = zeroed.from_passage[kind] = 0.0
        deleted = keep(graph, graph.kind != kind)
        assert far(solve(graph, restart, zeroed, damping), solve(deleted, restart, factors, damping)) <= 0

    @few
    @given(walks(), st.data())
    def test_multipliers_change_single_edges(self, solve: Solver, given_walk: Given, data: st.DataObject) -> None:
        multipliers = data.draw(multipliers_of(given_walk[0]))
        found = solve(*given_walk, multipliers=multipliers)
        assert (found.scores >= 0).all()
        assert far(found, dense_pagerank(*given_walk, multipliers)) <= 0

    @few
    @given(walks(symmetric=True))
    def test_equal_factors_on_both_sides_are_the_undirected_walk(self, solve: Solver, given_walk: Given) -> None:
        graph, restart, factors, damping = given_walk
        scores = graph.undirected.personalized_pagerank(
            weights=(graph.weight * factors.from_entity[graph.kind]).tolist(), reset=restart.tolist(), damping=damping
        )
        undirected = Walk(np.array(scores), Engine.IGRAPH, 1e-9)
        assert far(solve(*given_walk), undirected) <= 0
        nearly = EdgeFactors(factors.from_entity, factors.from_passage * (1 + 1e-12))
        assert far(solve(graph, restart, nearly, damping), undirected) <= 0

    @few
    @given(walks(), st.randoms(use_true_random=False))
    def test_numbering_the_nodes_otherwise_numbers_the_scores_otherwise(
        self, solve: Solver, given_walk: Given, random: Random
    ) -> None:
        graph, restart, factors, damping = given_walk
        entities, passages = list(range(graph.n_entities)), list(range(graph.n_entities, graph.n_nodes))
        random.shuffle(entities)
        random.shuffle(passages)
        place = np.array([*entities, *passages], dtype=np.int32)
        order = np.argsort(place[graph.source], kind="stable")
        moved = replace(
            graph,
            source=place[graph.source][order],
            target=place[graph.target][order],
            kind=graph.kind[order],
            weight=graph.weight[order],
        )
        moved_restart = np.zeros_like(restart)
        moved_restart[place] = restart
        found = solve(moved, moved_restart, factors, damping)
        assert far(replace(found, scores=found.scores[place]), solve(*given_walk)) <= 0

    @few
    @given(walks(symmetric=True), st.floats(0, 1))
    def test_uniform_beta_under_the_neutral_policy_is_the_walk_without_beta(
        self, solve: Solver, given_walk: Given, strength: float
    ) -> None:
        graph, restart, _, damping = given_walk
        with_beta = solve(graph, restart, edge_factors(RelationFactors.uniform(), strength=strength), damping)
        assert far(with_beta, solve(graph, restart, NEUTRAL, damping)) <= 0

    @few
    @given(graphs(), dampings)
    def test_a_passage_linked_with_a_seed_entity_is_reached(
        self, solve: Solver, graph: TypedGraph, damping: float
    ) -> None:
        restart = np.zeros(graph.n_nodes)
        restart[0] = 1.0
        scores = solve(graph, restart, NEUTRAL, damping).scores
        linked = graph.target[(graph.source == 0) & (graph.weight > 0)]
        assert (scores[linked] > 0).all() == (damping > 0 or not len(linked))


@every
@pytest.mark.parametrize("factors", [NEUTRAL, edge_factors(None, directions=DIRECTED)], ids=["undirected", "directed"])
def test_large_graphs_solve_the_equation_too(solve: Solver, factors: EdgeFactors) -> None:
    """PRPACK takes another method for graphs of more than 128 nodes."""
    random = np.random.default_rng(7)
    edges: list[Edge] = []
    for kind in random.choice(KINDS, 900):
        entity = int(random.integers(200))
        other = (
            int(random.integers(200, 300)) if EDGE_KINDS[kind].link else (entity + 1 + int(random.integers(199))) % 200
        )
        edges.append((entity, other, EDGE_KINDS[kind], float(random.choice([0.0, 0.1, 1.0, 3.5]))))
    graph = typed_graph(200, 100, edges).typed
    restart = random.choice([0.0, 0.0, 1.0], graph.n_nodes)
    assert far(solve(graph, restart, factors, 0.7), dense_pagerank(graph, restart, factors, 0.7)) <= 0


@exact
class TestSmallGraphs:
    def test_mass_flows_by_modified_weight(self, solve: Solver) -> None:
        """From the seed, TEMPORAL at 0.9 x 0.7 and CAUSALITY at 0.8 x 0.05 share what is followed."""
        beta = RelationFactors(
            {"HIERARCHICAL": 0.1, "TEMPORAL": 0.7, "SPATIAL": 0.1, "CAUSALITY": 0.05, "ATTRIBUTION": 0.05},
            RelationFactors.uniform().entity_passage,
        )
        graph = typed_graph(3, 1, [(0, 1, TEMPORAL, 0.9), (0, 2, CAUSAL, 0.8)]).typed
        scores = solve(graph, np.array([1.0, 0, 0, 0]), edge_factors(beta, policy=FactorPolicy.CATEGORY), 0.5).scores
        assert scores[1] / scores[2] == pytest.approx(0.63 / 0.04)

    def test_parallel_edges_of_two_types_stay_two_edges(self, solve: Solver) -> None:
        both = typed_graph(3, 0, [(0, 1, TEMPORAL, 1.0), (0, 1, CAUSAL, 2.0), (0, 2, TEMPORAL, 1.0)]).typed
        seed = np.array([1.0, 0, 0])
        scores = solve(both, seed, NEUTRAL, 0.5).scores
        assert scores[1] / scores[2] == pytest.approx(3.0)
        no_causes = edge_factors(None)
        no_causes.from_entity[EDGE_KINDS.index(CAUSAL)] = no_causes.from_passage[EDGE_KINDS.index(CAUSAL)] = 0.0
        scores = solve(both, seed, no_causes, 0.5).scores
        assert scores[1] == pytest.approx(scores[2])

    def test_an_isolated_seed_keeps_its_mass_and_isolated_nodes_get_none(self, solve: Solver) -> None:
        graph = typed_graph(3, 1, [(0, 1, TEMPORAL, 1.0)]).typed
        scores = solve(graph, np.array([0.0, 0.0, 0.0, 2.0]), NEUTRAL, 0.85).scores
        assert scores.tolist() == pytest.approx([0, 0, 0, 1])

    def test_what_reaches_a_dead_end_starts_again(self, solve: Solver) -> None:
        """Passages are never left here: half of what stands at one goes back to the seed, half comes to rest."""
        graph = typed_graph(1, 1, [(0, 1, MENTION, 1.0)]).typed
        one_way = EdgeFactors(np.ones(KINDS), np.zeros(KINDS))
        scores = solve(graph, np.array([1.0, 0.0]), one_way, 0.5).scores
        assert scores.tolist() == pytest.approx([2 / 3, 1 / 3])

    def test_an_edge_of_weight_zero_is_none(self, solve: Solver) -> None:
        graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 0.0), (0, 2, MENTION, 1.0)]).typed
        scores = solve(graph, np.array([1.0, 0, 0]), NEUTRAL, 0.5).scores
        assert scores[1] == 0
        assert scores[2] == pytest.approx(1 / 3)

    def test_a_multiplier_of_zero_removes_one_edge_of_two(self, solve: Solver) -> None:
        graph = typed_graph(3, 0, [(0, 1, TEMPORAL, 1.0), (0, 1, CAUSAL, 2.0), (0, 2, TEMPORAL, 1.0)]).typed
        multipliers = EdgeMultipliers(np.array([1]), np.array([0.0]))
        scores = solve(graph, np.array([1.0, 0, 0]), NEUTRAL, 0.5, multipliers=multipliers).scores
        assert EDGE_KINDS[graph.kind[1]] == CAUSAL
        assert scores[1] == pytest.approx(scores[2])

    def test_without_any_edge_the_walk_stays_at_its_seeds(self, solve: Solver) -> None:
        scores = solve(typed_graph(1, 2, []).typed, np.array([0.0, 3.0, 1.0]), NEUTRAL, 0.5).scores
        assert scores.tolist() == pytest.approx([0, 0.75, 0.25])

    def test_when_every_factor_is_zero_the_walk_stays_at_its_seeds(self, solve: Solver) -> None:
        graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 1.0), (0, 2, MENTION, 1.0)]).typed
        nothing = EdgeFactors(np.zeros(KINDS), np.zeros(KINDS))
        scores = solve(graph, np.array([1.0, 0, 1.0]), nothing, 0.7).scores
        assert scores.tolist() == pytest.approx([0.5, 0, 0.5])


class TestManyAtOnce:
    @given(st.data(), walks())
    def test_a_batch_is_its_walks_one_by_one(self, data: st.DataObject, given_walk: Given) -> None:
        graph, restart, factors, damping = given_walk
        other = np.array(data.draw(st.permutations(restart.tolist())))
        for found, alone in zip(
            walk_batch(graph, np.stack([restart, other]), factors, damping),
            [by_matrix(*given_walk), by_matrix(graph, other, factors, damping)],
            strict=True,
        ):
            assert far(found, alone) <= 0
        own = walk_batch(graph, np.stack([restart, other]), [factors, NEUTRAL], damping)
        assert far(own[0], by_matrix(*given_walk)) <= 0
        assert far(own[1], by_matrix(graph, other, NEUTRAL, damping)) <= 0

    def test_each_question_of_a_batch_needs_its_factors(self) -> None:
        with pytest.raises(ValueError, match="shorter"):
            walk_batch(typed_graph(2, 0, []).typed, np.ones((2, 2)), [NEUTRAL], 0.5)

    def test_threads_do_not_disturb_each_other(self) -> None:
        random = np.random.default_rng(3)
        pairs = random.integers(0, 100, (600, 2))
        graph = typed_graph(100, 0, [(int(a), int(b), TEMPORAL, 1.0) for a, b in pairs if a != b]).typed
        restarts = [np.eye(100)[n] for n in range(100)]
        for solve in (by_push, by_matrix):
            alone = [solve(graph, restart, NEUTRAL, 0.5).scores for restart in restarts]
            with ThreadPoolExecutor(4) as threads:
                together = list(threads.map(lambda restart: solve(graph, restart, NEUTRAL, 0.5).scores, restarts))  # noqa: B023
            assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


class TestChoice:
    def test_auto_pushes_from_few_seeds_on_a_large_graph(self) -> None:
        assert choose_engine(Engine.AUTO, SPARSE_SEEDS, LARGE_GRAPH) is Engine.PUSH
        assert choose_engine(Engine.AUTO, SPARSE_SEEDS + 1, LARGE_GRAPH) is Engine.MATRIX
        assert choose_engine(Engine.AUTO, SPARSE_SEEDS, LARGE_GRAPH - 1) is Engine.MATRIX

    def test_auto_takes_the_matrix_where_numba_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(push, "is_available", lambda: False)
        assert choose_engine(Engine.AUTO, 1, LARGE_GRAPH) is Engine.MATRIX

    @pytest.mark.parametrize("engine", [Engine.IGRAPH, Engine.MATRIX, Engine.PUSH])
    def test_an_engine_that_is_named_is_taken_and_told(self, engine: Engine) -> None:
        assert walk(typed_graph(1, 1, []).typed, np.ones(2), NEUTRAL, 0.5, engine).engine is engine

    def test_an_engine_may_be_named_in_words(self) -> None:
        assert choose_engine("push", 1, 1) is Engine.PUSH  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="engine 'pushy'"):
            choose_engine("pushy", 1, 1)  # type: ignore[arg-type]

    def test_what_auto_took_is_told(self) -> None:
        assert walk(typed_graph(1, 1, []).typed, np.ones(2), NEUTRAL, 0.5).engine is Engine.MATRIX

    def test_igraphs_object_is_built_for_the_reference_alone(self) -> None:
        graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 1.0)]).typed
        by_matrix(graph, np.ones(3), NEUTRAL, 0.5)
        by_push(graph, np.ones(3), NEUTRAL, 0.5)
        assert not {"undirected", "directed"} & vars(graph).keys()
        by_igraph(graph, np.ones(3), NEUTRAL, 0.5)
        assert "undirected" in vars(graph)


class TestRefused:
    graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 1.0)]).typed

    @pytest.mark.parametrize("restart", [[0.0, 0.0, 0.0], [np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0]])
    def test_a_restart_without_positive_weight(self, restart: list[float]) -> None:
        with pytest.raises(BadInput, match="no seed"):
            walk(self.graph, np.array(restart), NEUTRAL, 0.5)

    def test_a_seed_of_negative_weight(self) -> None:
        with pytest.raises(BadInput, match="negative"):
            walk(self.graph, np.array([1.0, -0.5, 0.0]), NEUTRAL, 0.5)

    def test_a_restart_of_another_length(self) -> None:
        with pytest.raises(BadInput, match="3 nodes"):
            walk(self.graph, np.ones(4), NEUTRAL, 0.5)

    @pytest.mark.parametrize("damping", [-0.1, 1.0, 1.5, np.nan])
    def test_a_damping_out_of_range(self, damping: float) -> None:
        with pytest.raises(BadInput, match="Damping"):
            walk(self.graph, np.ones(3), NEUTRAL, damping)

    @pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
    def test_a_factor_that_is_negative_or_no_number(self, factor: float) -> None:
        with pytest.raises(BadInput, match="factor"):
            walk(self.graph, np.ones(3), EdgeFactors(np.full(KINDS, factor), np.ones(KINDS)), 0.5)

    @pytest.mark.parametrize("edge", [-1, 1])
    def test_a_multiplier_on_an_edge_that_does_not_exist(self, edge: int) -> None:
        with pytest.raises(BadInput, match="multiplier"):
            walk(self.graph, np.ones(3), NEUTRAL, 0.5, multipliers=EdgeMultipliers(np.array([edge]), np.ones(1)))
