"""The engine ``matrix``: power iteration with one sparse pattern for all questions, accelerated and with a bound.

001's A = Σ w_r M_r is never built. The pattern of the edges stands once, as the sources and targets that the graph
holds anyway; a question brings one multiplication of the weights by the factors of their kinds, and its degrees are
one small product of the degrees by kind.

The walk's operator has its spectrum on the real line, or close to it, between -damping and damping. Chebyshev's
semi-iteration (Golub and Varga 1961) then needs about half the products of the plain iteration. Where it does not pay,
the plain one, which gains a factor of ``damping`` at every step whatever the graph, goes on from where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.engines.transition import arc_changes, degrees
from graph.factors import EdgeFactors, EdgeMultipliers
from graph.typed_graph import TypedGraph

Floats = NDArray[np.floating[Any]]

TOLERANCE = 1e-5
"""L1 distance to the solution at which the iteration stops, unless told otherwise."""

_ROUNDING = 4
"""Units of rounding, relative to 1, that a product may be off by in L1."""
_STAGNATION = 8
"""Products without a smaller residual after which rounding is all that is left."""
_SLACK = 4.0
"""How far the accelerated residual may lie above what the plain iteration promises, before that takes over."""


def solve(
    graph: TypedGraph,
    restarts: NDArray[np.float64],
    factors: EdgeFactors,
    damping: float,
    *,
    multipliers: EdgeMultipliers | None = None,
    dtype: type[np.floating[Any]] = np.float32,
    tolerance: float = TOLERANCE,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return PageRank for several restarts at once, how far off it is at most, and how many arcs it took.

    Args:
        graph: the graph.
        restarts: shape (n_questions, n_nodes), each row summing to 1.
        factors: one multiplier a kind of edge and side, the same for all rows.
        damping: probability of following an edge, in [0, 1).
        multipliers: beside the factors, for single edges.
        dtype: ``np.float32`` or ``np.float64``; the products are in it.
        tolerance: L1 distance to the solution at which a row is done. Rounding may end the iteration earlier.

    Returns:
        Scores of shape (n_questions, n_nodes); for each row a bound on its L1 distance to the solution; and how many
        arcs were followed, for all rows together.
    """
    changes = arc_changes(graph, factors, multipliers)
    inverse, dangling = _invert(degrees(graph, factors, changes))
    follow = _product(graph, factors, multipliers, dtype)
    alone = len(restarts) == 1
    restart = np.ascontiguousarray(restarts[0] if alone else restarts.T, dtype=dtype)
    following = (inverse * damping).astype(dtype)[slice(None) if alone else (slice(None), None)]
    restarting = dtype(1 - damping) * restart

    def step(x: Floats) -> Floats:
        moved = follow(x * following)
        moved += restarting
        if len(dangling):
            moved += restart * (dtype(damping) * x[dangling].sum(axis=0))
        return moved

    scores, error, steps = _iterate(step, restart, damping, tolerance)
    rows = np.atleast_2d(scores.T).astype(np.float64, order="C")
    error = np.atleast_1d(error) + _ROUNDING * np.finfo(dtype).eps / (1 - damping)
    return rows, error, steps * 2 * len(graph)


def _invert(total: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return 1 / degree, 0 for nodes without weight, and those nodes."""
    inverse = np.zeros_like(total)
    np.divide(1.0, total, out=inverse, where=total > 0)
    return inverse, np.flatnonzero(total <= 0)


def _product(
    graph: TypedGraph, factors: EdgeFactors, multipliers: EdgeMultipliers | None, dtype: type[np.floating[Any]]
) -> Callable[[Floats], Floats]:
    """Return the function that sends mass along all edges, both ways."""
    from scipy.sparse import csc_array, csr_array

    def weights(by_kind: NDArray[np.float64]) -> Floats:
        weighed = by_kind.astype(dtype)[graph.kind]
        weighed *= graph.weight
        if multipliers:
            weighed[multipliers.edges] *= multipliers.values.astype(dtype)
        return weighed

    shape = (graph.n_nodes, graph.n_nodes)
    pattern = (graph.target, graph.forward.starts)
    from_source = weights(factors.from_source)
    from_target = from_source if factors.symmetric else weights(factors.from_target)
    to_target = csc_array((from_source, *pattern), shape=shape)
    to_source = csr_array((from_target, *pattern), shape=shape)

    def follow(y: Floats) -> Floats:
        moved: Floats = to_target @ y
        moved += to_source @ y
        return moved

    return follow


def _iterate(
    step: Callable[[Floats], Floats], start: Floats, damping: float, tolerance: float
) -> tuple[Floats, NDArray[np.float64], int]:
    """Iterate until every column is within ``tolerance``; return the columns, their bounds and the steps.

    ``step`` contracts L1 distances by ``damping``: x is at most |step(x) - x| / (1 - damping) from the solution, and
    step(x) at most ``damping`` times that. Plain steps therefore end, at the tolerance or where rounding is all that
    is left.
    """
    last, x, omega, count = start, start, 1.0, 0
    first = best = np.inf
    accelerated, since_best = True, 0
    while True:
        moved = step(x)
        difference = moved - x
        residual = np.abs(difference, out=difference).sum(axis=0)
        error = residual * damping / (1 - damping)
        worst = float(residual.max(initial=0.0))
        first = worst if not count else first
        since_best = 0 if worst < best else since_best + 1
        best = min(best, worst)
        stuck = since_best >= _STAGNATION
        if (error <= tolerance).all() or (stuck and not accelerated):
            return np.maximum(moved, 0), error, count + 1
        if accelerated and (stuck or worst > _SLACK * first * damping**count):
            accelerated, best, since_best = False, np.inf, 0
        if accelerated and count:
            omega = 1 / (1 - damping**2 * omega / (2 if count == 1 else 4))
            following = moved - last
            following *= x.dtype.type(omega)
            following += last
            last, x = x, following
        else:
            last, x = x, moved
        count += 1
