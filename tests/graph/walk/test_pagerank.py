"""The walk on small graphs worked out by hand, which engine is chosen for it, and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings

from graph.construction.edges import EDGE_KINDS, TypedGraph
from graph.errors import BadInput
from graph.schema import RelationFactors
from graph.walk.engines import push
from graph.walk.factors import EdgeFactors, edge_factors
from graph.walk.pagerank import LARGE_FOR_SHORT_WALK, LARGE_GRAPH, SHORT_WALK, SPARSE_SEEDS, Walk, choose_engine, walk
from graph.walk.settings import Engine, FactorPolicy
from graph.walk.sparse import SparseVector
from tests.builders import typed_graph
from tests.random_walks import Given, walks
from tests.walking import CAUSAL, KINDS, NEUTRAL, TEMPORAL, Solver, Vector, by_matrix, by_push, every, exact


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


class TestChoice:
    def test_auto_pushes_from_few_seeds_on_a_large_graph(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for damping, large in ((0.75, LARGE_GRAPH), (SHORT_WALK, LARGE_FOR_SHORT_WALK)):
            assert choose_engine(Engine.AUTO, SPARSE_SEEDS, large, damping) is Engine.PUSH
            assert choose_engine(Engine.AUTO, SPARSE_SEEDS + 1, large, damping) is Engine.MATRIX
            assert choose_engine(Engine.AUTO, SPARSE_SEEDS, large - 1, damping) is Engine.MATRIX
        monkeypatch.setattr(push, "is_available", lambda: False)
        assert choose_engine(Engine.AUTO, 1, LARGE_GRAPH, 0.75) is Engine.MATRIX

    def test_the_engine_that_was_taken_is_told(self) -> None:
        graph = typed_graph(1, 1, []).typed
        assert walk(graph, np.ones(2), NEUTRAL, 0.5, Engine.PUSH).engine is Engine.PUSH
        assert walk(graph, np.ones(2), NEUTRAL, 0.5).engine is Engine.MATRIX
        assert choose_engine("push", 1, 1, 0.5) is Engine.PUSH  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="engine 'pushy'"):
            choose_engine("pushy", 1, 1, 0.5)  # type: ignore[arg-type]


def test_restarts_dampings_and_factors_that_are_none_are_refused() -> None:
    graph = typed_graph(2, 1, [(0, 1, TEMPORAL, 1.0)]).typed
    for restart, said in [
        ([0.0, 0.0, 0.0], "no seed"),
        ([np.nan, 0.0, 0.0], "no seed"),
        ([np.inf, 0.0, 0.0], "no seed"),
        ([1.0, -0.5, 0.0], "negative"),
        ([1.0] * 4, "3 nodes"),
    ]:
        with pytest.raises(BadInput, match=said):
            walk(graph, np.array(restart), NEUTRAL, 0.5)
    with pytest.raises(BadInput, match=r"\(4,\)"):
        walk(graph, SparseVector.of(np.ones(4)), NEUTRAL, 0.5)
    for damping in (-0.1, 1.0, 1.5, np.nan):
        with pytest.raises(BadInput, match="Damping"):
            walk(graph, np.ones(3), NEUTRAL, damping)
    for factor in (-1.0, np.nan, np.inf):
        with pytest.raises(BadInput, match="factor"):
            walk(graph, np.ones(3), EdgeFactors(np.full(KINDS, factor), np.ones(KINDS)), 0.5)


few = settings(max_examples=15)


def far(one: Walk, other: Walk) -> float:
    """How far two walks are apart beyond what they admit."""
    return float(np.abs(one.scores - other.scores).sum() - one.error - other.error)


def dense_pagerank(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Walk:
    """PR(v) = (1-d) r(v) + d Σ_u PR(u) w(u,v) / Σ_x w(u,x), solved as a linear system; dangling nodes restart."""
    edge_weight = graph.weight.astype(np.float64)
    weight = np.zeros((graph.n_nodes, graph.n_nodes))
    for row, kind in enumerate(graph.kind):
        back = factors.from_passage if EDGE_KINDS[kind].link else factors.from_entity
        weight[graph.source[row], graph.target[row]] += edge_weight[row] * factors.from_entity[kind]
        weight[graph.target[row], graph.source[row]] += edge_weight[row] * back[kind]
    restart = restart / restart.sum()
    out = weight.sum(axis=1, keepdims=True)
    transition = np.where(out > 0, weight / np.where(out > 0, out, 1), restart)
    scores = np.linalg.solve(np.eye(graph.n_nodes) - damping * transition.T, (1 - damping) * restart)
    return Walk.of(np.asarray(scores), Engine.IGRAPH, 1e-9)


@every
class TestAnyGraph:
    @few
    @given(walks())
    def test_scores_sum_to_one_and_are_as_near_as_they_say(self, solve: Solver, given_walk: Given) -> None:
        walked = solve(*given_walk)
        # Single precision cannot do better than the stated error where nearly all mass stays on its way.
        bound = 1e-5 if given_walk[-1] < 0.99 else max(1e-5, walked.error)
        assert walked.scores.sum() == pytest.approx(1, abs=bound)
        assert (walked.scores >= 0).all()
        assert far(walked, dense_pagerank(*given_walk)) <= 0

    @few
    @given(walks(symmetric=True))
    def test_equal_factors_on_both_sides_are_the_undirected_walk(self, solve: Solver, given_walk: Given) -> None:
        graph, restart, factors, damping = given_walk
        scores = graph.undirected.personalized_pagerank(
            weights=(graph.weight * factors.from_entity[graph.kind]).tolist(), reset=restart.tolist(), damping=damping
        )
        undirected = Walk.of(np.array(scores), Engine.IGRAPH, 1e-9)
        assert far(solve(*given_walk), undirected) <= 0
        nearly = EdgeFactors(factors.from_entity, factors.from_passage * (1 + 1e-12))
        assert far(solve(graph, restart, nearly, damping), undirected) <= 0


def test_threads_do_not_disturb_each_other() -> None:
    random = np.random.default_rng(3)
    pairs = random.integers(0, 100, (600, 2))
    graph = typed_graph(100, 0, [(int(a), int(b), TEMPORAL, 1.0) for a, b in pairs if a != b]).typed
    restarts = [np.eye(100)[n] for n in range(100)]
    for solve in (by_push, by_matrix):
        alone = [solve(graph, restart, NEUTRAL, 0.5).scores for restart in restarts]
        with ThreadPoolExecutor(4) as threads:
            together = list(threads.map(lambda restart: solve(graph, restart, NEUTRAL, 0.5).scores, restarts))  # noqa: B023
        assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
