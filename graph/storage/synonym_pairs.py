"""Where the pairs of synonyms come from: the record up to a number of names, above it an index as the graph is built.

Names may be synonyms where their vectors are near. A writer that adds names finds their pairs at once, each new name by
its product with every other. Above `EXACT_NAMES` it finds none, the record holds none and notes so; the build finds
all of them by an index that misses a few. Which of the two holds follows from the number of names alone, however the
record came by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from graph.embedding.embeddings import understanding_of
from graph.storage.record import SYNONYMS, Record
from graph.text import name_length

SYNONYM_COSINE = 0.8
"""Two names are synonyms where the cosine of their vectors is at least this."""

SYNONYM_SHORTEST = 3
"""A synonym edge needs names of at least this many letters or digits."""

SYNONYMS_PER_NAME = 100
"""A pair is kept when it is among so many nearest of at least one of its names."""

EXACT_NAMES = 200_000
"""Of more names, the product of each with each takes minutes and grows with their square: an index finds the pairs."""


def may_have_synonyms(name: str, understands: Callable[[str], bool]) -> bool:
    """Tell whether a name's vector says what else it may be called; ``understands`` is the embedding model's."""
    return name_length(name) >= SYNONYM_SHORTEST and understands(name)


_BLOCK_ROWS = 1024
_ROUNDING = 2e-3
"""More than half precision can change the cosine of two unit vectors."""
_GROWTH = 1.5
_SPARE_ROWS = 4_096


class NameVectors:
    """The names that may have synonyms; a block product of their rounded vectors finds pairs of new names.

    Rounded to half precision, the vectors of 100,000 names take 77 MB; what the product finds near enough is computed
    from the vectors themselves.
    """

    def __init__(
        self, understands: Callable[[str], bool], read: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> None:
        """``read`` returns the vectors of names that are known already."""
        self._understands = understands
        self._read = read
        self._ids: list[str] = []
        self._rounded: NDArray[np.float16] = np.zeros((0, 0), dtype=np.float16)

    def read_from(self, record: Record) -> None:
        """Read vectors from this opening of the record."""
        self._read = record.name_vectors

    def add(
        self, ids: Sequence[str], names: Sequence[str], vectors: NDArray[np.float32]
    ) -> list[tuple[str, str, float]]:
        """Take in new names; return (smaller id, larger id, cosine) of each new pair that reaches the bar."""
        first = len(self._ids)
        self.learn(ids, names, vectors)
        pairs = [pair for pairs in self._near(first) for pair in pairs]
        row_of = {key: row for row, key in enumerate(ids)}
        known = sorted({key for pair in pairs for key in pair} - row_of.keys())
        row_of.update((key, len(ids) + row) for row, key in enumerate(known))
        every = np.concatenate([vectors, self._read(known)]) if known else vectors
        return list(self._exact(pairs, every, row_of))

    def learn(self, ids: Sequence[str], names: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Take in names whose pairs are known already."""
        rows = [i for i, name in enumerate(names) if may_have_synonyms(name, self._understands)]
        if not rows:
            return
        first, needed = len(self._ids), len(self._ids) + len(rows)
        if needed > len(self._rounded):
            grown = np.zeros((max(needed + _SPARE_ROWS, int(_GROWTH * first)), vectors.shape[1]), dtype=np.float16)
            if first:
                grown[:first] = self._rounded[:first]
            self._rounded = grown
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            self._rounded[first + start : first + start + len(block)] = vectors[block]
        self._ids.extend(ids[i] for i in rows)

    def forget(self, ids: Collection[str]) -> None:
        """Let go of names that are no more."""
        kept = [row for row, key in enumerate(self._ids) if key not in ids] if ids else []
        if ids and len(kept) < len(self._ids):
            self._rounded[: len(kept)] = self._rounded[kept]
            self._ids = [self._ids[row] for row in kept]

    def _near(self, first: int) -> Iterator[list[tuple[str, str]]]:
        """Yield the pairs (smaller id, larger id) of a name from ``first`` on and an earlier one that may be near."""
        n = len(self._ids)
        blocks = product(range(first, n, _BLOCK_ROWS), range(0, n, _BLOCK_ROWS))
        for start, other in ((start, other) for start, other in blocks if other < start + _BLOCK_ROWS):
            new = self._rounded[start : min(n, start + _BLOCK_ROWS)].astype(np.float32)
            old = self._rounded[other : min(n, other + _BLOCK_ROWS)].astype(np.float32)
            rows, columns = np.nonzero(new @ old.T >= SYNONYM_COSINE - _ROUNDING)
            rows, columns = rows + start, columns + other
            earlier = columns < rows
            ends = zip(rows[earlier].tolist(), columns[earlier].tolist(), strict=True)
            yield [_in_order(self._ids[row], self._ids[column]) for row, column in ends]

    @staticmethod
    def _exact(
        pairs: Sequence[tuple[str, str]], vectors: NDArray[np.float32], row_of: Mapping[str, int]
    ) -> Iterator[tuple[str, str, float]]:
        """Yield the pairs that reach the bar, each computed by itself: whatever else is, their cosine is the same."""
        for start in range(0, len(pairs), _BLOCK_ROWS):
            block = pairs[start : start + _BLOCK_ROWS]
            left, right = ([row_of[key] for key in ends] for ends in zip(*block, strict=True))
            cosines = (vectors[left].astype(np.float64) * vectors[right]).sum(axis=1)
            for (a, b), cosine in zip(block, cosines.tolist(), strict=True):
                if cosine >= SYNONYM_COSINE:
                    yield a, b, min(1.0, cosine)


def _in_order(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


_BY_INDEX = "index"


def are_left_to_build(record: Record) -> bool:
    """Tell whether the record holds no pairs of synonyms, since the build finds them."""
    return record.note(SYNONYMS) == _BY_INDEX


def leave_to_build(record: Record, names: int) -> bool:
    """Tell whether a writer is to find no pairs, where the record is about to hold so many names; note it if so."""
    if are_left_to_build(record):
        return True
    if names <= EXACT_NAMES:
        return False
    record.replace_synonyms([], _BY_INDEX)
    return True


def settle_synonyms(record: Record) -> None:
    """Let the record hold every pair, or none, as the number of its names asks for; the caller holds the lock."""
    if not leave_to_build(record, record.count_names()) or record.count_names() > EXACT_NAMES:
        return
    ids, names, vectors = record.names()
    known = NameVectors(understanding_of(record.embedding_model), record.name_vectors)
    record.replace_synonyms(known.add(ids, names, vectors), "")
