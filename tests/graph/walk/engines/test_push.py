from __future__ import annotations

import subprocess
import sys
from collections import deque
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.construction.edges import EDGE_KINDS, EdgeKind, TypedGraph
from graph.errors import WorkspaceDamaged
from graph.relations import PassageLink
from graph.schema import RelationType
from graph.walk.engines import matrix, push
from graph.walk.engines.compiled import _compiled
from graph.walk.factors import EdgeFactors, edge_factors
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


def test_the_cost_does_not_grow_with_what_lies_elsewhere() -> None:
    arcs = []
    for copies in (1, 10):
        graph = random_graph(0, copies)
        arcs.append(push.solve(graph, seeds_of(graph, 0, 7), NEUTRAL, 0.5, threshold=1e-5)[2])
    assert arcs[0] == arcs[1] > 0


@pytest.mark.parametrize("damping", [0.3, 0.5, 0.75, 0.85])
def test_it_follows_fewer_arcs_than_plain_pushes_for_less_error(
    damping: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(0, copies=5)
    _, error, arcs = push.solve(graph, seeds_of(graph, 0, 7), NEUTRAL, damping, threshold=1e-6)
    monkeypatch.setattr(push, "_STEPS", (1,))
    monkeypatch.setattr(push, "_stretch", lambda _: 1.0)
    _, plain_error, plain_arcs = push.solve(graph, seeds_of(graph, 0, 7), NEUTRAL, damping, threshold=1e-6)
    assert arcs < 0.9 * plain_arcs
    assert error < 1.2 * plain_error


@given(st.floats(0, 1, exclude_max=True))
def test_a_push_never_adds_to_what_is_left(damping: float) -> None:
    stretch = push._stretch(damping)
    assert 1 <= stretch < 2
    assert (stretch - 1) + damping * stretch <= 1


def dense_push(
    graph: TypedGraph, restart: NDArray[np.float64], factors: EdgeFactors, damping: float, threshold: float
) -> NDArray[np.float64]:
    """Push with a number for every node, arc by arc in the order of the edges."""
    by_kind = np.stack([factors.from_entity, factors.from_passage])
    scores, residual, waiting, touched = (
        np.zeros(graph.n_nodes),
        np.zeros(graph.n_nodes),
        deque[int](),
        dict[int, None](),
    )

    def add(u: int, mass: float, least: float) -> None:
        touched[u] = None
        residual[u] += mass
        if abs(residual[u]) > least * max(1, graph.n_arcs[u]) and u not in waiting:
            waiting.append(u)

    returned = 1.0
    for least in (16 * threshold, 4 * threshold, threshold):
        for u in touched:
            add(u, 0.0, least)
        while returned or waiting:
            for u in np.flatnonzero(restart).tolist():
                add(u, restart[u] * returned, least)
            returned = 0.0
            while waiting:
                u = waiting.popleft()
                side = by_kind[int(u >= graph.n_entities)]
                arcs = [
                    (int(column.node[e]), column.weight[e] * side[column.kind[e]])
                    for column in (graph.forward, graph.backward)
                    for e in range(column.starts[u], column.starts[u + 1])
                ]
                degree = sum(weight for _, weight in arcs)
                mass = residual[u] * (push._stretch(damping) if degree > 0 else 1.0)
                residual[u] -= mass
                scores[u] += (1 - damping) * mass
                returned += 0.0 if degree > 0 else damping * mass
                for v, weight in arcs if degree > 0 else ():
                    add(v, damping * mass * weight / degree, least)
    scores = np.maximum(scores + (1 - damping) * residual, 0)
    return np.asarray(scores / scores.sum())


@settings(max_examples=60)
@given(walks(), st.sampled_from([1e-2, 1e-4]), st.integers(1, 4))
def test_a_table_of_what_is_touched_gives_what_a_number_for_every_node_does(
    given_walk: Given, threshold: float, exponent: int
) -> None:
    """However small the table is at first."""
    graph, restart, factors, damping = given_walk
    restart = restart / restart.sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(push, "_LEAST_EXPONENT", exponent)
        patch.setattr(push, "_spare", [])
        sparse = SparseVector.of(restart)
        scores, _, _ = push.solve(graph, sparse, factors, damping, threshold=threshold)
        again, _, _ = push.solve(graph, sparse, factors, damping, threshold=threshold)
    expected = dense_push(graph, restart, factors, damping, threshold)
    assert scores.dense() / scores.values.sum() == pytest.approx(expected, abs=1e-9)
    assert np.array_equal(scores.dense(), again.dense()), "a table that was used is as good as a new one"


def test_its_memory_does_not_grow_with_what_lies_elsewhere() -> None:
    touched = []
    for copies in (1, 20):
        graph = random_graph(0, copies)
        touched.append(len(push.solve(graph, seeds_of(graph, 0, 7), NEUTRAL, 0.5, threshold=1e-3)[0].places))
    assert touched[0] == touched[1] <= N_ENTITIES + N_PASSAGES


class TestDamage:
    """The numbers of a large snapshot are not looked at before they are used; compiled code must not follow them."""

    @pytest.mark.parametrize(
        ("column", "value"),
        [("node", -1), ("node", 10**6), ("kind", 255), ("starts", -1), ("starts", 10**9)],
    )
    @pytest.mark.parametrize("side", ["forward", "backward"])
    def test_arcs_that_lead_nowhere_are_an_error(self, side: str, column: str, value: int) -> None:
        graph = random_graph(0)
        arcs = getattr(graph.arcs, side)
        wrong = getattr(arcs, column).copy()
        wrong[len(wrong) // 3] = value
        damaged = graph.arcs._replace(**{side: arcs._replace(**{column: wrong})})
        object.__setattr__(graph, "arcs", damaged)
        everywhere = SparseVector.of(np.full(graph.n_nodes, 1 / graph.n_nodes))
        with pytest.raises(WorkspaceDamaged, match="lead nowhere"):
            push.solve(graph, everywhere, NEUTRAL, 0.5, threshold=1e-9)
        sound = random_graph(0)
        scores, _, _ = push.solve(sound, seeds_of(sound, 0), NEUTRAL, 0.5)
        assert scores.values.sum() == pytest.approx(1, abs=0.1), "the next walk starts from nothing"


def test_seeds_without_any_edge_end_the_walk_however_high_the_damping() -> None:
    graph = typed_graph(200, 0, []).typed
    scores, error, _ = push.solve(graph, SparseVector.of(np.full(200, 1 / 200)), NEUTRAL, 0.999, threshold=1e-9)
    assert scores.dense().tolist() == pytest.approx([1 / 200] * 200)
    assert error < 1e-5


def test_factors_of_zero_leave_no_way_out_of_a_node() -> None:
    graph = typed_graph(1, 1, [(0, 1, MENTION, 1.0)]).typed
    nothing = EdgeFactors(np.zeros(len(EDGE_KINDS)), np.zeros(len(EDGE_KINDS)))
    scores, _, _ = push.solve(graph, seeds_of(graph, 0), nothing, 0.5, threshold=1e-12)
    assert scores.dense().tolist() == pytest.approx([1.0, 0.0])


class TestWithoutNumba:
    def test_the_engine_says_what_to_install(self) -> None:
        program = """
import sys
sys.modules["numba"] = None
import numpy as np
from graph.walk.engines import push
from graph.errors import DependencyMissing
try:
    push.compiled()
except DependencyMissing as missing:
    print(missing)
"""
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert "mara-rag[push]" in said
        assert "engine matrix" in said

    def test_importing_the_walk_does_not_import_it(self) -> None:
        program = """
import sys
import graph.walk.pagerank
print(sorted({"numba", "igraph", "scipy"} & sys.modules.keys()))
"""
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert said.strip() == "[]"


def test_where_no_cache_can_be_kept_the_loop_is_compiled_all_the_same() -> None:
    def double(x: float) -> float:
        return 2 * x

    nowhere = FunctionType(double.__code__.replace(co_filename="<nowhere>"), {})
    assert _compiled(nowhere)(21.0) == 42.0
