from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graph.construction.edges import EDGE_KINDS, EdgeKind, TypedGraph
from graph.relations import PassageLink
from graph.schema import RelationType
from graph.walk.engines import matrix
from graph.walk.factors import EdgeFactors, edge_factors
from tests.builders import typed_graph

TEMPORAL = EdgeKind(RelationType.TEMPORAL)
TITLE = EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)
MENTION = EdgeKind(RelationType.PERIPHERAL, PassageLink.MENTION)
NEUTRAL = edge_factors(None)


@pytest.fixture(scope="module")
def graph() -> TypedGraph:
    random = np.random.default_rng(1)
    pairs = random.integers(0, 300, (3_000, 2))
    return typed_graph(
        300,
        0,
        [(int(a), int(b), TEMPORAL, float(w)) for (a, b), w in zip(pairs, random.random(3_000), strict=True) if a != b],
    ).typed


def test_a_smaller_tolerance_is_a_smaller_error_down_to_rounding(graph: TypedGraph) -> None:
    restart = np.eye(300)[0]
    exact = matrix.solve(graph, restart, NEUTRAL, 0.7, dtype=np.float64, tolerance=1e-13)[0]
    types: list[type[np.floating[Any]]] = [np.float32, np.float64]
    for dtype in types:
        apart = []
        for tolerance in (1e-1, 1e-3, 1e-5):
            scores, error, _ = matrix.solve(graph, restart, NEUTRAL, 0.7, dtype=dtype, tolerance=tolerance)
            apart.append(float(np.abs(scores - exact).sum()))
            assert apart[-1] <= error <= tolerance + 1e-5
        assert apart == sorted(apart, reverse=True)
    scores, error, _ = matrix.solve(graph, restart, NEUTRAL, 0.9, tolerance=0.0)
    assert 0 < error < 1e-3, "single precision stops where rounding is all that is left"
    assert scores.sum() == pytest.approx(1, abs=1e-4)


def test_a_graph_on_which_acceleration_fails_is_solved_by_plain_steps() -> None:
    """Passages send all to one entity and get all from the other: a cycle, whose spectrum is a circle."""
    graph = typed_graph(2, 1, [(0, 2, TITLE, 0.05), (1, 2, MENTION, 0.05)]).typed
    from_entity, from_passage = np.zeros(len(EDGE_KINDS)), np.zeros(len(EDGE_KINDS))
    from_entity[EDGE_KINDS.index(MENTION)] = 1.0
    from_passage[EDGE_KINDS.index(TITLE)] = 1.0
    restart = np.array([0.0, 1.0, 0.0])
    scores, error, _ = matrix.solve(
        graph, restart, EdgeFactors(from_entity, from_passage), 0.99, dtype=np.float64, tolerance=1e-9
    )
    assert error <= 1e-9 + 1e-12
    # The three nodes pass all they have on, around the circle.
    assert scores.tolist() == pytest.approx(np.array([0.99**2, 1, 0.99]) / (1 + 0.99 + 0.99**2))


def test_factors_beyond_single_precision_are_walked_in_double() -> None:
    for factor in [1e-46, 1e39]:
        graph = typed_graph(3, 0, [(0, 1, TEMPORAL, 1.0), (1, 2, TEMPORAL, 1.0)]).typed
        steep = EdgeFactors(np.full(len(EDGE_KINDS), factor), np.full(len(EDGE_KINDS), factor))
        restart = np.eye(3)[0]
        scores, _, _ = matrix.solve(graph, restart, steep, 0.5)
        assert scores == pytest.approx(matrix.solve(graph, restart, edge_factors(None), 0.5)[0], abs=1e-5)
