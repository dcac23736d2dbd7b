"""The pairs of synonyms of a record as columns, from the record or, where it has too many names, from their vectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from graph.construction.near_names import find_near_names
from graph.embedding.embeddings import understanding_of
from graph.storage.record import Record
from graph.storage.synonym_pairs import are_left_to_build
from graph.synonyms import may_have_synonyms


@dataclass(frozen=True, slots=True)
class SynonymColumns:
    """Pairs of names with near vectors, one element each.

    Attributes:
        ids: of names.
        first, second: places among the ids.
        cosines: of the names' vectors.
    """

    ids: Sequence[str]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    cosines: NDArray[np.float64]

    def without(self, apart: Collection[tuple[str, str]]) -> SynonymColumns:
        """Return the pairs less those of (smaller id, larger id)."""
        place = {key: number for number, key in enumerate(self.ids)} if apart else {}
        gone = [place[a] * len(place) + place[b] for a, b in apart if a in place and b in place]
        kept = ~np.isin(self.first.astype(np.int64) * len(place) + self.second, np.array(gone, dtype=np.int64))
        return SynonymColumns(self.ids, self.first[kept], self.second[kept], self.cosines[kept])


def synonym_columns(record: Record) -> SynonymColumns:
    """Return the pairs of synonyms of a record, all in memory."""
    if are_left_to_build(record):
        return _near(record)
    pairs = record.synonyms()
    ids = sorted({*chain.from_iterable(pair[:2] for pair in pairs)})
    place = {key: number for number, key in enumerate(ids)}
    first = np.array([place[name] for name, _, _ in pairs], dtype=np.int32)
    second = np.array([place[name] for _, name, _ in pairs], dtype=np.int32)
    return SynonymColumns(ids, first, second, np.array([cosine for _, _, cosine in pairs], dtype=np.float64))


def _near(record: Record) -> SynonymColumns:
    ids, names, vectors = record.names()
    understands = understanding_of(record.embedding_model)
    eligible = np.array([may_have_synonyms(name, understands) for name in names], dtype=np.bool_)
    with TemporaryDirectory() as folder:
        near = find_near_names(vectors, eligible, Path(folder))
        return SynonymColumns(ids, np.array(near.first), np.array(near.second), np.array(near.cosine))
