from __future__ import annotations

import sys
from itertools import product
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.edges import EdgeKind, TypedGraph
from graph.errors import DependencyMissing, WorkspaceDamaged
from graph.relations import PassageLink
from graph.schema import RelationType
from graph.walk.engines import matrix, push
from graph.walk.engines.compiled import _compiled
from graph.walk.factors import edge_factors
from graph.walk.sparse import SparseVector
from tests.builders import typed_graph
from tests.random_walks import Given, walks

TEMPORAL = EdgeKind(RelationType.TEMPORAL)
MENTION = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)
NEUTRAL = edge_factors(None)
N_ENTITIES, N_PASSAGES = 200, 80


def random_graph(seed: int, copies: int = 1) -> TypedGraph:
    """Return a random graph, and beside it as many more that nothing links with it."""
    random = np.random.default_rng(seed)
    edges: list[tuple[int, int, EdgeKind, float]] = []
    for copy in range(copies):
        for a, b in random.integers(0, N_ENTITIES, (700, 2)):
            if a != b:
                edges.append((copy * N_ENTITIES + int(a), copy * N_ENTITIES + int(b), TEMPORAL, 1.0))
        for _ in range(500):
            entity = copy * N_ENTITIES + int(random.integers(N_ENTITIES))
            passage = copies * N_ENTITIES + copy * N_PASSAGES + int(random.integers(N_PASSAGES))
            edges.append((entity, passage, MENTION, float(random.random())))
    return typed_graph(copies * N_ENTITIES, copies * N_PASSAGES, edges).typed


def seeds_of(graph: TypedGraph, *nodes: int) -> SparseVector:
    return SparseVector.of_mapping(graph.n_nodes, dict.fromkeys(nodes, 1 / len(nodes)))


@settings(max_examples=25)
@given(st.integers(0, 50), st.sampled_from([1e-3, 1e-5, 1e-7]), st.sampled_from([0.3, 0.5, 0.85]))
def test_what_is_left_at_a_node_is_at_most_the_threshold_an_arc(seed: int, threshold: float, damping: float) -> None:
    """The error is what is left, in all: at most the threshold times all arcs."""
    graph = random_graph(seed)
    scores, error, _ = push.solve(graph, seeds_of(graph, 0, 7), NEUTRAL, damping, threshold=threshold)
    assert error <= 2 * damping * threshold * graph.n_arcs.sum() + 1e-11
    exact = matrix.solve(graph, seeds_of(graph, 0, 7).dense(), NEUTRAL, damping, dtype=np.float64, tolerance=1e-12)[0]
    assert np.abs(scores.dense() - exact).sum() <= error


def test_cost_and_memory_do_not_grow_with_what_lies_elsewhere() -> None:
    walked = []
    for copies in (1, 10):
        graph = random_graph(0, copies)
        scores, _, arcs = push.solve(graph, seeds_of(graph, 0, 7), NEUTRAL, 0.5, threshold=1e-5)
        walked.append((arcs, len(scores.places)))
    assert walked[0] == walked[1] > (0, 0)
    assert walked[0][1] <= N_ENTITIES + N_PASSAGES


@given(st.floats(0, 1, exclude_max=True))
def test_a_push_never_adds_to_what_is_left(damping: float) -> None:
    stretch = push._stretch(damping)
    assert 1 <= stretch < 2
    assert (stretch - 1) + damping * stretch <= 1


@settings(max_examples=25)
@given(walks(), st.sampled_from([1e-2, 1e-4]), st.integers(1, 4))
def test_a_table_gives_the_same_however_small_it_is(given_walk: Given, threshold: float, exponent: int) -> None:
    graph, restart, factors, damping = given_walk
    sparse = SparseVector.of(restart / restart.sum())
    expected, _, _ = push.solve(graph, sparse, factors, damping, threshold=threshold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(push, "_LEAST_EXPONENT", exponent)
        scores, _, _ = push.solve(graph, sparse, factors, damping, threshold=threshold)
        assert np.array_equal(scores.dense(), expected.dense())


def test_arcs_that_lead_nowhere_are_an_error() -> None:
    """The numbers of a large snapshot are not looked at before they are used; compiled code must not follow them."""
    sound, damaged = random_graph(0), random_graph(0)
    everywhere = SparseVector.of(np.full(sound.n_nodes, 1 / sound.n_nodes))
    columns = [("node", -1), ("node", 10**6), ("kind", 255), ("starts", -1), ("starts", 10**9)]
    for side, (column, value) in product(("forward", "backward"), columns):
        arcs = getattr(sound.arcs, side)
        wrong = getattr(arcs, column).copy()
        wrong[len(wrong) // 3] = value
        wrong.flags.writeable = False
        object.__setattr__(damaged, "arcs", sound.arcs._replace(**{side: arcs._replace(**{column: wrong})}))
        with pytest.raises(WorkspaceDamaged, match="lead nowhere"):
            push.solve(damaged, everywhere, NEUTRAL, 0.5, threshold=1e-9)
        scores, _, _ = push.solve(sound, seeds_of(sound, 0), NEUTRAL, 0.5)
        assert scores.values.sum() == pytest.approx(1, abs=0.1), "the next walk starts from nothing"


def test_seeds_without_any_edge_end_the_walk_however_high_the_damping() -> None:
    graph = typed_graph(200, 0, []).typed
    scores, error, _ = push.solve(graph, SparseVector.of(np.full(200, 1 / 200)), NEUTRAL, 0.99, threshold=1e-9)
    assert scores.dense().tolist() == pytest.approx([1 / 200] * 200)
    assert error < 1e-5


def test_without_numba_the_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graph.walk.engines.compiled", None)
    monkeypatch.delattr("graph.walk.engines.compiled")
    with pytest.raises(DependencyMissing, match=r"pip install 'mara-rag\[push\]'"):
        push.compiled()
    assert not push.is_available()


def test_where_no_cache_can_be_kept_the_loop_is_compiled_all_the_same() -> None:
    def double(x: float) -> float:
        return 2 * x

    nowhere = FunctionType(double.__code__.replace(co_filename="<nowhere>"), {})
    assert _compiled(nowhere)(21.0) == 42.0
