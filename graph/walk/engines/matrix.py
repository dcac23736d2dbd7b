"""The engine ``matrix``: power iteration with one sparse pattern for all questions, accelerated, and with a bound.

The published A = Σ w_r M_r is never built. The pattern of the arcs stands once; a question brings one multiplication of
the weights by the factors of their kinds, and its degrees are one small product of the degrees by kind.

A walk on undirected edges has real eigenvalues, and a directed one nearly so: then steps that go farther than the plain
iteration, and keep some of their last direction (second-order Richardson, Golub and Varga 1961), take half as many
products. Where that does not pay, the plain iteration, which gains a factor of ``damping`` at every step whatever the
graph, goes on from where it stands. No step calls BLAS: its threads wait for each other at every turn, and on a busy
machine take ten times as long as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.walk.engines.transition import arriving_weights, degrees
from graph.walk.factors import EdgeFactors

Floats = NDArray[np.floating[Any]]

TOLERANCE = 1e-5
"""L1 distance to the solution at which the iteration stops, unless told otherwise."""

RANKED = 3e-4
"""The distance at which it may stop where only the best passages are wanted: of 300 walks on the development data, one
had two of its best 20 in another order than the solution, and none of its best 10."""

_ROUNDING = 4
"""Units of rounding, relative to 1, that a product may be off by in L1."""
_STAGNATION = 8
"""Rounds without a smaller residual after which rounding is all that is left."""
_SINGLE = 1e12
"""Factors from 1 / _SINGLE to _SINGLE leave ample room for weights, in single precision."""
_WATCHED = 8
"""Steps in which acceleration has to gain as much as plain steps would."""


def solve(
    graph: TypedGraph,
    restart: NDArray[np.float64],
    factors: EdgeFactors,
    damping: float,
    *,
    dtype: type[np.floating[Any]] = np.float32,
    tolerance: float = TOLERANCE,
) -> tuple[NDArray[np.float64], float, int]:
    """Return the PageRank of every node, a bound on its L1 distance to the solution, and how many arcs it took.

    Args:
        graph: the graph.
        restart: sums to 1.
        factors: one multiplier a kind of edge and side.
        damping: probability of following an edge, in [0, 1).
        dtype: ``np.float32`` or ``np.float64``; the products are in it. Factors too far apart for single precision are
            computed in double.
        tolerance: L1 distance to the solution at which the walk is done. Rounding may end it earlier.
    """
    if not _fits_single(factors):
        dtype = np.float64
    inverse, dangling = _invert(degrees(graph, factors))
    product = _product(graph, factors, dtype)
    start = restart.astype(dtype)
    passed_on = (inverse * damping).astype(dtype)

    def follow(x: Floats) -> Floats:
        moved = product(x * passed_on)
        if len(dangling):
            moved += start * (dtype(damping) * x[dangling].sum())
        return moved

    scores, error, calls = _iterate(follow, dtype(1 - damping) * start, start, damping, tolerance)
    error += _ROUNDING * float(np.finfo(dtype).eps) / (1 - damping)
    return scores.astype(np.float64), error, calls * 2 * len(graph)


def _fits_single(factors: EdgeFactors) -> bool:
    """Tell whether no weight under the factors leaves the range of single precision."""
    values = np.concatenate([factors.from_entity, factors.from_passage])
    positive = values[values > 0]
    return not len(positive) or bool(positive.min() > 1 / _SINGLE and positive.max() < _SINGLE)


def _invert(total: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return 1 / degree, 0 for nodes without weight, and those nodes."""
    inverse = np.zeros_like(total)
    np.divide(1.0, total, out=inverse, where=total > 0)
    return inverse, np.flatnonzero(total <= 0)


def _product(graph: TypedGraph, factors: EdgeFactors, dtype: type[np.floating[Any]]) -> Callable[[Floats], Floats]:
    """Return the function that sends mass along all edges, both ways."""
    from scipy.sparse import csr_array

    arcs = graph.arriving
    weights = arriving_weights(graph, factors, dtype)
    arriving = csr_array((weights, arcs.node, arcs.starts), shape=(graph.n_nodes, graph.n_nodes))

    def product(y: Floats) -> Floats:
        moved: Floats = arriving @ y
        return moved

    return product


def _iterate(
    follow: Callable[[Floats], Floats], restarting: Floats, start: Floats, damping: float, tolerance: float
) -> tuple[Floats, float, int]:
    """Solve x = restarting + follow(x) to within ``tolerance``.

    A plain step contracts L1 distances by ``damping``: x is at most |step(x) - x| / (1 - damping) from the solution,
    and step(x) at most ``damping`` times that. Plain steps therefore end, at the tolerance or where rounding is all
    that is left; they take over once the accelerated ones have gained less than they promise.

    Returns:
        The scores, a bound on their distance to the solution, and how often ``follow`` was called.
    """
    stretch = 2 / (1 + math.sqrt(1 - damping**2))
    x, step, calls, best, since_best, watched = start, np.zeros_like(start), 0, np.inf, 0, np.inf
    while True:
        residual = follow(x)
        residual += restarting
        residual -= x
        calls += 1
        distance = float(np.abs(residual).sum())
        error = distance * damping / (1 - damping)
        if calls % _WATCHED == 1:
            if stretch > 1 and distance > watched * damping**_WATCHED:
                stretch, best = 1.0, np.inf
            watched = distance
        since_best = 0 if distance < best else since_best + 1
        best = min(best, distance)
        if error <= tolerance or since_best >= _STAGNATION:
            return np.maximum(x + residual, 0), error, calls
        step *= stretch - 1
        step += residual * (stretch if calls > 1 else 1.0)
        x = x + step
