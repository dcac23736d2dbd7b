"""The compiled loop of the engine ``push``. Importing this module takes numba, and compiles or loads the cache.

The state of a walk is a hash table of the nodes that it touched: neither its memory nor the time to make it ready grows
with the graph, and what a step reads lies close together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graph.construction.edges import Arcs

F = TypeVar("F", bound=Callable[..., Any])

CELL = np.dtype([("residual", np.float64), ("key", np.uint32), ("arcs", np.uint32)], align=True)
"""The part of a node that a step reads, 16 bytes: the mass that is still to be pushed; the node's number + 1, or 0
where the cell is free; how many arcs it has, at least 1, with the highest bit set while it waits to push."""

DONE, FULL, DAMAGED = 0, 1, 2
"""How a run of the loop ended: at its end; for want of cells; at arcs that lead nowhere."""

_HASH = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_WAITS_AT = np.uint32(31)
_WAITS = np.uint32(1 << 31)
_ARCS = np.uint32((1 << 31) - 1)


def _compiled(function: F) -> F:
    """Compile without the interpreter's lock; keep the result on disk where there is a place that can be written.

    The code that is kept is renewed when this file changes, and only then: touch it when the fields of ``Arcs`` change.
    """
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))


def _within_its_caller(function: F) -> F:
    """Compile into the functions that call it: a call would count references to every array."""
    return cast(F, njit(inline="always")(function))


class Frontier(NamedTuple):
    """The mass of a walk at one moment, by the nodes that it touched.

    Attributes:
        cells: a hash table of `CELL`, open addressing; a power of 2 of them, at most half of them taken.
        scores: of each cell: mass that came to rest.
        degrees: of each cell: the node's weight under the factors; negative before it is known.
        touched: the cells that are taken, in the order of their taking.
        queue: a ring of the nodes that wait to push; one place of it is always free.
        place: the queue's head and length, and how many cells are taken.
        shift: 64 less the exponent of the number of cells.
    """

    cells: NDArray[Any]
    scores: NDArray[np.float64]
    degrees: NDArray[np.float64]
    touched: NDArray[np.uint32]
    queue: NDArray[np.uint32]
    place: NDArray[np.int64]
    shift: np.uint64


def new_frontier(exponent: int) -> Frontier:
    """Return an empty frontier of 2 ** exponent cells."""
    size = 1 << exponent
    return Frontier(
        np.zeros(size, CELL),
        np.zeros(size),
        np.full(size, -1.0),
        np.empty(size // 2, np.uint32),
        np.empty(size // 2 + 1, np.uint32),
        np.zeros(3, np.int64),
        np.uint64(64 - exponent),
    )


@_within_its_caller
def cell_of(node: np.uint32, n_arcs: NDArray[np.int32], frontier: Frontier) -> np.uint64:
    """Return the cell of a node; a free one is taken for a node that has none, of which there has to be one."""
    cells = frontier.cells
    key = np.uint32(node + np.uint32(1))
    last = np.uint64(len(cells) - 1)
    at = (np.uint64(node) * _HASH) >> frontier.shift
    while cells[at].key != key:
        if cells[at].key == 0:
            cells[at].key = key
            cells[at].arcs = max(n_arcs[node], 1)
            frontier.touched[frontier.place[2]] = at
            frontier.place[2] += 1
            break
        at = (at + _ONE) & last
    return at


@_within_its_caller
def await_push(at: np.uint64, threshold: float, frontier: Frontier) -> None:
    """Let a node wait, if it holds more than the threshold and does not wait already."""
    cells, queue, place = frontier.cells, frontier.queue, frontier.place
    arcs = cells[at].arcs
    if arcs & _WAITS == 0 and abs(cells[at].residual) > threshold * arcs:
        end = place[0] + place[1]
        queue[end if end < len(queue) else end - len(queue)] = cells[at].key - np.uint32(1)
        cells[at].arcs = arcs | _WAITS
        place[1] += 1


@_compiled
def give(
    seeds: NDArray[np.uint32],
    mass: NDArray[np.float64],
    n_arcs: NDArray[np.int32],
    threshold: float,
    frontier: Frontier,
) -> None:
    """Add mass to the seeds, to be pushed; there has to be room for them."""
    cells = frontier.cells
    for i in range(len(seeds)):
        at = cell_of(seeds[i], n_arcs, frontier)
        cells[at].residual += mass[i]
        await_push(at, threshold, frontier)


@_compiled
def wake(threshold: float, frontier: Frontier) -> None:
    """Let the nodes wait that hold more than a threshold, which is lower than the last one."""
    for i in range(frontier.place[2]):
        await_push(frontier.touched[i], threshold, frontier)


@_compiled
def move(old: Frontier, new: Frontier) -> None:
    """Move all mass into an empty frontier with more room."""
    last = np.uint64(len(new.cells) - 1)
    for i in range(old.place[2]):
        there = old.touched[i]
        at = (np.uint64(old.cells[there].key - np.uint32(1)) * _HASH) >> new.shift
        while new.cells[at].key != 0:
            at = (at + _ONE) & last
        new.cells[at] = old.cells[there]
        new.scores[at] = old.scores[there]
        new.degrees[at] = old.degrees[there]
        new.touched[i] = at
    for i in range(old.place[1]):
        new.queue[i] = old.queue[(old.place[0] + i) % len(old.queue)]
    new.place[0] = 0
    new.place[1] = old.place[1]
    new.place[2] = old.place[2]


@_compiled
def settled(frontier: Frontier, stays: float) -> tuple[NDArray[np.uint32], NDArray[np.float64], float]:
    """Return the touched nodes; the mass of each that came to rest, or would without a push; what is left to push."""
    cells, scores, touched = frontier.cells, frontier.scores, frontier.touched
    taken = frontier.place[2]
    nodes, masses = np.empty(taken, np.uint32), np.empty(taken)
    left = 0.0
    for i in range(taken):
        at = touched[i]
        nodes[i] = np.uint32(cells[at].key - np.uint32(1))
        masses[i] = max(scores[at] + stays * cells[at].residual, 0.0)
        left += abs(cells[at].residual)
    return nodes, masses, left


@_within_its_caller
def weight_of(u: np.uint32, arcs: Arcs, n_nodes: int, factors: NDArray[np.float64]) -> tuple[bool, float]:
    """Tell whether all arcs of a node lead somewhere, and add up their weights under the factors."""
    total = 0.0
    first, end = arcs.starts[u], arcs.starts[u + np.uint32(1)]
    sound = first >= 0 and end >= first and end <= len(arcs.node)
    if sound:
        for e in range(np.uint64(first), np.uint64(end)):
            if arcs.kind[e] >= len(factors) or arcs.node[e] < 0 or arcs.node[e] >= n_nodes:
                sound = False
                break
            total += arcs.weight[e] * factors[arcs.kind[e]]
    return sound, total


@_within_its_caller
def pass_on(
    u: np.uint32,
    arcs: Arcs,
    share: float,
    factors: NDArray[np.float64],
    n_arcs: NDArray[np.int32],
    threshold: float,
    frontier: Frontier,
) -> None:
    """Send a node's mass along its arcs, as each one's weight times its factor has it.

    The code of `cell_of` and `await_push` stands here again, with its counts in registers and without a branch on the
    mass, which the processor could not foresee: the end of the queue is written in any case.
    """
    cells, _, _, touched, queue, place, shift = frontier
    last = np.uint64(len(cells) - 1)
    waiting, taken = place[1], place[2]
    end = place[0] + waiting
    end = end if end < len(queue) else end - len(queue)
    for e in range(np.uint64(arcs.starts[u]), np.uint64(arcs.starts[u + np.uint32(1)])):
        node = np.uint32(arcs.node[e])
        key = np.uint32(node + np.uint32(1))
        at = (np.uint64(node) * _HASH) >> shift
        while cells[at].key != key:
            if cells[at].key == 0:
                cells[at].key = key
                cells[at].arcs = n_arcs[node]
                touched[taken] = at
                taken += 1
                break
            at = (at + _ONE) & last
        residual = cells[at].residual + share * arcs.weight[e] * factors[arcs.kind[e]]
        cells[at].residual = residual
        known = cells[at].arcs
        waits = np.uint32(abs(residual) > threshold * known)
        cells[at].arcs = known | (waits << _WAITS_AT)
        joins = np.int64(waits & ~(known >> _WAITS_AT))
        queue[end] = node
        end += joins
        end = end if end < len(queue) else 0
        waiting += joins
    place[1], place[2] = waiting, taken


@_compiled
def push_mass(
    forward: Arcs,
    backward: Arcs,
    n_arcs: NDArray[np.int32],
    n_entities: int,
    factors: NDArray[np.float64],
    damping: float,
    stretch: float,
    threshold: float,
    frontier: Frontier,
    returned: float,
    followed: int,
) -> tuple[float, int, int]:
    """Push from the nodes that wait, first in first out, until none waits.

    A node waits that holds more than ``threshold`` for each of its arcs; it pushes ``stretch`` times what it holds.
    ``factors`` has two rows: by kind of edge for the arcs of entities, and for those of passages. A node's weight under
    them is added up when it is pushed first. Counts from before it was `FULL` go on.

    Returns:
        The mass that nodes without outgoing weight give back to the restart, how many arcs were followed, and how it
        ended.
    """
    cells, scores, degrees, touched, queue, place, _ = frontier
    while place[1] > 0:
        u = queue[place[0]]
        after = np.uint32(u + np.uint32(1))
        ends = forward.starts[after] - forward.starts[u] + backward.starts[after] - backward.starts[u]
        if min(place[2] + ends, len(n_arcs)) > len(touched):
            return returned, followed, FULL
        at = cell_of(u, n_arcs, frontier)
        side = 0 if u < n_entities else 1
        if degrees[at] < 0.0:
            sound, there = weight_of(u, forward, len(n_arcs), factors[side])
            also_sound, back = weight_of(u, backward, len(n_arcs), factors[side])
            if not (sound and also_sound):
                return returned, followed, DAMAGED
            degrees[at] = there + back
        place[0] = place[0] + 1 if place[0] + 1 < len(queue) else 0
        place[1] -= 1
        cells[at].arcs &= _ARCS
        followed += n_arcs[u]
        mass = cells[at].residual * (stretch if degrees[at] > 0.0 else 1.0)
        cells[at].residual -= mass
        scores[at] += (1 - damping) * mass
        if degrees[at] <= 0.0:
            returned += damping * mass
            continue
        share = damping * mass / degrees[at]
        pass_on(u, forward, share, factors[side], n_arcs, threshold, frontier)
        pass_on(u, backward, share, factors[side], n_arcs, threshold, frontier)
    return returned, followed, DONE
