"""The seventh stage: the edges of each range of entities, in the order in which a walk reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.edge_weights import (
    WeighedLinks,
    classed_edges,
    fact_edges,
    join_edges,
    near_name_edges,
)
from graph.construction.edges import EDGE_TYPES, Edges, sort_edges
from graph.construction.external.arrays import Array, Columns, Ids, find, join_arrays, joined, packed, read_array
from graph.construction.external.kept_pairs import FOLDER, near_pairs
from graph.construction.external.layout import Layout, rows_of
from graph.storage.record import Record
from graph.storage.synonym_pairs import SYNONYMS_PER_NAME, are_left_to_build

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
    ids, runs = layout.whole.array("entity_ids"), 0
    forbidden = _keys(find(ids, packed([a for a, _ in apart])), find(ids, packed([b for _, b in apart])))
    folder = layout.scratch / "synonyms"
    for pairs in _near(layout, ids, cache) if are_left_to_build(record) else _held(record, ids):
        kept = (pairs.one >= 0) & (pairs.other >= 0) & ~np.isin(_keys(pairs.one, pairs.other), forbidden)
        _write_run(Columns(folder / str(runs)), pairs.where(kept))
        runs += 1
    return Synonyms(folder, runs)


def _held(record: Record, ids: Ids) -> Iterator[_Pairs]:
    pairs = record.each_synonym()
    while block := list(islice(pairs, _RUN)):
        one, other = find(ids, packed([a for a, _, _ in block])), find(ids, packed([b for _, b, _ in block]))
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


_IN_RANGE = 1 << 22
"""Links, triples and pairs that the edges of one range are made of, more or less."""

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class EdgesTask:
    """A task: to make the edges whose sources fall into a range of entities.

    Attributes:
        folder: the generation's.
        start, end: the range.
        cuts: the least weights of SECONDARY and of PRIMARY.
    """

    layout: Layout
    folder: Path
    part: int
    start: int
    end: int
    n_entities: int
    synonyms: Synonyms
    cuts: tuple[float, float] = (0.0, 0.0)


def ranges_of_entities(layout: Layout, n_entities: int, synonyms: Synonyms, budget: int = _IN_RANGE) -> list[int]:
    """Return where the entities are cut into ranges of about as many links, triples and pairs; ends included."""
    weight = np.zeros(n_entities, dtype=np.int64)
    for index in range(len(layout.shards)):
        columns = layout.of_shard(index)
        for name in ("edge_entities", "fact_low"):
            count_into(weight, columns.array(name))
    for number in range(synonyms.runs):
        for name in ("low", "high"):
            count_into(weight, synonyms.run(number).array(name))
    ends = np.cumsum(weight)
    cut = np.searchsorted(ends, np.arange(budget, int(ends[-1]) if n_entities else 0, budget))
    return sorted({0, *cut.tolist(), n_entities})


def count_into(totals: NDArray[np.int64], entities: Ints) -> None:
    """Add to the total of each entity how often it stands among some."""
    distinct, times = np.unique(entities, return_counts=True)
    totals[distinct] += times


def far_pairs(task: EdgesTask) -> None:
    """Write which pairs are not among the nearest of an end that falls into the range, see `synonym_edges`."""
    names, highs, lows, cosines, places = [], [], [], [], []
    start = 0
    for number in range(task.synonyms.runs):
        run = task.synonyms.run(number)
        low, high, cosine = (run.array(name) for name in ("low", "high", "cosine"))
        by_low, by_high = (rows_of(run.array(name), task.start, task.end) for name in ("low", "sorted_high"))
        rows = np.concatenate([np.arange(by_low.start, by_low.stop), run.array("by_high")[by_high]])
        names.append(np.concatenate([low[by_low], run.array("sorted_high")[by_high]]))
        lows.append(low[rows])
        highs.append(high[rows])
        cosines.append(cosine[rows])
        places.append(rows + start)
        start += len(low)
    name, low, high = (joined(parts, np.int32) for parts in (names, lows, highs))
    order = np.lexsort((high, low, -joined(cosines, np.float64), name))
    far = rank_in_group(name[order]) >= SYNONYMS_PER_NAME
    task.layout.of_part("far", task.part).save(places=joined(places, np.int64)[order[far]])


def rank_in_group(values: Ints) -> NDArray[np.intp]:
    """Return of each element of a sorted column how many equal ones stand before it."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    position = np.arange(len(values))
    return position - np.maximum.accumulate(np.where(new, position, 0))


