"""The seventh stage: the edges of each range of entities, in the order in which a walk reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
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
    rank_in_group,
)
from graph.construction.edges import EDGE_TYPES, Edges, sort_edges
from graph.construction.external.arrays import Columns, Ids, find, join_arrays, joined, packed, read_array
from graph.construction.external.kept_pairs import FOLDER, near_pairs
from graph.construction.external.layout import Layout, even_ranges, rows_of
from graph.storage.record import Record
from graph.storage.synonym_pairs import SYNONYMS_PER_NAME, are_left_to_build

_RUN = 1 << 20
"""Pairs that are sorted at once."""

Longs = NDArray[np.int64]


class _Pairs(NamedTuple):
    """Some pairs of entities, -1 for what is none, with the cosines of their names."""

    one: Longs
    other: Longs
    cosines: NDArray[np.float64]

    def where(self, kept: NDArray[np.bool_]) -> _Pairs:
        return _Pairs(self.one[kept], self.other[kept], self.cosines[kept])


def write_synonyms(record: Record, apart: Collection[tuple[str, str]], layout: Layout, cache: Path) -> int:
    """Write the pairs of near names, less those that no edge may join, in runs by either end; return how many runs.

    Args:
        record: holds the pairs, or says that they are left to the build.
        apart: (smaller, larger entity id) of names that corrections keep apart.
        layout: holds the names and their vectors.
        cache: the folder that keeps what a build finds for the next one.
    """
    ids, runs = layout.whole.array("entity_ids"), 0
    forbidden = _keys(find(ids, packed([a for a, _ in apart])), find(ids, packed([b for _, b in apart])))
    for pairs in _near(layout, ids, cache) if are_left_to_build(record) else _held(record, ids):
        kept = (pairs.one >= 0) & (pairs.other >= 0) & ~np.isin(_keys(pairs.one, pairs.other), forbidden)
        _write_run(layout.of_part("synonyms", runs), pairs.where(kept))
        runs += 1
    return runs


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
    low, high = (end(pairs.one, pairs.other).astype(np.int32) for end in (np.minimum, np.maximum))
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    by_high = np.argsort(high, kind="stable")
    columns.save(low=low, high=high, cosine=pairs.cosines[order], by_high=by_high, sorted_high=high[by_high])


_IN_RANGE = 1 << 22
"""Links, triples and pairs that the edges of one range are made of, more or less."""

Ints = NDArray[np.int32]


def ranges_of_entities(layout: Layout, runs: int, budget: int) -> list[tuple[int, int]]:
    """Return the ranges into which entities are cut that have about as many links, triples and pairs."""
    weight = np.zeros(layout.n_entities, dtype=np.int64)
    for index in range(len(layout.shards)):
        columns = layout.of_shard(index)
        for name in ("edge_entities", "fact_low"):
            count_into(weight, columns.array(name))
    for number in range(runs):
        for name in ("low", "high"):
            count_into(weight, layout.of_part("synonyms", number).array(name))
    return even_ranges(weight, budget)


def count_into(totals: NDArray[np.int64], entities: Ints) -> None:
    """Add to the total of each entity how often it stands among some."""
    distinct, times = np.unique(entities, return_counts=True)
    totals[distinct] += times


def far_pairs(layout: Layout, runs: int, part: int, start: int, end: int) -> None:
    """Write which pairs are not among the nearest of an end that falls into the range, see `synonym_edges`."""
    names, highs, lows, cosines, places = [], [], [], [], []
    before = 0
    for number in range(runs):
        run = layout.of_part("synonyms", number)
        low, high, cosine = (run.array(name) for name in ("low", "high", "cosine"))
        by_low, by_high = (rows_of(run.array(name), start, end) for name in ("low", "sorted_high"))
        rows = np.concatenate([np.arange(by_low.start, by_low.stop), run.array("by_high")[by_high]])
        names.append(np.concatenate([low[by_low], run.array("sorted_high")[by_high]]))
        lows.append(low[rows])
        highs.append(high[rows])
        cosines.append(cosine[rows])
        places.append(rows + before)
        before += len(low)
    name, low, high = (joined(parts, np.int32) for parts in (names, lows, highs))
    order = np.lexsort((high, low, -joined(cosines, np.float64), name))
    far = rank_in_group(name[order]) >= SYNONYMS_PER_NAME
    layout.of_part("far", part).save(places=joined(places, np.int64)[order[far]])


def join_far(layout: Layout, parts: int) -> None:
    """Write the places of the pairs that are far for both ends: there is no edge of them."""
    far = joined([layout.of_part("far", part).array("places") for part in range(parts)], np.int64)
    places, times = np.unique(far, return_counts=True)
    layout.whole.save(far_pairs=places[times == 2])


def make_edges(layout: Layout, runs: int, cuts: tuple[float, float], part: int, start: int, end: int) -> None:
    """Write the edges of the range of entities that their sources fall into: of links, facts and synonyms.

    Args:
        layout: the build's.
        runs: of synonyms.
        cuts: the least weights of SECONDARY and of PRIMARY.
        part: the range's number.
        start: its first entity.
        end: the one behind it.
    """
    names = ("fact_low", "fact_high", "fact_kinds", "fact_confidences")
    facts = fact_edges(*layout.rows(names, (np.int32, np.int32, np.uint8, np.float64), start, end))
    links = _passage_edges(layout, cuts, start, end)
    edges = sort_edges(join_edges([facts, _synonym_edges(layout, runs, start, end), links]))
    columns = layout.of_part("edges", part)
    columns.save(**{column.name: getattr(edges, column.name) for column in fields(Edges)})


def _synonym_edges(layout: Layout, runs: int, start: int, end: int) -> Edges:
    lows, highs, cosines = [], [], []
    far, before = layout.whole.array("far_pairs"), 0
    for number in range(runs):
        run = layout.of_part("synonyms", number)
        low = run.array("low")
        rows = rows_of(low, start, end)
        gone = far[slice(*np.searchsorted(far, [before + rows.start, before + rows.stop]))] - before
        kept = np.setdiff1d(np.arange(rows.start, rows.stop), gone, assume_unique=True)
        lows.append(low[kept])
        highs.append(run.array("high")[kept])
        cosines.append(run.array("cosine")[kept])
        before += len(low)
    in_triples = read_array(layout.folder / "triple_passages.npy")
    return near_name_edges(joined(lows, np.int32), joined(highs, np.int32), joined(cosines, np.float64), in_triples)


def _passage_edges(layout: Layout, cuts: tuple[float, float], start: int, end: int) -> Edges:
    names = ("edge_entities", "edge_passages", "edge_weights", "edge_titled", "edge_in_triples", "edge_offsets")
    types = (np.int32, np.int32, np.float64, np.bool_, np.bool_, np.int32)
    entities, passages, weights, titled, in_triples, offsets = layout.rows(names, types, start, end)
    is_title, shares = layout.whole.array("is_title"), layout.whole.array("title_shares")
    links = WeighedLinks(passages, entities, weights, titled, is_title[entities], in_triples, offsets)
    return classed_edges(links, layout.n_entities, shares[passages], cuts)


def join_edge_parts(layout: Layout, parts: int) -> int:
    """Write the edges of all ranges into the generation's folder; return how many they are."""
    written = 0
    for name, kind in EDGE_TYPES.items():
        paths = (layout.of_part("edges", part).folder / f"{name}.npy" for part in range(parts))
        written = join_arrays(paths, layout.folder / f"edge_{name}.npy", kind)
    return written
