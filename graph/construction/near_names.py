"""Pairs of near names, from those of the last build: the synonyms of a graph.

Each new name is compared with every other. Of more than `EXACT_NAMES`, all are compared by an inverted file of cells,
which misses a few pairs.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import ID_TYPE, Array, ArrayWriter, Ids, check_range, find, load_array
from graph.construction.edges import SYNONYMS_PER_NAME, rank_in_group
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
_ROWS = 1_024
_FILES = 64
"""Files of found pairs, by the smaller row: the pairs of each are sorted in memory."""

ROUNDING = 2e-5
"""More than single precision can change the cosine of two unit vectors."""

PAIR = np.dtype([("first", "i4"), ("second", "i4"), ("cosine", "f8")])
"""A pair of near names: the smaller row of the matrix of vectors, the larger one, the cosine."""

KEPT = "near"
"""The folder, among those that a build keeps for the next one, of the pairs that it found."""

_PAIRS_FILE, _STAMP = "pairs.npy", "kept.json"
_VERSION = 5
_SHARE = 200
"""Where an index found the pairs, one in so many names may have changed since; then it finds all again."""

_NEW_ROWS, _OLD_ROWS, _PAIRS = 256, 8_192, 1 << 20
_EXACT_ROWS, _EXACT_BLOCK = 256, 65_536

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


def may_have_synonyms(name: str, understands: Callable[[str], bool]) -> bool:
    """Tell whether a name's vector says what else it may be called; ``understands`` is the embedding model's."""
    return name_length(name) >= SYNONYM_SHORTEST and understands(name)


def exact_cosines(vectors: Floats, left: Longs, right: Longs) -> Doubles:
    """Return the cosines of pairs of rows, each computed by itself: whatever else is, it is the same."""
    cosines = np.empty(len(left))
    for start in range(0, len(left), _EXACT_ROWS):
        block = slice(start, start + _EXACT_ROWS)
        cosines[block] = (vectors[left[block]].astype(np.float64) * vectors[right[block]]).sum(axis=1)
    return cosines


def _near(vectors: Floats, first: Longs, second: Longs) -> Array:
    """Return those of some pairs of rows that reach the bar."""
    cosines = exact_cosines(vectors, first, second)
    near = cosines >= SYNONYM_COSINE
    pairs = np.empty(int(near.sum()), dtype=PAIR)
    pairs["first"], pairs["second"], pairs["cosine"] = first[near], second[near], np.minimum(1.0, cosines[near])
    return pairs


def find_near_names(vectors: Floats, eligible: NDArray[np.bool_], folder: Path) -> Iterator[Array]:
    """Yield the pairs of names whose cosine is at least 0.8, of each name the hundred nearest ones.

    A pair is left out where neither name is among the hundred nearest of the other, or looks into the other's cell.
    Which these are depends on the vectors and their order alone. Each cosine is computed by itself in double precision.

    Args:
        vectors: unit vectors, shape (names, dimension), which may be mapped from a file.
        eligible: of each name, whether it may have synonyms.
        folder: where found pairs are kept meanwhile.
    """
    from threadpoolctl import threadpool_limits

    n_rows, rows = len(vectors), np.flatnonzero(eligible)
    if len(rows) < 2:
        return
    # Blocks are shared out among threads; threads within a product would wait for each other on a busy machine.
    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
        ExitStack() as stack,
    ):
        files = [stack.enter_context(TemporaryFile(dir=folder)) for _ in range(_FILES)]
        edges = np.arange(1, _FILES) * n_rows // _FILES * n_rows
        cells = _Cells(vectors, rows, pool)
        for one, other in pool.map(cells.neighbours, range(0, len(rows), _ROWS)):
            keys = np.sort(np.minimum(one, other) * n_rows + np.maximum(one, other))
            for file, part in zip(files, np.split(keys, np.searchsorted(keys, edges)), strict=True):
                file.write(part.tobytes())
        for file in files:
            file.seek(0)
            keys = np.unique(np.frombuffer(file.read(), dtype=np.int64))
            blocks = (keys[at : at + _EXACT_BLOCK] for at in range(0, len(keys), _EXACT_BLOCK))
            yield from pool.map(lambda block: _near(vectors, *np.divmod(block, n_rows)), blocks)


class _Cells:
    """The names of some rows, divided into cells by the centroid that each is nearest to."""

    def __init__(self, vectors: Floats, rows: Longs, pool: ThreadPoolExecutor) -> None:
        n_cells = max(1, min(len(rows) // _LEAST_IN_CELL, round(_CELLS_PER_ROOT * len(rows) ** 0.5)))
        sample = np.asarray(vectors[rows[:: max(1, len(rows) // (_SAMPLED_PER_CELL * n_cells))]])
        centroids = sample[np.arange(n_cells) * len(sample) // n_cells]
        for _ in range(_ROUNDS):
            centroids = _moved_centroids(centroids, sample, pool)
        nearest = partial(_nearest, vectors, rows, centroids, min(_PROBES, n_cells))
        probes = np.concatenate([*pool.map(nearest, range(0, len(rows), _ROWS))])
        order = np.argsort(probes[:, 0], kind="stable")
        self._vectors, self._rows, self._probes = vectors, rows[order], probes[order]
        self._starts = np.searchsorted(self._probes[:, 0], np.arange(n_cells + 1))

    def neighbours(self, first: int) -> tuple[Longs, Longs]:
        """Return the rows of the names of a block and of the nearest ones of each, a hundred at most."""
        own, probes = self._rows[first : first + _ROWS], self._probes[first : first + _ROWS]
        asking, found = np.asarray(self._vectors[own]), []
        for cell in np.unique(probes).tolist():
            those = np.flatnonzero((probes == cell).any(axis=1))
            members = self._rows[self._starts[cell] : self._starts[cell + 1]]
            near = asking[those] @ self._vectors[members].T
            near[own[those][:, None] == members] = 0
            at, others = np.nonzero(near >= SYNONYM_COSINE - ROUNDING)
            found.append((those[at], members[others], near[at, others]))
        names, others, cosines = map(np.concatenate, zip(*found, strict=True))
        rank = _ranks(names, -cosines, others)
        hundredth = np.zeros(len(own), dtype=np.float32)
        hundredth[names[rank == SYNONYMS_PER_NAME - 1]] = cosines[rank == SYNONYMS_PER_NAME - 1]
        close = cosines >= hundredth[names] - 2 * ROUNDING
        one, other = own[names[close]], others[close]
        kept = _ranks(names[close], -exact_cosines(self._vectors, one, other), other) < SYNONYMS_PER_NAME
        return one[kept], other[kept]


def _ranks(names: Longs, farness: NDArray[np.floating], others: Longs) -> Longs:
    """Return of each neighbour how many are nearer to its name, the smaller row first among equally near ones."""
    order = np.lexsort((others, farness, names))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = rank_in_group(names[order])
    return ranks


def _moved_centroids(centroids: Floats, sample: Floats, pool: ThreadPoolExecutor) -> Floats:
    """Return centroids after a round of spherical k-means over a sample of unit vectors."""
    blocks = (sample[start : start + _ROWS] for start in range(0, len(sample), _ROWS))
    own = np.concatenate([*pool.map(lambda block: (block @ centroids.T).argmax(axis=1), blocks)])
    order = np.argsort(own, kind="stable")
    cells, first = np.unique(own[order], return_index=True)
    sums = np.add.reduceat(sample[order], first)
    moved = centroids.copy()
    moved[cells] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), ROUNDING)
    return moved


def _nearest(vectors: Floats, rows: Longs, centroids: Floats, count: int, start: int) -> NDArray[np.int32]:
    """Return of each name of a block so many cells with the nearest centroids, the nearest first."""
    products = vectors[rows[start : start + _ROWS]] @ centroids.T
    columns = np.argpartition(-products, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(products, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The pairs that an earlier build found.

    Attributes:
        ids: of all its names, in order; pairs are of their places.
        pairs: that it found.
        by_index: whether an index found them, which misses a few.
        changed: names that came or went since all were compared with each other.
    """

    ids: Ids
    pairs: Array
    by_index: bool = False
    changed: int = 0


