"""The transition weights that the engines share, made from typed edges and factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.walk.factors import EdgeFactors

Weights = NDArray[np.floating[Any]]


def arc_weights(
    graph: TypedGraph, factors: EdgeFactors, dtype: type[np.floating[Any]] = np.float64
) -> tuple[Weights, Weights]:
    """Return every edge's weight under the factors, left from its source and from its target; one array if alike."""

    def weighed(by_kind: NDArray[np.float64]) -> Weights:
        weights = by_kind.astype(dtype).take(graph.kind)
        weights *= graph.weight
        return weights

    forward = weighed(factors.from_source)
    return forward, forward if factors.symmetric else weighed(factors.from_target)


def arriving_weights(graph: TypedGraph, factors: EdgeFactors, dtype: type[np.floating[Any]]) -> Weights:
    """Return the weight of every arc of `TypedGraph.arriving` under the factors."""
    by_kind = np.concatenate([factors.from_source, factors.from_target]).astype(dtype)
    weights: Weights = by_kind.take(graph.arriving.kind)
    weights *= graph.arriving.weight
    return weights


def degrees(graph: TypedGraph, factors: EdgeFactors) -> NDArray[np.float64]:
    """Return the weight that leaves each node under the factors: one product of the degrees by kind."""
    by_kind, first = graph.kind_degrees, graph.n_entities
    # Not by `@`: the threads of BLAS cost more than they save.
    sides = ((by_kind[:first], factors.from_entity), (by_kind[first:], factors.from_passage))
    return np.concatenate([np.einsum("uk,k->u", degrees, factor) for degrees, factor in sides])
