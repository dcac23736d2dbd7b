"""The ways to walk that are measured side by side, behind one form.

The published one copies the igraph graph and re-weights it edge by edge in Python, for every question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import EDGE_KINDS, TypedGraph
from graph.walk.engines import matrix
from graph.walk.engines.reference import PRPACK_ERROR, on_one_thread
from graph.walk.factors import EdgeFactors
from graph.walk.pagerank import Walk, walk
from graph.walk.settings import Engine

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


def published_graph(graph: TypedGraph) -> Any:
    """Return an igraph graph whose edges carry ``weight`` and ``relation`` as attributes."""
    import igraph

    network = igraph.Graph(n=graph.n_nodes, edges=np.column_stack([graph.source, graph.target]))
    network.es["weight"] = graph.weight.tolist()
    network.es["relation"] = [EDGE_KINDS[kind].relation.value for kind in graph.kind.tolist()]
    return network


def factor_by_relation(factors: EdgeFactors) -> Mapping[str, float]:
    """Return one factor a relation type; the published way knows neither sides nor links.

    Raises:
        ValueError: the factors differ within a relation type, or by side.
    """
    found: dict[str, float] = {}
    for kind, by_entity, by_passage in zip(EDGE_KINDS, factors.from_entity, factors.from_passage, strict=True):
        if found.setdefault(kind.relation.value, float(by_entity)) != by_entity or by_entity != by_passage:
            raise ValueError(f"{kind.relation} has more than one factor")
    return found


def published_walk(
    network: Any, restart: NDArray[np.float64], factor: Mapping[str, float], damping: float
) -> NDArray[np.float64]:
    """Return the PageRank of every node.

    PRPACK runs on one thread, as the reference engine lets it: on a busy machine two are slower.
    """
    modified = network.copy()
    for edge in modified.es:
        edge["weight"] = edge["weight"] * factor[edge["relation"]]
    with on_one_thread():
        scores = modified.personalized_pagerank(
            weights="weight", reset=restart.tolist(), damping=damping, directed=False, implementation="prpack"
        )
    return np.asarray(scores)


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
