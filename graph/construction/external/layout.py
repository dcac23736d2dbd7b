"""Where the stages of a build read and write: shards of passages, and folders for what one stage leaves another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.external.arrays import ID_TYPE, Array, Columns, Ids, cuts, joined

_FILE = "layout.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """Neighbouring passages that are read together.

    Attributes:
        folder: of what they say, see `scan`.
        start: the place of the first among all passages.
        size: how many they are.
    """

    folder: Path
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
        scratch: the folder of what is removed when the build is done.
        shards: in the order of their passages.
        parts: into how many ranges entities and facts are cut, so that one fits into memory.
    """

    scratch: Path
    shards: tuple[Shard, ...]
    parts: int

    @property
    def n_passages(self) -> int:
        """How many passages there are."""
        return sum(shard.size for shard in self.shards)

    def of_shard(self, index: int) -> Columns:
        """Where stages leave what concerns one shard."""
        return self._folder("shards", index)

    def of_part(self, stage: str, part: int) -> Columns:
        """Where a stage leaves what concerns one range."""
        return self._folder(stage, part)

    @property
    def whole(self) -> Columns:
        """Where stages leave what concerns all passages."""
        return self._folder("whole", 0)

    def _folder(self, stage: str, number: int) -> Columns:
        folder = self.scratch / stage / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return Columns(folder)

    def save(self) -> None:
        """Write it into its scratch folder, for other processes."""
        shards = [(str(shard.folder), shard.start, shard.size) for shard in self.shards]
        (self.scratch / _FILE).write_text(json.dumps({"shards": shards, "parts": self.parts}), encoding="utf-8")


@lru_cache(maxsize=1)
def load_layout(scratch: Path) -> Layout:
    """Return the layout that was saved in a folder."""
    said = json.loads((scratch / _FILE).read_text(encoding="utf-8"))
    return Layout(scratch, tuple(Shard(Path(folder), *place) for folder, *place in said["shards"]), said["parts"])


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
