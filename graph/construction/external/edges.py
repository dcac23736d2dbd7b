"""The seventh stage: the edges of each range of entities, in the order in which a walk reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

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
from graph.construction.external.arrays import Array, join_arrays, joined, read_array
from graph.construction.external.layout import Layout, rows_of
from graph.construction.external.synonyms import Synonyms
from graph.synonyms import SYNONYMS_PER_NAME

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
            _count(weight, columns.array(name))
    for number in range(synonyms.runs):
        for name in ("low", "high"):
            _count(weight, synonyms.run(number).array(name))
    ends = np.cumsum(weight)
    cut = np.searchsorted(ends, np.arange(budget, int(ends[-1]) if n_entities else 0, budget))
    return sorted({0, *cut.tolist(), n_entities})


def _count(totals: NDArray[np.int64], entities: Ints) -> None:
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
