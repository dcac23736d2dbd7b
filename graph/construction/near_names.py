"""Pairs of near names, in bounded memory, from those of the last build: the synonyms of a graph.

Each new name is compared with every other. Of more than `EXACT_NAMES`, all are compared by an inverted file of cells,
which misses a few pairs.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from graph.construction.arrays import ID_TYPE, Array, ArrayWriter, Ids, find
from graph.construction.columns import check_range, load_array
from graph.construction.edge_weights import SYNONYMS_PER_NAME, rank_in_group
from graph.text import name_length

SYNONYM_COSINE = 0.8
"""Two names are synonyms where the cosine of their vectors is at least this."""

SYNONYM_SHORTEST = 3
"""A synonym edge needs names of at least this many letters or digits."""

EXACT_NAMES = 200_000
"""Of more names, the product of each with each takes minutes and grows with their square: an index finds the pairs."""

_CELLS_PER_ROOT, _LEAST_IN_CELL = 4, 64
_PROBES = 16
"""Cells that a name is compared with: its own and the next nearest ones."""
_SAMPLED_PER_CELL = 32
_ROUNDS = 6
_ROWS = 4_096
_MEMBERS = 2_048
_MOST_FOUND = 2_000_000
"""Found neighbours of a block of names that are held before the farthest ones are dropped."""
_BUCKETS = 256
ROUNDING = 2e-5
"""More than single precision can change the cosine of two unit vectors."""
PAIR = np.dtype([("first", "i4"), ("second", "i4"), ("cosine", "f8")])
"""A pair of near names: the smaller row of the matrix of vectors, the larger one, the cosine."""

KEPT = "near"
"""The folder, among those that a build keeps for the next one, of the pairs that it found."""

_PAIRS_FILE, _STAMP = "pairs.npy", "kept.json"
_VERSION = 4
_SHARE = 200
"""Where an index found the pairs, one in so many names may have changed since; then it finds all again."""
_NEW_ROWS, _OLD_ROWS, _PAIRS = 256, 8_192, 1 << 20
_MAIN_AXES = 128
_WORTH_BOUNDING = 1_024
"""New names from which on it pays to find a bound of all cosines first."""

_MOST_TIED = 4 * SYNONYMS_PER_NAME
_EXACT_ROWS, _EXACT_BLOCK = 256, 65_536

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]
Sums = NDArray[np.uint64]

_NOTHING = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)


def may_have_synonyms(name: str, understands: Callable[[str], bool]) -> bool:
    """Tell whether a name's vector says what else it may be called; ``understands`` is the embedding model's."""
    return name_length(name) >= SYNONYM_SHORTEST and understands(name)


def _write_pairs(folder: Path, parts: Iterable[Array]) -> None:
    """Write pairs into a folder, part after part."""
    with ArrayWriter(folder / _PAIRS_FILE, PAIR) as pairs:
        for part in parts:
            pairs.append(part)


def _near(vectors: Floats, first: Longs, second: Longs) -> Array:
    """Return those of some pairs of rows that reach the bar."""
    cosines = exact_cosines(vectors, first, second)
    near = cosines >= SYNONYM_COSINE
    pairs = np.empty(int(near.sum()), dtype=PAIR)
    pairs["first"], pairs["second"], pairs["cosine"] = first[near], second[near], np.minimum(1.0, cosines[near])
    return pairs


def find_near_names(vectors: Floats, eligible: NDArray[np.bool_], folder: Path) -> Array:
    """Find the pairs of names whose cosine is at least 0.8, of each name the hundred nearest ones.

    A pair is left out where neither name is among the hundred nearest of the other, or looks into the other's cell.
    Which these are depends on the vectors and their order alone. Each cosine is computed by itself in double precision.

    Args:
        vectors: unit vectors, shape (names, dimension), which may be mapped from a file.
        eligible: of each name, whether it may have synonyms.
        folder: where the pairs are written, and meanwhile a copy of the vectors.
    """
    from threadpoolctl import threadpool_limits

    rows = np.flatnonzero(eligible)
    # Blocks are shared out among threads; threads within a product would wait for each other on a busy machine.
    with TemporaryDirectory(dir=folder) as scratch, threadpool_limits(limits=1, user_api="blas"):
        buckets = _Buckets(Path(scratch), len(vectors))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            if len(rows) > 1:
                cells = _Cells.divide(vectors, rows, Path(scratch), pool)
                deque(pool.map(lambda block: buckets.add(*cells.neighbours(block)), cells.blocks()), maxlen=0)
            _write_pairs(folder, buckets.pairs(vectors, pool))
    return load_array(folder / _PAIRS_FILE, PAIR, (None,))


class _Cells:
    """Names in the order of their cells, cells that are near each other in sequence.

    Attributes:
        rows: of each name, in this order: its row.
        vectors: theirs, mapped.
        probes: of each name, the cells that it is compared with, shape (names, probes); mapped.
        starts: where each cell's names begin.
    """

    def __init__(self, rows: Longs, vectors: Floats, probes: NDArray[np.int32], starts: Longs) -> None:
        self.rows = rows
        self.vectors = vectors
        self.probes = probes
        self.starts = starts

    @staticmethod
    def divide(vectors: Floats, rows: Longs, scratch: Path, pool: ThreadPoolExecutor) -> _Cells:
        """Divide the names of some rows into cells."""
        n_cells = max(1, min(len(rows) // _LEAST_IN_CELL, round(_CELLS_PER_ROOT * len(rows) ** 0.5)))
        sample = rows[:: max(1, len(rows) // (_SAMPLED_PER_CELL * n_cells))]
        centroids = _in_sequence(_centroids(np.asarray(vectors[sample]), n_cells, pool), pool)
        n_probes = min(_PROBES, n_cells)
        shape = len(rows), n_probes
        nearest = np.lib.format.open_memmap(scratch / "found.npy", mode="w+", dtype=np.int32, shape=shape)

        def probe(start: int) -> None:
            block = vectors[rows[start : start + _ROWS]] @ centroids.T
            nearest[start : start + _ROWS] = _nearest(block, n_probes)

        deque(pool.map(probe, range(0, len(rows), _ROWS)), maxlen=0)
        own = np.asarray(nearest[:, 0])
        order = np.argsort(own, kind="stable")
        ordered = _written(scratch / "vectors.npy", vectors, rows[order])
        probes = _written(scratch / "probes.npy", nearest, order)
        starts = np.searchsorted(own[order], np.arange(n_cells + 1))
        return _Cells(rows[order], ordered, probes, starts)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield (first, last + 1) of blocks of names."""
        for start in range(0, len(self.rows), _ROWS):
            yield start, min(start + _ROWS, len(self.rows))

    def neighbours(self, block: tuple[int, int]) -> tuple[Longs, Longs]:
        """Return the rows of the names of a block and of the nearest ones of each, a hundred at most."""
        first, last = block
        asking = np.asarray(self.vectors[first:last])
        probed = self.probes[first:last].ravel()
        order = np.argsort(probed, kind="stable")
        names = order // self.probes.shape[1]
        cells, starts = np.unique(probed[order], return_index=True)
        neighbours = _Found(self.rows)
        for cell, start, end in zip(cells.tolist(), starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            those = names[start:end]
            for member in range(self.starts[cell], self.starts[cell + 1], _MEMBERS):
                members = self.vectors[member : min(member + _MEMBERS, self.starts[cell + 1])]
                near = asking[those] @ members.T
                at, others = np.nonzero(near >= SYNONYM_COSINE - ROUNDING)
                of, others, cosines = those[at], others + member, near[at, others]
                own = of + first == others
                neighbours.add(of[~own], others[~own], cosines[~own])
        of, others = neighbours.nearest(lambda of, others: exact_cosines(self.vectors, of + first, others))
        return self.rows[of + first], self.rows[others]


class _Found:
    """The neighbours found of the names of a block: which name, the place of the neighbour, their rounded cosine."""

    def __init__(self, places: Longs) -> None:
        """``places`` tells which of two neighbours that are equally near comes first."""
        self._places = places
        self._parts: list[tuple[Longs, Longs, Floats]] = []
        self._held = 0
        self._limit = _MOST_FOUND

    def add(self, names: Longs, others: Longs, cosines: Floats) -> None:
        """Take in neighbours."""
        self._parts.append((names, others, cosines))
        self._held += len(names)
        if self._held > self._limit:
            kept = self._near_enough()
            self._parts, self._held = [kept[:3]], len(kept[0])
            self._limit = max(_MOST_FOUND, 2 * self._held)

    def nearest(self, exact: Callable[[Longs, Longs], Doubles]) -> tuple[Longs, Longs]:
        """Return the neighbours, of a name with more the hundred nearest; ``exact`` decides where rounding might."""
        names, others, cosines, cut = self._near_enough()
        key = cosines.astype(np.float64)
        key[cosines > cut + 2 * ROUNDING] += 1
        close = np.flatnonzero((cosines <= cut + 2 * ROUNDING) & (cut > 0))
        key[close] = exact(names[close], others[close])
        order = np.lexsort((self._places[others], -key, names))
        kept = order[rank_in_group(names[order]) < SYNONYMS_PER_NAME]
        return names[kept], others[kept]

    def _near_enough(self) -> tuple[Longs, Longs, Floats, Floats]:
        """Return what may be among the hundred nearest, by name, and the cosine of the hundredth; 0 where fewer are."""
        names, others, cosines = (np.concatenate(columns) for columns in zip(_NOTHING, *self._parts, strict=True))
        order = np.lexsort((self._places[others], -cosines, names))
        names, others, cosines = names[order], others[order], cosines[order]
        rank = rank_in_group(names)
        hundredth = np.flatnonzero(rank == SYNONYMS_PER_NAME - 1)
        cuts = np.zeros(names[-1] + 1 if len(names) else 0, dtype=np.float32)
        cuts[names[hundredth]] = cosines[hundredth]
        cut = cuts[names]
        kept = (cosines >= cut - 2 * ROUNDING) & (rank < _MOST_TIED)
        return names[kept], others[kept], cosines[kept], cut[kept]


class _Buckets:
    """Files of pairs of rows, by the smaller row: each is small enough to be sorted in memory."""

    def __init__(self, folder: Path, n_rows: int) -> None:
        self._folder = folder
        self._n_rows = n_rows
        self._lock = Lock()

    def add(self, one: Longs, other: Longs) -> None:
        """Take in pairs, each perhaps twice; several threads may."""
        low = np.minimum(one, other)
        keys = np.sort(low * self._n_rows + np.maximum(one, other))
        edges = np.arange(_BUCKETS + 1) * self._n_rows // _BUCKETS * self._n_rows
        bounds = np.searchsorted(keys, edges).tolist()
        with self._lock:
            for bucket, (start, end) in enumerate(pairwise(bounds)):
                if end > start:
                    with self._path(bucket).open("ab") as file:
                        keys[start:end].tofile(file)

    def pairs(self, vectors: Floats, pool: ThreadPoolExecutor) -> Iterator[Array]:
        """Yield the pairs that reach the bar, each once."""
        for path in filter(Path.exists, map(self._path, range(_BUCKETS))):
            keys = np.unique(np.fromfile(path, dtype=np.int64))
            blocks = (keys[at : at + _EXACT_BLOCK] for at in range(0, len(keys), _EXACT_BLOCK))
            yield from pool.map(lambda block: _near(vectors, *np.divmod(block, self._n_rows)), blocks)

    def _path(self, bucket: int) -> Path:
        return self._folder / f"pairs{bucket}.bin"


def exact_cosines(vectors: Floats, left: Longs, right: Longs) -> Doubles:
    """Return the cosines of pairs of rows, each computed by itself: whatever else is, it is the same."""
    cosines = np.empty(len(left))
    for start in range(0, len(left), _EXACT_ROWS):
        block = slice(start, start + _EXACT_ROWS)
        cosines[block] = (vectors[left[block]].astype(np.float64) * vectors[right[block]]).sum(axis=1)
    return cosines


def _centroids(sample: Floats, count: int, pool: ThreadPoolExecutor) -> Floats:
    """Return the centroids of so many clusters of unit vectors, after a few rounds of spherical k-means."""
    centroids = sample[np.arange(count) * len(sample) // count]
    for _ in range(_ROUNDS):
        own = np.concatenate([*pool.map(partial(_nearest_one, centroids), _blocks_of(sample))])
        order = np.argsort(own, kind="stable")
        cells, first = np.unique(own[order], return_index=True)
        sums = np.add.reduceat(sample[order], first)
        centroids[cells] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), ROUNDING)
    return centroids


