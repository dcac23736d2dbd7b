"""Opening a database where it lies: a SQLite file, or in Postgres in its place."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from graph.environment import environment
from graph.storage.database import Database, Kind, SqliteDatabase
from graph.storage.place import (
    PLACE_FILE,
    Place,
    in_sqlite,
    name_record,
    place_named,
    place_of,
    put_new,
)


def open_database(path: Path, kind: Kind, *, create: bool = False, read_only: bool = False) -> Database:
    """Open the database whose SQLite file is ``path``, or which is in Postgres in its place, see `place_of`.

    Args:
        path: of the file.
        kind: what it holds.
        create: whether one is made where there is none.
        read_only: whether nothing is written, not even beside it, as where it may not be written.

    Raises:
        MaraError: there is none and ``create`` is false, see `Kind.missing`.
        WorkspaceDamaged: it is no database, or of another format.
        BadInput: the disk refuses (DiskFull: there is no room for its log).
        RecordUnavailable: it is in Postgres, and the server does not answer.
    """
    place = (place_to_make if create else place_of)(path) if kind.schema else None
    db: Database
    if place is not None and kind.schema is not None:
        from graph.storage.postgres import PostgresDatabase

        db = PostgresDatabase(place, kind.schema(place), kind.restore)
    elif create or path.exists():
        if not path.exists():
            _put_file(path, kind)
        db = SqliteDatabase(path, kind.number, kind.restore, read_only=read_only)
    else:
        raise kind.missing(str(path))
    try:
        _make_tables(db, kind, create=create)
    except BaseException:
        db.close()
        raise
    return db


def _put_file(path: Path, kind: Kind) -> None:
    """Put a new file in place, whole at once: a process that is killed meanwhile leaves no half of one."""
    temporary = path.with_name(f".{path.name}.{uuid4().int}")
    try:
        with SqliteDatabase(temporary, kind.number, kind.restore, told=str(path)) as db:
            _make_tables(db, kind, create=True)
        put_new(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _make_tables(db: Database, kind: Kind, *, create: bool) -> None:
    with db.faults_named():
        if db.has_table(kind.table):
            return
        if not create:
            raise kind.missing(db.told)
        with db.transaction():
            if db.has_table(kind.table):  # another process was first
                return
            if isinstance(db, SqliteDatabase):
                db.stamp(kind.number)
            kind.make(db)


def place_to_make(path: Path) -> Place | None:
    """Return the place of a record or a relationship graph, as `place_of` does; where a folder has none yet, choose it.

    It is in Postgres where ``MARA_RECORD_URL`` is set.

    Raises:
        BadInput: as `place_of`.
        WorkspaceDamaged: what names the record cannot be read.
    """
    root = path.parent
    if not (root / PLACE_FILE).exists() and environment().mara_record_url and not in_sqlite(root):
        name_record(root, place_named().name)
    return place_of(path)
