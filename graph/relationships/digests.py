"""Digests of groups of rows: which documents or concepts changed, without reading their edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.relationships.record import RelationshipRecord

Hashes = NDArray[np.uint64]

_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(values: Hashes) -> Hashes:
    """Return well-mixed 64-bit hashes of numbers (SplitMix64's finaliser)."""
    with np.errstate(over="ignore"):
        mixed_up = values + _GOLDEN
        mixed_up = (mixed_up ^ (mixed_up >> np.uint64(30))) * _FIRST
        mixed_up = (mixed_up ^ (mixed_up >> np.uint64(27))) * _SECOND
    return np.asarray(mixed_up ^ (mixed_up >> np.uint64(31)), dtype=np.uint64)


def chained(*columns: NDArray[np.generic]) -> Hashes:
    """Return one hash a row of some columns of whole numbers; their order counts."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found = mixed(found ^ mixed(column.astype(np.uint64)))
    return found


def summed(hashes: Hashes, groups: NDArray[np.intp], n_groups: int) -> Hashes:
    """Return the sum of the hashes of each group, modulo 2^64: the order within a group does not count."""
    found = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(found, groups, hashes)
    return found


def hashes_of_ids(ids: Sequence[str]) -> Hashes:
    """Return the last 64 bits of ids that end in at least 16 hexadecimal digits, as `graph.schema.stable_id`'s do."""
    return np.frombuffer(bytes.fromhex("".join([key[-16:] for key in ids])), dtype=">u8").astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Digests:
    """The digest of each group.

    Attributes:
        keys: what tells groups apart, ascending.
        values: their digests.
    """

    keys: Hashes
    values: Hashes

    @staticmethod
    def of(keys: Hashes, values: Hashes) -> Digests:
        """Return digests whatever the order of their keys."""
        order = np.argsort(keys)
        return Digests(keys[order], values[order])

    @staticmethod
    def load(record: RelationshipRecord, name: str) -> Digests:
        """Return what was saved under a name; no group where nothing was."""
        row = record.execute("SELECT keys, digests FROM digests WHERE name = ?", (name,)).fetchone()
        keys, values = row or (b"", b"")
        return Digests(np.frombuffer(keys, dtype=np.uint64), np.frombuffer(values, dtype=np.uint64))

    def save(self, record: RelationshipRecord, name: str) -> None:
        """Keep the digests under a name, within a transaction."""
        values = (name, self.keys.tobytes(), self.values.tobytes())
        record.execute(
            "INSERT INTO digests VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET keys = excluded.keys, digests = excluded.digests",
            values,
        )

    def differing(self, keys: Hashes, values: Hashes) -> NDArray[np.bool_]:
        """Tell of each group given whether it is unknown here or has another digest here."""
        if not len(self.keys):
            return np.ones(len(keys), dtype=bool)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray((self.keys[places] != keys) | (self.values[places] != values))

    def gone(self, keys: Hashes) -> Hashes:
        """Return the keys of the groups here that are not among those given."""
        return np.setdiff1d(self.keys, keys)
