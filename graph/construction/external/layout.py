"""Where the stages of a build read and write: shards of passages, and folders for what one stage leaves another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.external.arrays import ID_TYPE, Array, Columns, Ids, cuts, joined

SCRATCH = "building"
"""The folder beside a generation's files of what is removed when the build is done."""

_FILE = "layout.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """Neighbouring passages that are read together.

    Attributes:
        folder: of what they say, see `scan`.
        first: the id of the first passage.
        last: of the last one.
        start: the place of the first among all passages.
        size: how many they are.
    """

    folder: Path
    first: str
    last: str
    start: int
    size: int

    @property
    def columns(self) -> Columns:
        """What they say."""
        return Columns(self.folder)


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one build.

    Attributes:
        folder: the generation's.
        root: the workspace's.
        shards: in the order of their passages.
        parts: into how many ranges entities and facts are cut, so that one fits into memory.
    """

    folder: Path
    root: Path
    shards: tuple[Shard, ...]
    parts: int

    @property
    def n_passages(self) -> int:
        """How many passages there are."""
        return sum(shard.size for shard in self.shards)

    @property
    def n_entities(self) -> int:
        """How many entities there are, once the names of all ranges are joined."""
        return len(self.whole.array("entity_ids"))

    def of_shard(self, index: int) -> Columns:
        """Where stages leave what concerns one shard."""
        return self.of_part("shards", index)

    def of_part(self, stage: str, part: int) -> Columns:
        """Where a stage leaves what concerns one range."""
        folder = self.folder / SCRATCH / stage / str(part)
        folder.mkdir(parents=True, exist_ok=True)
        return Columns(folder)

    @property
    def whole(self) -> Columns:
        """Where stages leave what concerns all passages."""
        return self.of_part("whole", 0)

    def rows(self, names: Sequence[str], types: Sequence[type[np.generic]], start: int, end: int) -> list[Array]:
        """Return the rows of all shards' columns whose first holds a number from ``start`` to ``end``."""
        found: list[list[Array]] = [[] for _ in names]
        for index in range(len(self.shards)):
            columns = self.of_shard(index)
            rows = rows_of(columns.array(names[0]), start, end)
            for parts, name in zip(found, names, strict=True):
                # A copy: a map of each shard's file would take as many open files.
                parts.append(np.array(columns.array(name)[rows]))
        return [joined(parts, kind) for parts, kind in zip(found, types, strict=True)]

    def save(self) -> None:
        """Write it into its scratch folder, for other processes."""
        (self.folder / SCRATCH / _FILE).write_text(json.dumps(asdict(self), default=str), encoding="utf-8")


@lru_cache(maxsize=1)
def load_layout(folder: Path) -> Layout:
    """Return the layout that was saved for a generation's folder."""
    said = json.loads((folder / SCRATCH / _FILE).read_text(encoding="utf-8"))
    shards = tuple(Shard(**{**shard, "folder": Path(shard["folder"])}) for shard in said["shards"])
    return Layout(folder, Path(said["root"]), shards, said["parts"])


def even_ranges(weights: NDArray[np.int64], budget: int) -> list[tuple[int, int]]:
    """Return the ranges into which a column is cut that have about so much weight each."""
    ends = np.cumsum(weights)
    cut = np.searchsorted(ends, np.arange(budget, int(ends[-1]) if len(ends) else 0, budget))
    return list(pairwise(sorted({0, *cut.tolist(), len(ends)})))


class Slice(NamedTuple):
    """The rows of a shard that fall into a range."""

    shard: int
    columns: Columns
    start: int
    end: int

    def array(self, name: str) -> Array:
        """Return a copy of a column's rows: a map of each shard's file would take as many open files."""
        return np.array(self.columns.array(name)[self.start : self.end])


def slices_of_ids(layout: Layout, kind: str, part: int) -> list[Slice]:
    """Return of each shard where the ids of ``names`` or ``facts`` stand that fall into a range."""
    found = []
    for index, shard in enumerate(layout.shards):
        bounds = cuts(shard.columns.array(f"{kind}_ids"), layout.parts)
        found.append(Slice(index, shard.columns, bounds[part], bounds[part + 1]))
    return found


def ids_of(slices: Sequence[Slice], kind: str) -> Ids:
    """Return the ids of some slices, one after the other."""
    return joined([each.array(f"{kind}_ids") for each in slices], ID_TYPE)


def rows_of(keys: NDArray[np.int32], start: int, end: int) -> slice:
    """Return which rows of a column of ascending numbers hold those from ``start`` to ``end``."""
    low, high = np.searchsorted(keys, [start, end])
    return slice(int(low), int(high))
