"""The walk as it was published: a copy of the igraph graph, re-weighted edge by edge in Python, for every question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import EDGE_KINDS, TypedGraph
from graph.walk.engines.reference import on_one_thread
from graph.walk.factors import EdgeFactors


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
