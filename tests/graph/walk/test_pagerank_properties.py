"""What holds of the walk on any graph, whichever engine does it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings

from graph.construction.edges import EDGE_KINDS, TypedGraph
from graph.walk.factors import EdgeFactors
from graph.walk.pagerank import Walk
from graph.walk.settings import Engine
from tests.builders import typed_graph
from tests.random_walks import Given, walks
from tests.walking import NEUTRAL, TEMPORAL, Solver, Vector, by_matrix, by_push, every

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
