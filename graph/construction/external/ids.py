"""Ids of entities and facts as numbers: a hash of twelve bytes, of which the order is that of the ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_HIGH, _LOW = 16, 24


class Ids(NamedTuple):
    """Ids of one kind, one element each; equal ids have both parts in common.

    Attributes:
        high: the first eight bytes of the hash.
        low: the other four.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint32]

    @staticmethod
    def of(ids: Sequence[str]) -> Ids:
        """Return the numbers of ids as `graph.schema.stable_id` makes them."""
        hashes = b"".join([bytes.fromhex(key[-_LOW:]) for key in ids])
        parts = np.frombuffer(hashes, dtype=np.dtype([("high", ">u8"), ("low", ">u4")]))
        return Ids(parts["high"].astype(np.uint64), parts["low"].astype(np.uint32))

    @staticmethod
    def join(parts: Sequence[Ids]) -> Ids:
        """Return the ids of all parts, in order."""
        if not parts:
            return Ids(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint32))
        return Ids(np.concatenate([part.high for part in parts]), np.concatenate([part.low for part in parts]))

    def strings(self, kind: str) -> list[str]:
        """Return the ids of a kind as they are written."""
        return [f"{kind}-{high:016x}{low:08x}" for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]

    def take(self, rows: NDArray[np.intp] | slice) -> Ids:
        """Return some of the ids."""
        return Ids(self.high[rows], self.low[rows])

    def groups(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return (for each distinct id, in order, where it stands first; for each element, the place of its id)."""
        order = np.lexsort((self.low, self.high))
        high, low = self.high[order], self.low[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.cumsum(new) - 1
        return order[new], place

    def find(self, sought: Ids) -> NDArray[np.int64]:
        """Return where each of the sought ids stands among these, which ascend; -1 where it does not."""
        at = np.searchsorted(self.high, sought.high)
        found = np.full(len(at), -1, dtype=np.int64)
        open_ = np.flatnonzero(at < len(self.high))
        while len(open_):
            open_ = open_[self.high[at[open_]] == sought.high[open_]]
            hit = self.low[at[open_]] == sought.low[open_]
            found[open_[hit]] = at[open_[hit]]
            open_ = open_[~hit]
            at[open_] += 1
            open_ = open_[at[open_] < len(self.high)]
        return found


def prefix_bounds(parts: int) -> NDArray[np.uint64]:
    """Return the first parts of ids that cut them into so many ranges of equal width, without those at the ends."""
    step = 2**64 // parts
    return np.array([step * part for part in range(1, parts)], dtype=np.uint64)


def cuts(high: NDArray[np.uint64], parts: int) -> list[int]:
    """Return where ascending ids are cut into the ranges of `prefix_bounds`, ends included."""
    return [0, *np.searchsorted(high, prefix_bounds(parts)).tolist(), len(high)]
