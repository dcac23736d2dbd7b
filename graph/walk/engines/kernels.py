"""The compiled loop of the engine ``push``. Importing this module takes numba, and compiles or loads the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graph.construction.arcs import Arcs

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """Compile without the interpreter's lock; keep the result on disk where there is a place that can be written.

    What is kept is renewed when this file changes, and only then: touch it when the fields of ``Arcs`` change.
    """
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))


class Frontier(NamedTuple):
    """The mass of a walk at one moment.

    Attributes:
        scores: mass that came to rest, by node.
        residual: mass that is still to be pushed, by node.
        queue: a ring of the nodes that wait to push.
        waits: 1 for the nodes in the queue.
        place: the queue's head and length.
    """

    scores: NDArray[np.float64]
    residual: NDArray[np.float64]
    queue: NDArray[np.uint32]
    waits: NDArray[np.uint8]
    place: NDArray[np.int64]


@_compiled
def line_up(u: np.uint32, frontier: Frontier) -> None:
    """Let a node that is not in the queue wait for its push."""
    at = frontier.place[0] + frontier.place[1]
    if at >= len(frontier.queue):
        at -= len(frontier.queue)
    frontier.queue[at] = u
    frontier.waits[u] = 1
    frontier.place[1] += 1


@_compiled
def give(
    seeds: NDArray[np.uint32],
    mass: NDArray[np.float64],
    n_arcs: NDArray[np.int32],
    threshold: float,
    frontier: Frontier,
) -> None:
    """Add mass to the seeds, to be pushed."""
    for i in range(len(seeds)):
        u = seeds[i]
        frontier.residual[u] += mass[i]
        if frontier.residual[u] > threshold * n_arcs[u] and frontier.waits[u] == 0:
            line_up(u, frontier)


@_compiled
def push_mass(
    forward: Arcs,
    backward: Arcs,
    kind_degrees: NDArray[np.float64],
    n_arcs: NDArray[np.int32],
    n_entities: int,
    factors: NDArray[np.float64],
    damping: float,
    threshold: float,
    frontier: Frontier,
    budget: int,
) -> tuple[float, float, int]:
    """Push from the nodes that wait, first in first out, until none waits or ``budget`` arcs were followed.

    A node waits that holds more than ``threshold`` for each of its arcs. ``factors`` has two rows: by kind of edge
    for the arcs of entities, and for those of passages.

    Returns:
        The mass that came to rest, the mass that nodes without outgoing weight give back to the restart, and how
        many arcs were followed.
    """
    scores, residual, queue, waits, place = frontier
    settled = 0.0
    returned = 0.0
    followed = 0
    while place[1] > 0 and followed < budget:
        u = queue[place[0]]
        place[0] = place[0] + 1 if place[0] + 1 < len(queue) else 0
        place[1] -= 1
        waits[u] = 0
        followed += n_arcs[u]
        mass = residual[u]
        residual[u] = 0.0
        scores[u] += (1 - damping) * mass
        settled += (1 - damping) * mass
        side = 0 if u < n_entities else 1
        degree = 0.0
        for k in range(factors.shape[1]):
            degree += kind_degrees[u, k] * factors[side, k]
        if degree <= 0.0:
            returned += damping * mass
            continue
        share = damping * mass / degree
        for e in range(np.uint64(forward.starts[u]), np.uint64(forward.starts[u + np.uint32(1)])):
            v = np.uint32(forward.node[e])
            residual[v] += share * forward.weight[e] * factors[side, forward.kind[e]]
            if residual[v] > threshold * n_arcs[v] and waits[v] == 0:
                line_up(v, frontier)
        for e in range(np.uint64(backward.starts[u]), np.uint64(backward.starts[u + np.uint32(1)])):
            v = np.uint32(backward.node[e])
            residual[v] += share * backward.weight[e] * factors[side, backward.kind[e]]
            if residual[v] > threshold * n_arcs[v] and waits[v] == 0:
                line_up(v, frontier)
    return settled, returned, followed


@_compiled
def settle(frontier: Frontier, stays: float, scale: float) -> None:
    """Add to the scores the share of the residual mass that stays where it is, and scale them."""
    for u in range(len(frontier.scores)):
        frontier.scores[u] = (frontier.scores[u] + stays * frontier.residual[u]) * scale
