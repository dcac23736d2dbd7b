"""The arcs of a graph's edges, node by node, as a walk follows them: derived in memory, or stored beside a snapshot.

The arcs from source to target are the columns of the edges themselves. Those from target to source are the same edges
in the order of their targets; a snapshot holds them, so that no process has to sort what all of them read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import check_bounds, check_range, load_array
from graph.construction.external.arrays import ArrayWriter

_STARTS = {"forward": "arc_forward.npy", "backward": "arc_backward.npy"}
_BACKWARD = {"source": "arc_node.npy", "kind": "arc_kind.npy", "weight": "arc_weight.npy"}
_COUNTS = "arc_counts.npy"
_READ_AT_ONCE = 1 << 22
_SORTED_AT_ONCE = 1 << 23
"""Arcs that are sorted at once: some 50 bytes of memory each."""


class Arcs(NamedTuple):
    """The arcs that leave each node, one after the other, node by node.

    Attributes:
        starts: shape (n_nodes + 1,): node u's arcs stand from starts[u] to starts[u + 1].
        node: where each arc leads.
        kind: index into the graph's kinds.
        weight: the edge's weight.
    """

    starts: NDArray[np.int64]
    node: NDArray[np.int32]
    kind: NDArray[np.uint8]
    weight: NDArray[np.float32]


class NodeArcs(NamedTuple):
    """All arcs of a graph: every edge is one each way.

    Attributes:
        forward: from source to target: the columns of the edges.
        backward: from target to source, those of a node in the order of the edges.
        counts: how many arcs leave each node, both ways; 1 for isolated nodes.
    """

    forward: Arcs
    backward: Arcs
    counts: NDArray[np.int32]


def derive_arcs(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    kind: NDArray[np.uint8],
    weight: NDArray[np.float32],
    n_nodes: int,
) -> NodeArcs:
    """Return the arcs of some edges that are in the order of their sources."""
    there, back = (_starts(np.bincount(ends, minlength=n_nodes)) for ends in (source, target))
    order = _order_of(target, n_nodes)
    backward = Arcs(back, source[order], kind[order], weight[order])
    arcs = NodeArcs(Arcs(there, target, kind, weight), backward, _counts(there, back))
    for column in (there, *backward, arcs.counts):
        column.flags.writeable = False
    return arcs


def write_arcs(folder: Path, n_nodes: int, *, at_once: int = _SORTED_AT_ONCE) -> None:
    """Write the arcs of a snapshot's edges beside them, in memory that does not grow with their number.

    A counting sort over ranges of targets: the edges are read through once for each range. What stays in memory is two
    numbers a node, and the arcs of one range.

    Args:
        folder: holds ``edge_source.npy``, ``edge_target.npy``, ``edge_kind.npy`` and ``edge_weight.npy``, in the order
            of their sources.
        n_nodes: how many nodes the graph has.
        at_once: how many arcs a range may have; a node with more is a range of its own.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: a column is damaged.
    """
    edges = {name: _ColumnFile(folder / f"edge_{name}.npy") for name in ("source", "target", "kind", "weight")}
    if len({len(column) for column in edges.values()}) > 1:
        lengths = {f"edge_{name}": len(column) for name, column in edges.items()}
        raise ValueError(f"the columns of the edges differ in length: {lengths}")
    there, back = (_starts(_degrees(edges[name], n_nodes)) for name in ("source", "target"))
    np.save(folder / _STARTS["forward"], there)
    np.save(folder / _STARTS["backward"], back)
    np.save(folder / _COUNTS, _counts(there, back))
    with ExitStack() as stack:
        written = {
            name: stack.enter_context(ArrayWriter(folder / file, edges[name].dtype)) for name, file in _BACKWARD.items()
        }
        for first, last in _ranges(back, at_once):
            arcs, targets = _arcs_into(edges, first, last, int(back[last] - back[first]))
            order = _order_of(targets, last - first)
            for name, file in written.items():
                file.append(arcs[name][order])


def load_arcs(
    folder: Path,
    columns: tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]],
    n_entities: int,
    n_nodes: int,
    n_kinds: int,
    *,
    thorough: bool,
) -> NodeArcs:
    """Open the arcs that `write_arcs` wrote; what is large stays on disk, memory-mapped.

    Args:
        folder: the snapshot's.
        columns: of its edges: target, kind and weight.
        n_entities: how many entities there are: the arcs from target to source lead to them.
        n_nodes: how many nodes there are.
        n_kinds: how many kinds of edges there are.
        thorough: look at every number, however many there are.

    Raises:
        OSError: a file cannot be read.
        ValueError: one is damaged.
    """
    n_edges = len(columns[0])
    there, back = (load_array(folder / file, np.int64, (n_nodes + 1,)) for file in _STARTS.values())
    for starts in (there, back):
        check_bounds(starts, n_edges, thorough=thorough)
    node = load_array(folder / _BACKWARD["source"], np.int32, (n_edges,))
    kind = load_array(folder / _BACKWARD["kind"], np.uint8, (n_edges,))
    weight = load_array(folder / _BACKWARD["weight"], np.float32, (n_edges,))
    check_range(node, n_entities, thorough=thorough)
    check_range(kind, n_kinds, thorough=thorough)
    counts = load_array(folder / _COUNTS, np.int32, (n_nodes,))
    check_range(counts, np.iinfo(np.int32).max, thorough=thorough)
    return NodeArcs(Arcs(there, *columns), Arcs(back, node, kind, weight), counts)


class _ColumnFile:
    """A file of ``numpy.save`` with one column, which is read in parts and never mapped: memory stays bounded."""

    def __init__(self, path: Path) -> None:
        mapped = np.lib.format.open_memmap(path, mode="r")
        if mapped.ndim != 1:
            raise ValueError(f"{path.name} holds {mapped.shape}, which is no column")
        self._path, self._offset = path, mapped.offset
        self.dtype, self._length = mapped.dtype, len(mapped)

    def __len__(self) -> int:
        return self._length

    def read(self, first: int) -> NDArray[Any]:
        """Return the next elements from the one at ``first``."""
        count = min(_READ_AT_ONCE, self._length - first)
        found = np.fromfile(self._path, self.dtype, count, offset=self._offset + first * self.dtype.itemsize)
        if len(found) != count:
            raise ValueError(f"{self._path.name} ends after {first + len(found)} elements")
        return found

    def parts(self) -> Iterator[NDArray[Any]]:
        """Yield all elements, part by part."""
        return map(self.read, range(0, self._length, _READ_AT_ONCE))


def _degrees(column: _ColumnFile, n_nodes: int) -> NDArray[np.int64]:
    """Return how often each node stands in a column. Raises ValueError where a number is no node's."""
    found = np.zeros(n_nodes, dtype=np.int64)
    for part in column.parts():
        found += np.bincount(check_range(part, n_nodes), minlength=n_nodes)
    return found


