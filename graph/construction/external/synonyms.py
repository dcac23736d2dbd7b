"""Pairs of near names: those that the record holds or, where it has too many names for that, those of an index."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.external.arrays import Columns
from graph.construction.external.ids import Ids
from graph.construction.external.kept_pairs import FOLDER, near_pairs
from graph.construction.external.layout import Layout
from graph.construction.external.names import entity_ids
from graph.storage.record import Record
from graph.storage.synonym_pairs import are_left_to_build

_RUN = 1 << 20
"""Pairs that are sorted at once."""

Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Pairs of entities of near names, in runs that are sorted by either end.

    Attributes:
        folder: of the runs.
        runs: how many there are.
    """

    folder: Path
    runs: int

    def run(self, number: int) -> Columns:
        """Return the columns of a run."""
        return Columns(self.folder / str(number))


class _Pairs(NamedTuple):
    """Some pairs of entities, -1 for what is none, with the cosines of their names."""

    one: Longs
    other: Longs
    cosines: NDArray[np.float64]

    def where(self, kept: NDArray[np.bool_]) -> _Pairs:
        return _Pairs(self.one[kept], self.other[kept], self.cosines[kept])


def write_synonyms(record: Record, apart: Collection[tuple[str, str]], layout: Layout, cache: Path) -> Synonyms:
    """Write the pairs of near names, less those that no edge may join, as runs of entities.

    Args:
        record: holds the pairs, or says that they are left to the build.
        apart: (smaller, larger entity id) of names that corrections keep apart.
        layout: holds the names and their vectors.
        cache: the folder that keeps what a build finds for the next one.
    """
    ids, runs = entity_ids(layout), 0
    forbidden = _keys(ids.find(Ids.of([a for a, _ in apart])), ids.find(Ids.of([b for _, b in apart])))
    folder = layout.scratch / "synonyms"
    for pairs in _near(layout, ids, cache) if are_left_to_build(record) else _held(record, ids):
        kept = (pairs.one >= 0) & (pairs.other >= 0) & ~np.isin(_keys(pairs.one, pairs.other), forbidden)
        _write_run(Columns(folder / str(runs)), pairs.where(kept))
        runs += 1
    return Synonyms(folder, runs)


def _held(record: Record, ids: Ids) -> Iterator[_Pairs]:
    pairs = record.each_synonym()
    while block := list(islice(pairs, _RUN)):
        one, other = ids.find(Ids.of([a for a, _, _ in block])), ids.find(Ids.of([b for _, b, _ in block]))
        yield _Pairs(one, other, np.array([cosine for _, _, cosine in block], dtype=np.float64))


def _near(layout: Layout, ids: Ids, cache: Path) -> Iterator[_Pairs]:
    near = near_pairs(ids, layout.whole.array("vectors"), layout.whole.array("eligible"), cache / FOLDER)
    for start in range(0, len(near), _RUN):
        rows = slice(start, start + _RUN)
        yield _Pairs(near.first[rows].astype(np.int64), near.second[rows].astype(np.int64), near.cosine[rows])


def _keys(one: Longs, other: Longs) -> Longs:
    return np.minimum(one, other) << 32 | np.maximum(one, other)


def _write_run(columns: Columns, pairs: _Pairs) -> None:
    """Write some pairs by their lower end, and their places by the higher one."""
    columns.folder.mkdir(parents=True, exist_ok=True)
    low, high = (end(pairs.one, pairs.other).astype(np.int32) for end in (np.minimum, np.maximum))
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    by_high = np.argsort(high, kind="stable")
    columns.save(low=low, high=high, cosine=pairs.cosines[order], by_high=by_high, sorted_high=high[by_high])
