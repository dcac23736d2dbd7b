"""Passages of a snapshot, read where they lie on disk: of very many, no process holds even the ids as objects."""

from __future__ import annotations

import json
from collections.abc import Iterator

from graph.construction.columns import LazySequence, SortedMapping, TextColumn, TextTable
from graph.schema import Passage

_MOST_REMEMBERED = 1 << 15
"""Ids of which the place is remembered: a question looks a few hundred up several times each."""


class StoredPassages(LazySequence[Passage]):
    """Passages of a table: id, title, text, source, metadata as JSON."""

    WIDTH = 5

    def __init__(self, table: TextTable) -> None:
        super().__init__(len(table), self._passage)
        self._table = table
        self.ids = table.column(0)

    def _passage(self, index: int) -> Passage:
        """Return one passage. Raises ValueError where its text or metadata cannot be read."""
        key, title, text, source, metadata = self._table.row(index)
        return Passage(key, title, text, source, json.loads(metadata))


class StoredIds(SortedMapping[int]):
    """Ids in ascending order, by their places, and their places by them.

    Attributes:
        ids: by their places. One that was read is found again without a search.
    """

    def __init__(self, column: TextColumn) -> None:
        super().__init__(column, range(len(column)))
        self.ids = _Ids(self, column)
        self._column = column
        self._remembered: dict[str, int] = {}

    def remembered(self, place: int) -> str:
        """Return the id at a place, and remember it."""
        key = self._column.at(place)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[key] = place
        return key

    def _find(self, key: object) -> int | None:
        known = self._remembered.get(key) if isinstance(key, str) else None
        if known is not None:
            return known
        found = super()._find(key)
        if found is not None:
            self.remembered(found)
        return found


class _Ids(LazySequence[str]):
    def __init__(self, stored: StoredIds, column: TextColumn) -> None:
        super().__init__(len(column), stored.remembered)
        self._column = column

    def __iter__(self) -> Iterator[str]:
        return iter(self._column)
