"""A record as a doctor reads it: as it stands at one moment, with rows that may be broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graph.errors import WorkspaceDamaged
from graph.storage.place import place_of
from graph.storage.record import Record
from graph.storage.record_files import open_for_reading
from graph.storage.record_tables import HELD_BY, RESTORE, TEXT_COLUMN

_UNIT_TOLERANCE = 1e-3


class RecordReader(Record):
    """A record as it stands at one moment, whatever a writer does meanwhile, with rows that may be broken.

    Nothing is written, neither to the file nor beside it.

    Attributes:
        pinned: whether the moment lasts; else nobody was writing, and that is to be looked at again afterwards.
    """

    def __init__(self, path: Path, scratch: Path) -> None:
        """Open the record at ``path``; where it cannot be read in place, a copy in the folder ``scratch``.

        Raises:
            WorkspaceDamaged: there is none, it is no SQLite file, or of another format.
            BadInput: it may not be read.
        """
        self._fence = None
        if (place := place_of(path)) is not None:
            from graph.storage.postgres import PostgresDatabase

            self._db, self.pinned = PostgresDatabase(place, place.schema, must_hold="meta"), True
            with self._damage_named():
                self._db.begin_reading()
        elif not path.exists():
            raise WorkspaceDamaged(f"There is no record at {path}", RESTORE)
        else:
            self._db, self.pinned = open_for_reading(path, scratch)
        self._check_format()

    def faults_of_file(self) -> tuple[list[str], set[str]]:
        """Return what the database says against its files, and which tables have rows that refer to none.

        Raises:
            WorkspaceDamaged: it cannot even say that.
        """
        with self._damage_named():
            return self._db.faults_found()

    def settings(self) -> dict[str, str]:
        """Return the record's settings."""
        return dict(self._rows("SELECT key, value FROM meta"))

    def raw_passages(self) -> list[dict[str, Any]]:
        """Return id, metadata, entities, triples, notes and windows of every passage, as they are stored."""
        columns = ("id", "metadata", "entities", "triples", "notes", "windows")
        rows = self._rows(f"SELECT {', '.join(columns)} FROM passages")
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def texts(self, table: str) -> dict[str, str]:
        """Return {id: text} of the ``names`` or the ``facts``."""
        return dict(self._rows(f"SELECT id, {TEXT_COLUMN[table]} FROM {table}"))

    def links(self, table: str) -> set[tuple[str, str]]:
        """Return (passage id, id) of those who hold ``names`` or ``facts``."""
        return set(self._rows(f"SELECT passage_id, {HELD_BY[table]} FROM passage_{table}"))

    def odd_vectors(self, table: str) -> list[str]:
        """Return the ids of rows whose vector is of another length than the others', not finite or no unit vector."""
        return [key for key, blob in self._rows(f"SELECT id, vector FROM {table}") if not self._is_unit(blob)]

    def odd_past_vectors(self) -> list[str]:
        """Return the ids of the past versions whose vector, by the present model, is none; see `odd_vectors`."""
        query = "SELECT id, vector FROM past_passages WHERE embedding_model = ?"
        return [key for key, blob in self._rows(query, self.embedding_model) if not self._is_unit(blob)]

    def _is_unit(self, blob: object) -> bool:
        if not isinstance(blob, bytes) or len(blob) != 4 * self.dimension:
            return False
        norm = np.linalg.norm(np.frombuffer(blob, dtype=np.float32).astype(np.float64))
        return bool(abs(norm - 1) <= _UNIT_TOLERANCE)
