"""What the tests of the walk share: its engines as they are and as exact as they can be, and some kinds of edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.construction.edges import EDGE_KINDS, EdgeKind, TypedGraph
from graph.relations import PassageLink
from graph.schema import RelationType
from graph.walk.engines import matrix, push
from graph.walk.factors import EdgeFactors, edge_factors
from graph.walk.pagerank import Walk, walk
from graph.walk.settings import Engine
from graph.walk.sparse import SparseVector
from tests.cases import mostly_slow

Vector = NDArray[np.float64]
Solver = Callable[..., Walk]

TEMPORAL, CAUSAL = EdgeKind(RelationType.TEMPORAL), EdgeKind(RelationType.CAUSALITY)
MENTION = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)
NEUTRAL = edge_factors(None)
KINDS = len(EDGE_KINDS)


def by_igraph(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Walk:
    return walk(graph, restart, factors, damping, Engine.IGRAPH)


def by_matrix(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Walk:
    return walk(graph, restart, factors, damping, Engine.MATRIX)


def by_push(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Walk:
    return walk(graph, restart, factors, damping, Engine.PUSH)


def by_exact_matrix(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Walk:
    scores, error, arcs = matrix.solve(
        graph,
        restart / restart.sum(),
        factors,
        damping,
        dtype=np.float64,
        tolerance=1e-12,
    )
    return Walk.of(scores, Engine.MATRIX, error, arcs)


def by_exact_push(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Walk:
    scores, error, arcs = push.solve(graph, SparseVector.of(restart / restart.sum()), factors, damping, threshold=1e-13)
    return Walk(scores, Engine.PUSH, error, arcs)


EXACT: dict[str, Solver] = {"igraph": by_igraph, "matrix": by_exact_matrix, "push": by_exact_push}
AS_THEY_ARE: dict[str, Solver] = {"matrix as it is": by_matrix, "push as it is": by_push}
exact = pytest.mark.parametrize("solve", EXACT.values(), ids=EXACT)
every = pytest.mark.parametrize("solve", mostly_slow({**EXACT, **AS_THEY_ARE}, len(EXACT)))
