"""Pairs of near names that one build found and the next one takes over, so that a few new names cost little."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import load_array
from graph.construction.external.arrays import ID_TYPE, Ids, find
from graph.construction.near_names import PAIR_FILES, ROUNDING, NearPairs, exact_cosines, find_near_names
from graph.storage.synonym_pairs import SYNONYM_COSINE

FOLDER = "near"
"""The folder of the build's cache that holds them."""

_STAMP = "kept.json"
_VERSION = 2
_SHARE = 200
"""One in so many names may have changed since all were compared with each other; then all are again."""
_ROWS, _NEW_ROWS, _SUMMED_ROWS, _PAIRS = 65_536, 256, 4_096, 1 << 20

Floats = NDArray[np.float32]
Longs = NDArray[np.int64]
Sums = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an earlier build found.

    Attributes:
        ids: of all its names, in order; pairs are of their places.
        sums: of each name what tells whether its vector changed; 0 for one that may have no synonyms.
        pairs: that it found.
        changed: names that came, went or changed since all were compared with each other.
    """

    ids: Ids
    sums: Sums
    pairs: NearPairs
    changed: int


def near_pairs(ids: Ids, vectors: Floats, eligible: NDArray[np.bool_], kept: Path) -> NearPairs:
    """Find the pairs of near names, from those of the last build where few names changed since.

    Then the pairs of names that stayed are taken over, and each new name is compared with all others: no pair of it is
    missed. Where a name went that had more than a hundred near ones, the next nearest one may be missing until all are
    compared again.

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
    known, changed = _load(kept), 0
    if known is not None:
        place = _places(known, ids, sums)
        new = np.setdiff1d(np.flatnonzero(eligible), place[place >= 0], assume_unique=True)
        changed = known.changed + len(new) + int(((place < 0) & (known.sums != 0)).sum())
    if known is None or changed > int(eligible.sum()) // _SHARE:
        changed = 0
        find_near_names(vectors, eligible, unfinished)
    else:
        with ExitStack() as stack:
            files = [stack.enter_context((unfinished / name).open("wb")) for name in PAIR_FILES]
            for pairs in (*_moved(known.pairs, place), *_pairs_of(new, vectors, eligible)):
                for file, column in zip(files, (pairs.first, pairs.second, pairs.cosine), strict=True):
                    file.write(np.ascontiguousarray(column).data)
    for name, array in (("ids", ids), ("sums", sums)):
        np.save(unfinished / f"{name}.npy", array)
    (unfinished / _STAMP).write_text(json.dumps({"version": _VERSION, "changed": changed}), encoding="utf-8")
    shutil.rmtree(kept, ignore_errors=True)
    unfinished.rename(kept)
    return NearPairs.load(kept)


def _load(folder: Path) -> _Kept | None:
    """Return what an earlier build found; None where it found nothing, or that cannot be read."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        ids = load_array(folder / "ids.npy", ID_TYPE, (None,))
        sums = load_array(folder / "sums.npy", np.uint64, (len(ids),))
        kept = _Kept(ids, sums, NearPairs.load(folder), int(stamp["changed"]))
        first, second = kept.pairs.first, kept.pairs.second
        if stamp["version"] != _VERSION or not len(first) == len(second) == len(kept.pairs.cosine):
            return None
        return kept if not len(first) or (first.min() >= 0 and second.max() < len(ids)) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sums(vectors: Floats) -> Sums:
    """Return a number for each vector, never 0, that is another one where the vector is."""
    factors = np.random.default_rng(0).integers(1, 2**63, vectors.shape[1], dtype=np.uint64) | np.uint64(1)
    found = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), _SUMMED_ROWS):
        block = np.ascontiguousarray(vectors[start : start + _SUMMED_ROWS]).view(np.uint32)
        found[start : start + _SUMMED_ROWS] = (block * factors).sum(axis=1, dtype=np.uint64)
    return found | np.uint64(1)


def _places(known: _Kept, ids: Ids, sums: Sums) -> Longs:
    """Return of each known name where it stands now; -1 where it is gone or changed, or might have no synonyms."""
    place = find(ids, known.ids)
    there = np.flatnonzero(place >= 0)
    is_same = (sums[place[there]] == known.sums[there]) & (known.sums[there] != 0)
    place[there[~is_same]] = -1
    return place


def _moved(pairs: NearPairs, place: Longs) -> Iterator[NearPairs]:
    """Yield the pairs of names that stayed, by their new places: these are in the same order."""
    for start in range(0, len(pairs), _PAIRS):
        rows = slice(start, start + _PAIRS)
        first, second = place[pairs.first[rows]], place[pairs.second[rows]]
        both = (first >= 0) & (second >= 0)
        yield NearPairs(first[both].astype(np.int32), second[both].astype(np.int32), pairs.cosine[rows][both])


def _pairs_of(new: Longs, vectors: Floats, eligible: NDArray[np.bool_]) -> Iterator[NearPairs]:
    """Yield the pairs of some names with all others, each once."""
    is_new = np.zeros(len(vectors), dtype=bool)
    is_new[new] = True
    for start in range(0, len(new), _NEW_ROWS):
        rows = new[start : start + _NEW_ROWS]
        block = np.asarray(vectors[rows])
        for at in range(0, len(vectors), _ROWS):
            of, others = np.nonzero(block @ vectors[at : at + _ROWS].T >= SYNONYM_COSINE - ROUNDING)
            one, other = rows[of], others + at
            once = eligible[other] & np.where(is_new[other], one < other, True)
            first, second = np.minimum(one, other)[once], np.maximum(one, other)[once]
            cosines = exact_cosines(vectors, first, second)
            near = cosines >= SYNONYM_COSINE
            yield NearPairs(first[near].astype(np.int32), second[near].astype(np.int32), np.minimum(1.0, cosines[near]))