def join_far(layout: Layout, parts: int) -> None:
    """Write the places of the pairs that are far for both ends: there is no edge of them."""
    far = joined([layout.of_part("far", part).array("places") for part in range(parts)], np.int64)
    places, times = np.unique(far, return_counts=True)
    layout.whole.save(far_pairs=places[times == 2])


def make_edges(task: EdgesTask) -> None:
    """Write the edges of a range: of links, facts and synonyms."""
    edges = sort_edges(join_edges([_fact_edges(task), _synonym_edges(task), _passage_edges(task)]))
    columns = task.layout.of_part("edges", task.part)
    columns.save(**{column.name: getattr(edges, column.name) for column in fields(Edges)})


def _fact_edges(task: EdgesTask) -> Edges:
    names = ("fact_low", "fact_high", "fact_kinds", "fact_confidences")
    low, high, kinds, confidences = _rows(task, names, (np.int32, np.int32, np.uint8, np.float64))
    return fact_edges(low, high, kinds, confidences)


def _synonym_edges(task: EdgesTask) -> Edges:
    lows, highs, cosines = [], [], []
    far, start = task.layout.whole.array("far_pairs"), 0
    for number in range(task.synonyms.runs):
        run = task.synonyms.run(number)
        low = run.array("low")
        rows = rows_of(low, task.start, task.end)
        gone = far[slice(*np.searchsorted(far, [start + rows.start, start + rows.stop]))] - start
        kept = np.setdiff1d(np.arange(rows.start, rows.stop), gone, assume_unique=True)
        lows.append(low[kept])
        highs.append(run.array("high")[kept])
        cosines.append(run.array("cosine")[kept])
        start += len(low)
    in_triples = read_array(task.folder / "triple_passages.npy")
    low, high = joined(lows, np.int32), joined(highs, np.int32)
    return near_name_edges(low, high, joined(cosines, np.float64), in_triples)


def _passage_edges(task: EdgesTask) -> Edges:
    names = ("edge_entities", "edge_passages", "edge_weights", "edge_titled", "edge_in_triples", "edge_offsets")
    types = (np.int32, np.int32, np.float64, np.bool_, np.bool_, np.int32)
    entities, passages, weights, titled, in_triples, offsets = _rows(task, names, types)
    is_title, shares = task.layout.whole.array("is_title"), task.layout.whole.array("title_shares")
    links = WeighedLinks(passages, entities, weights, titled, is_title[entities], in_triples, offsets)
    return classed_edges(links, task.n_entities, shares[passages], task.cuts)


def _rows(task: EdgesTask, names: Sequence[str], types: Sequence[type[np.generic]]) -> list[Array]:
    """Return the rows of all shards' columns whose first falls into the range."""
    found: list[list[Array]] = [[] for _ in names]
    for index in range(len(task.layout.shards)):
        columns = task.layout.of_shard(index)
        rows = rows_of(columns.array(names[0]), task.start, task.end)
        for parts, name in zip(found, names, strict=True):
            # A copy: a map of each shard's file would take as many open files.
            parts.append(np.array(columns.array(name)[rows]))
    return [joined(parts, kind) for parts, kind in zip(found, types, strict=True)]


def join_edge_parts(layout: Layout, folder: Path, parts: int) -> int:
    """Write the edges of all ranges into a generation's folder; return how many they are."""
    written = 0
    for name, kind in EDGE_TYPES.items():
        paths = (layout.of_part("edges", part).folder / f"{name}.npy" for part in range(parts))
        written = join_arrays(paths, folder / f"edge_{name}.npy", kind)
    return written