def near_pairs(
    ids: Ids, vectors: Floats, eligible: NDArray[np.bool_], kept: Path, made_with: Sequence[str] = ()
) -> Array:
    """Find the pairs of near names, from those of the last build.

    The pairs of names that stayed are taken over, and each new name is compared with all others: no pair of it is
    missed. Of more than `EXACT_NAMES`, an index finds all pairs at first and once many names changed. Then some are
    missed, and where a name went that had more than a hundred near ones, the next nearest one.

    Args:
        ids: of the names, in order.
        vectors: unit vectors, shape (names, dimension), which may be mapped from a file.
        eligible: of each name, whether it may have synonyms.
        kept: the folder of what was found, which is replaced by what this build finds.
        made_with: something else where names have other vectors than in the last build.
    """
    unfinished = kept.with_name(f"{kept.name}-new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    known, count = _load(kept, made_with), int(eligible.sum())
    if known is None or (known.by_index and count <= EXACT_NAMES):
        known = _Kept(np.zeros(0, dtype=ID_TYPE), np.zeros(0, dtype=PAIR))
    place = find(ids, known.ids)
    is_new = eligible.copy()
    is_new[place[place >= 0]] = False
    by_index, changed = known.by_index, known.changed + int(is_new.sum()) + int((place < 0).sum())
    if count > EXACT_NAMES and changed > count // _SHARE:
        by_index, changed = True, 0
        parts = find_near_names(vectors, eligible, unfinished)
    else:
        parts = chain(_moved(known.pairs, place), _pairs_of(np.flatnonzero(is_new), vectors, eligible))
    with ArrayWriter(unfinished / _PAIRS_FILE, PAIR) as pairs:
        for part in parts:
            pairs.append(part)
    np.save(unfinished / "ids.npy", ids)
    stamp = {"of": [_VERSION, *made_with], "by_index": by_index, "changed": changed if by_index else 0}
    (unfinished / _STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    shutil.rmtree(kept, ignore_errors=True)
    unfinished.rename(kept)
    return load_array(kept / _PAIRS_FILE, PAIR, (None,))


def _load(folder: Path, made_with: Sequence[str]) -> _Kept | None:
    """Return what an earlier build found; None where it found nothing, or that cannot be read."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        ids = load_array(folder / "ids.npy", ID_TYPE, (None,))
        pairs = load_array(folder / _PAIRS_FILE, PAIR, (None,))
        for end in ("first", "second"):
            check_range(pairs[end], len(ids))
        kept = _Kept(ids, pairs, bool(stamp["by_index"]), int(stamp["changed"]))
        return kept if stamp["of"] == [_VERSION, *made_with] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
        block = np.asarray(vectors[rows])
        for at in range(0, len(vectors), _OLD_ROWS):
            end = min(len(vectors), at + _OLD_ROWS)
            if end <= rows[0] and not is_old[at:end].any():
                continue  # These names come by their pairs with the block themselves.
            near = np.flatnonzero(block @ vectors[at:end].T >= SYNONYM_COSINE - ROUNDING)
            one, other = rows[near // (end - at)], near % (end - at) + at
            once = is_old[other] | (is_new[other] & (one < other))
            pairs.append(_near(vectors, np.minimum(one, other)[once], np.maximum(one, other)[once]))
        return pairs

    # Blocks are shared out among threads; threads within a product would wait for each other on a busy machine.
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from chain.from_iterable(pool.map(pairs_of, range(0, len(new), _NEW_ROWS)))