def _blocks_of(vectors: Floats) -> Iterator[Floats]:
    return (vectors[start : start + _ROWS] for start in range(0, len(vectors), _ROWS))


def _nearest_one(centroids: Floats, vectors: Floats) -> Longs:
    return np.asarray((vectors @ centroids.T).argmax(axis=1), dtype=np.int64)


def _in_sequence(centroids: Floats, pool: ThreadPoolExecutor) -> Floats:
    """Return centroids so that near ones follow each other: names of a block look into the same cells then."""
    groups = _centroids(centroids, max(1, round(len(centroids) ** 0.5)), pool)
    order: Longs = np.argsort(_nearest_one(groups, centroids), kind="stable")
    return centroids[order]


def _nearest(products: Floats, count: int) -> NDArray[np.int32]:
    """Return of each row the columns of its largest elements, the largest first."""
    columns = np.argpartition(-products, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(products, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1).astype(np.int32)


def _written(path: Path, array: Array, rows: Longs) -> Array:
    """Write some rows of an array into a file, and return them mapped: writing into a map costs a fault a page."""
    with ArrayWriter(path, array.dtype, array.shape[1:]) as written:
        for start in range(0, len(rows), _ROWS):
            written.append(array[rows[start : start + _ROWS]])
    return np.lib.format.open_memmap(path, mode="r")


@dataclass(frozen=True, slots=True)
class _Kept:
    """The pairs that an earlier build found.

    Attributes:
        ids: of all its names, in order; pairs are of their places.
        sums: of each name what tells whether its vector changed; 0 for one that may have no synonyms.
        pairs: that it found.
        by_index: whether an index found them, which misses a few.
        changed: names that came, went or changed since all were compared with each other.
    """

    ids: Ids
    sums: Sums
    pairs: Array
    by_index: bool
    changed: int

    @staticmethod
    def nothing() -> _Kept:
        """Return the result of a build without names."""
        ids, sums, pairs = (np.zeros(0, dtype=kind) for kind in (ID_TYPE, np.uint64, PAIR))
        return _Kept(ids, sums, pairs, by_index=False, changed=0)


def near_pairs(ids: Ids, vectors: Floats, eligible: NDArray[np.bool_], kept: Path) -> Array:
    """Find the pairs of near names, from those of the last build.

    The pairs of names that stayed are taken over, and each new name is compared with all others: no pair of it is
    missed. Of more than `EXACT_NAMES`, an index finds all pairs at first and once many names changed. Then some are
    missed, and where a name went that had more than a hundred near ones, the next nearest one.

    Args:
        ids: of the names, in order.
        vectors: unit vectors, shape (names, dimension), which may be mapped from a file.
        eligible: of each name, whether it may have synonyms.
        kept: the folder of what was found, which is replaced by what this build finds.
    """
    sums = np.where(eligible, _sums(vectors), np.uint64(0))
    unfinished = kept.with_name(f"{kept.name}-new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    known, count = _load(kept), int(eligible.sum())
    if known is None or (known.by_index and count <= EXACT_NAMES):
        known = _Kept.nothing()
    place = _places(known, ids, sums)
    new = np.setdiff1d(np.flatnonzero(eligible), place[place >= 0], assume_unique=True)
    changed = known.changed + len(new) + int(((place < 0) & (known.sums != 0)).sum())
    by_index = known.by_index
    if count > EXACT_NAMES and changed > count // _SHARE:
        by_index, changed = True, 0
        find_near_names(vectors, eligible, unfinished)
    else:
        _write_pairs(unfinished, chain(_moved(known.pairs, place), _pairs_of(new, vectors, eligible)))
    for name, array in (("ids", ids), ("sums", sums)):
        np.save(unfinished / f"{name}.npy", array)
    stamp = {"version": _VERSION, "by_index": by_index, "changed": changed if by_index else 0}
    (unfinished / _STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    shutil.rmtree(kept, ignore_errors=True)
    unfinished.rename(kept)
    return load_array(kept / _PAIRS_FILE, PAIR, (None,))


def _load(folder: Path) -> _Kept | None:
    """Return what an earlier build found; None where it found nothing, or that cannot be read."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        ids = load_array(folder / "ids.npy", ID_TYPE, (None,))
        sums = load_array(folder / "sums.npy", np.uint64, (len(ids),))
        pairs = load_array(folder / _PAIRS_FILE, PAIR, (None,))
        for end in ("first", "second"):
            check_range(pairs[end], len(ids))
        kept = _Kept(ids, sums, pairs, bool(stamp["by_index"]), int(stamp["changed"]))
        return kept if stamp["version"] == _VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sums(vectors: Floats) -> Sums:
    """Return a number for each vector, never 0, that is another one where the vector is."""
    factors = np.random.default_rng(0).integers(1, 2**63, vectors.shape[1], dtype=np.uint64) | np.uint64(1)
    sums = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), _ROWS):
        block = np.ascontiguousarray(vectors[start : start + _ROWS]).view(np.uint32)
        sums[start : start + _ROWS] = (block * factors).sum(axis=1, dtype=np.uint64)
    return sums | np.uint64(1)


def _places(known: _Kept, ids: Ids, sums: Sums) -> Longs:
    """Return of each known name where it stands now; -1 where it is gone or changed, or might have no synonyms."""
    place = find(ids, known.ids)
    there = np.flatnonzero(place >= 0)
    is_same = (sums[place[there]] == known.sums[there]) & (known.sums[there] != 0)
    place[there[~is_same]] = -1
    return place


def _moved(pairs: Array, place: Longs) -> Iterator[Array]:
    """Yield the pairs of names that stayed, by their new places: these are in the same order."""
    for start in range(0, len(pairs), _PAIRS):
        block = np.array(pairs[start : start + _PAIRS])
        for end in ("first", "second"):
            block[end] = place[block[end]]
        yield block[(block["first"] >= 0) & (block["second"] >= 0)]


def _pairs_of(new: Longs, vectors: Floats, eligible: NDArray[np.bool_]) -> Iterator[Array]:
    """Yield the pairs of some names with all others, each once."""
    from threadpoolctl import threadpool_limits

    is_new = np.zeros(len(vectors), dtype=bool)
    is_new[new] = True
    is_old = eligible & ~is_new

    def pairs_of(start: int) -> list[Array]:
        rows, pairs = new[start : start + _NEW_ROWS], []
        block = np.asarray(bounds[rows])
        for at in range(0, len(vectors), _OLD_ROWS):
            end = min(len(vectors), at + _OLD_ROWS)
            if end <= rows[0] and not is_old[at:end].any():
                continue  # These names come by their pairs with the block themselves.
            near = np.flatnonzero(block @ bounds[at:end].T >= SYNONYM_COSINE - 2 * ROUNDING)
            one, other = rows[near // (end - at)], near % (end - at) + at
            once = is_old[other] | (is_new[other] & (one < other))
            pairs.append(_near(vectors, np.minimum(one, other)[once], np.maximum(one, other)[once]))
        return pairs

    # Blocks are shared out among threads; threads within a product would wait for each other on a busy machine.
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        bounds = _bounding(vectors) if len(new) >= _WORTH_BOUNDING and len(vectors) <= EXACT_NAMES else vectors
        yield from chain.from_iterable(pool.map(pairs_of, range(0, len(new), _NEW_ROWS)))


def _bounding(vectors: Floats) -> Floats:
    """Return shorter vectors whose products are those of the vectors or more, up to rounding.

    Each holds a vector's part on the main axes of all, and the length of the rest (Cauchy and Schwarz).
    """
    sample = np.asarray(vectors[:: len(vectors) // _ROWS + 1])
    axes = np.linalg.eigh(sample.T @ sample).eigenvectors[:, -_MAIN_AXES:]
    bounds = np.empty((len(vectors), axes.shape[1] + 1), dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS]
        parts = block @ axes
        bounds[start : start + _ROWS] = np.column_stack([parts, np.linalg.norm(block - parts @ axes.T, axis=1)])
    return bounds
