"""The SQLite file of a record: opening it for writing or for reading, and copying a record into one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from graph.errors import WorkspaceDamaged
from graph.storage import correction_table, versions
from graph.storage.database import BUSY_TIMEOUT_S, Database, SqliteDatabase, fault_named, statements_of
from graph.storage.read_only import open_read_only
from graph.storage.record_tables import SCHEMA

_LOG_TIMEOUT_MS = 1_000
_PAGE_BYTES = 8192
_RESTORE = "Restore it from a backup, or index into a new workspace"
_TABLES = ("meta", "passages", "names", "facts", "passage_names", "passage_facts", "synonyms")


def no_record(place: str) -> WorkspaceDamaged:
    """Return the error that says that there is no record."""
    return WorkspaceDamaged(f"There is no record at {place}", "Index the documents again with `mara index`")


def open_for_writing(path: Path) -> SqliteDatabase:
    """Open a file, or make one. Raises WorkspaceDamaged where it is no SQLite file; BadInput where the disk refuses."""
    is_new = not path.exists()
    with _named(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        if is_new:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
    return _database(connection, path)


def open_for_reading(path: Path, scratch: Path) -> tuple[SqliteDatabase, bool]:
    """Open a file within a transaction that reads, see `open_read_only`; raises as `open_for_writing` does."""
    with _named(path):
        connection, pinned = open_read_only(path, scratch)
    return _database(connection, path), pinned


def copy_to_file(source: Database, path: Path) -> None:
    """Copy a record, as it stands at one moment, to a SQLite file that is not there yet."""
    if isinstance(source, SqliteDatabase):
        source.copy_to(path)
        return
    with closing(open_for_writing(path)) as copy, _reading(source):
        copy.begin()
        copy_record(source, copy)
        copy.commit()


def copy_record(source: Database, target: Database) -> None:
    """Copy a record into an empty database, within a transaction of either: of the source, one that reads."""
    scripts = {"meta": SCHEMA, "corrections": correction_table.SCHEMA, "standing": ";".join(versions.TABLES)}
    for table, script in scripts.items():
        if source.has_table(table):
            target.define(statements_of(script))
    for table in (*_TABLES, *correction_table.TABLE_NAMES, *reversed(versions.TABLE_NAMES)):
        if source.has_table(table):
            target.insert(table, source.scan(f'SELECT * FROM "{table}"'))
    target.continue_numbers()


@contextmanager
def _reading(source: Database) -> Iterator[None]:
    if source.in_transaction:
        yield
        return
    source.begin_reading()
    try:
        yield
    finally:
        source.rollback()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except SqliteDatabase.faults as fault:
        raise fault_named(fault, str(path), _RESTORE) from fault


def _database(connection: sqlite3.Connection, path: Path) -> SqliteDatabase:
    return SqliteDatabase(connection, path, _RESTORE, _LOG_TIMEOUT_MS)
