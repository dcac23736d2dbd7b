"""The metadata of many passages by column: a condition is held against each value once, rather than each passage."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import TextTable, check_range, load_array
from graph.metadata_filter import EXCLUDING, RANGES, Condition, askable_metadata, holds
from graph.schema import MetadataValue, Passage

_NAME = "metadata"


@dataclass(frozen=True)
class MetadataColumns:
    """The values that conditions may ask of some passages, and the passages that have each.

    Attributes:
        count: how many passages there are.
        values: (key, value) for each that stands anywhere, by key.
        starts: shape (len(values) + 1,): value i stands in rows[starts[i]:starts[i + 1]].
        rows: the places of passages, ascending for each value.
    """

    count: int
    values: TextTable
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    @staticmethod
    def of(passages: Iterable[Passage]) -> MetadataColumns:
        """Return the columns of some passages, in their order."""
        codes: dict[tuple[str, str], int] = {}
        pairs, holders, count = array("i"), array("i"), 0
        for row, passage in enumerate(passages):
            for key, value in askable_metadata({**passage.metadata, "source": passage.source}).items():
                pairs.append(codes.setdefault((key, json.dumps(value)), len(codes)))
                holders.append(row)
            count = row + 1
        ordered = sorted(codes)
        place = np.zeros(len(codes), dtype=np.int32)
        place[[codes[value] for value in ordered]] = np.arange(len(codes), dtype=np.int32)
        column = place[np.asarray(pairs, dtype=np.int32)] if pairs else np.zeros(0, dtype=np.int32)
        order = np.argsort(column, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(codes)))]).astype(np.int64)
        return MetadataColumns(count, TextTable.of(ordered, 2), starts, np.asarray(holders, dtype=np.int32)[order])

    def save(self, folder: Path) -> None:
        """Write the columns into an existing folder."""
        self.values.save(folder, _NAME)
        np.save(folder / f"{_NAME}.starts.npy", self.starts)
        np.save(folder / f"{_NAME}.rows.npy", self.rows)

    @staticmethod
    def load(folder: Path, count: int) -> MetadataColumns:
        """Map the columns of so many passages. Raises OSError or ValueError where they are damaged."""
        values = TextTable.load(folder, _NAME, 2)
        starts = load_array(folder / f"{_NAME}.starts.npy", np.int64, (len(values) + 1,))
        rows = load_array(folder / f"{_NAME}.rows.npy", np.int32, (None,))
        if starts[0] != 0 or starts[-1] != len(rows) or (np.diff(starts) < 0).any():
            raise ValueError("the values of metadata do not cover the passages that have them")
        return MetadataColumns(count, values, starts, check_range(rows, count))

    def meeting(self, conditions: Sequence[Condition]) -> NDArray[np.bool_]:
        """Tell of each passage whether it meets all conditions."""
        met = np.ones(self.count, dtype=bool)
        for condition in conditions:
            met &= self._holding(condition)
        return met

    def _holding(self, condition: Condition) -> NDArray[np.bool_]:
        """Tell of each passage whether a condition holds; of one without the key, that is so of what excludes."""
        excludes, operand = condition.operator in EXCLUDING, condition.operand
        meets = np.full(self.count, excludes)
        for place in self._places(condition, operand if isinstance(operand, tuple) else (operand,)):
            having = self.rows[self.starts[place] : self.starts[place + 1]]
            if holds(condition, json.loads(self.values.row(place)[1])) is not excludes:
                meets[having] = not excludes
        return meets

    def _places(self, condition: Condition, operands: tuple[MetadataValue, ...]) -> Iterable[int]:
        """Return where the values stand that a condition may tell from having none, by bisection."""
        if condition.operator not in RANGES:
            texts = {text for operand in operands for text in _texts_equal_to(operand)}
            return [place for text in texts if (place := self._place_of(condition.key, text)) is not None]
        keys = self.values.column(0)
        return range(bisect_left(keys, condition.key), bisect_right(keys, condition.key))

    def _place_of(self, key: str, text: str) -> int | None:
        """Return where one value of a key stands, by bisection; None where it does not."""
        at = bisect_left(range(len(self.values)), [key, text], key=self.values.row)
        return at if at < len(self.values) and self.values.row(at) == [key, text] else None


def _texts_equal_to(value: MetadataValue) -> set[str]:
    """Return the texts of all values that equal one."""
    if isinstance(value, str | bool):
        return {json.dumps(value)}
    zeros = {json.dumps(-0.0)} if value == 0 else set()
    return {json.dumps(int(value)), json.dumps(float(value))} | zeros
