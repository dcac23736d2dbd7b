"""The ways to walk that are measured side by side, behind one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.published import factor_by_relation, published_graph, published_walk
from graph.construction.edges import TypedGraph
from graph.walk.engines import matrix
from graph.walk.engines.reference import PRPACK_ERROR
from graph.walk.factors import EdgeFactors
from graph.walk.pagerank import Engine, Walk, walk

Answer = Callable[[TypedGraph, Any, NDArray[np.float64], EdgeFactors, float], Walk]

REFERENCE = "igraph"
PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Walker:
    """One way to walk.

    Attributes:
        prepare: derives from the graph what the way needs once, whatever the question; told whether factors are
            symmetric.
        answer: walks: graph, what was prepared, restart, factors, damping.
    """

    prepare: Callable[[TypedGraph, bool], Any]
    answer: Answer


def _by_engine(
    engine: Engine, graph: TypedGraph, _: Any, restart: NDArray[np.float64], factors: EdgeFactors, damping: float
) -> Walk:
    return walk(graph, restart, factors, damping, engine)


def _double_matrix(
    graph: TypedGraph, _: Any, restart: NDArray[np.float64], factors: EdgeFactors, damping: float
) -> Walk:
    scores, error, arcs = matrix.solve(graph, restart / restart.sum(), factors, damping, dtype=np.float64)
    return Walk.of(scores, Engine.MATRIX, error, arcs)


def _as_published(
    graph: TypedGraph, network: Any, restart: NDArray[np.float64], factors: EdgeFactors, damping: float
) -> Walk:
    scores = published_walk(network, restart, factor_by_relation(factors), damping)
    return Walk.of(scores, Engine.IGRAPH, PRPACK_ERROR)


def _arriving(graph: TypedGraph, symmetric: bool) -> Any:
    return graph.arriving, graph.kind_degrees


def _arcs(graph: TypedGraph, symmetric: bool) -> Any:
    return graph.arcs


WALKERS: Mapping[str, Walker] = {
    PUBLISHED: Walker(lambda graph, symmetric: published_graph(graph), _as_published),
    REFERENCE: Walker(
        lambda graph, symmetric: graph.undirected if symmetric else graph.directed, partial(_by_engine, Engine.IGRAPH)
    ),
    "matrix64": Walker(_arriving, _double_matrix),
    "matrix": Walker(_arriving, partial(_by_engine, Engine.MATRIX)),
    "push": Walker(_arcs, partial(_by_engine, Engine.PUSH)),
    "auto": Walker(_arcs, partial(_by_engine, Engine.AUTO)),
}
"""By name, the slowest first. ``matrix64`` is the engine ``matrix`` in 64-bit numbers; ``auto`` takes one of ours."""
