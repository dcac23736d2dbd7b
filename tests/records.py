"""Records as they stand in either database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from graph.storage.record import Record


def dump(path: Path) -> list[str]:
    """Everything in a record, as SQL."""
    with TemporaryDirectory() as folder, Record(path) as record:
        copy = Path(folder) / "copy.sqlite"
        record.copy_to(copy)
        with closing(sqlite3.connect(copy)) as database:
            return list(database.iterdump())
