"""Opening a database where it lies: a SQLite file, or in Postgres in its place."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from graph.environment import environment
from graph.errors import BadInput
from graph.storage.database import Database, Kind, SqliteDatabase
from graph.storage.place import (
    PLACE_FILE,
    RECORD_URL_VARIABLE,
    Place,
    given_name,
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
        BadInput: as `place_of`; or the folder is new, and another one made the record that the setting names.
        WorkspaceDamaged: what names the record cannot be read.
        RecordUnavailable: the setting names the record of a new folder, and the server does not answer.
    """
    root = path.parent
    if not (root / PLACE_FILE).exists() and environment().mara_record_url and not in_sqlite(root):
        place = place_named()
        if given_name():
            _take(root, place)
        else:
            name_record(root, place.name)
    return place_of(path)


def _take(root: Path, place: Place) -> None:
    """Let a new folder have the record that the setting names. Raises BadInput where another folder made that."""
    from graph.storage.postgres import new_schema

    with new_schema(place) as made:
        if made is not None:
            name_record(root, place.name)
    if not (root / PLACE_FILE).exists():
        raise BadInput(
            f"The record {place.name!r} is there already, and {root} is a new folder",
            f"Let it have that record: `mara doctor --join-record --record {place.name}`;"
            f" or leave `workspace` out of {RECORD_URL_VARIABLE}, and it gets a record of its own",
        )
