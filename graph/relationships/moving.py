"""Moving the record and the relationship graph of a workspace from SQLite to Postgres."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.storage.database import Database, faults_named
from graph.storage.lease import claim_lease
from graph.storage.place import (
    PLACE_FILE,
    RECORD_FILE,
    RELATIONSHIPS_FILE,
    Place,
    name_record,
    place_named,
)
from graph.storage.record import Record

_MOVED = ".moved"


def move_to_postgres(root: Path, name: str = "") -> tuple[str, list[str]]:
    """Copy what a workspace holds in SQLite to the database of ``MARA_RECORD_URL``, and let the folder name it.

    What is derived stays, and is of the record as it was. The SQLite files are kept under other names.

    Returns:
        The name of the record, and the names of the files that can be deleted.

    Raises:
        BadInput: the workspace has no record in SQLite, or there is a record of that name.
        WorkspaceLocked: another process is writing.
        RecordUnavailable: the server does not answer.
    """
    if not (root / RECORD_FILE).exists() or (root / PLACE_FILE).exists():
        raise BadInput(f"{root} holds no record in SQLite", "Name the folder of a workspace that does")
    place = place_named(name)
    lease = claim_lease(root / RECORD_FILE, root / "lock")
    try:
        _check_free(place)
        if has_relationships(root):
            with RelationshipRecord.of(root) as relationships:
                _fill(place, place.relationships_schema, relationships.copy_into)
        with Record(root / RECORD_FILE) as record:
            _fill(place, place.schema, record.copy_into)
        name_record(root, place.name, moved=True)
    finally:
        lease.release()
    return place.name, _set_aside(root)


def _check_free(place: Place) -> None:
    from graph.storage.postgres import PostgresDatabase

    if PostgresDatabase.holds(place, place.schema, "meta"):
        raise BadInput(f"There is a record {place.name!r} in Postgres already", "Give another name")


def _fill(place: Place, schema: str, copy: Callable[[Database], None]) -> None:
    """Fill a schema in one transaction; what another attempt left there goes."""
    from graph.storage.postgres import PostgresDatabase

    with closing(PostgresDatabase(place, schema)) as target, faults_named(target):
        target.begin()
        try:
            target.drop()
            copy(target)
            target.commit()
        except BaseException:
            target.rollback()
            raise


def _set_aside(root: Path) -> list[str]:
    """Give the SQLite files other names; return these."""
    found = []
    for name in (RECORD_FILE, RELATIONSHIPS_FILE):
        for suffix in ("", "-wal", "-shm"):
            path = root / f"{name}{suffix}"
            if path.exists():
                path.rename(root / f"{name}{_MOVED}{suffix}")
                found.append(f"{name}{_MOVED}{suffix}")
    return found