def _starts(degrees: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(degrees, dtype=np.int64)])


def _counts(there: NDArray[np.int64], back: NDArray[np.int64]) -> NDArray[np.int32]:
    counts: NDArray[np.int32] = np.maximum(1, np.diff(there) + np.diff(back)).astype(np.int32)
    return counts


def _ranges(starts: NDArray[np.int64], at_once: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) of nodes that have at most so many arcs together, or are one node."""
    first, end = 0, len(starts) - 1
    while first < end:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + at_once, side="right")) - 1)
        yield first, last
        first = last


def _arcs_into(
    edges: dict[str, _ColumnFile], first: int, last: int, n_arcs: int
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
    """Return source, kind and weight of the edges with a target in a range, in their order, and these targets."""
    found = {name: np.empty(n_arcs, dtype=column.dtype) for name, column in edges.items()}
    filled = 0
    for start in range(0, len(edges["target"]), _READ_AT_ONCE):
        targets = edges["target"].read(start)
        places = np.flatnonzero((targets >= first) & (targets < last))
        if len(places):
            part = slice(filled, filled + len(places))
            found["target"][part] = targets[places] - first
            for name in _BACKWARD:
                found[name][part] = edges[name].read(start)[places]
            filled += len(places)
    return found, found.pop("target")


def _order_of(numbers: NDArray[np.int32], limit: int) -> NDArray[np.integer[Any]]:
    """Return where the numbers below ``limit`` stand in ascending order, equal ones as they come: a counting sort."""
    from scipy.sparse import csr_array

    places = np.arange(len(numbers), dtype=np.int32 if len(numbers) < 2**31 else np.int64)
    one_row = csr_array((places, numbers, np.array([0, len(numbers)])), shape=(1, limit))
    order: NDArray[np.integer[Any]] = one_row.tocsc().data
    return order
