"""Moving the record and the relationship graph of a workspace from SQLite to Postgres."""

from __future__ import annotations

from pathlib import Path

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.storage.lock import WriterLock
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
        BadInput: the workspace has no record in SQLite, or there is a record or a history of that name.
        WorkspaceLocked: another process is writing.
        RecordUnavailable: the server does not answer.
    """
    if not (root / RECORD_FILE).exists() or (root / PLACE_FILE).exists():
        raise BadInput(f"{root} holds no record in SQLite", "Name the folder of a workspace that does")
    place = place_named(name)
    lock = WriterLock(root / RECORD_FILE)
    try:
        _copy(root, place)
        name_record(root, place.name, moved=True)
    finally:
        lock.release()
    return place.name, _set_aside(root)


def _copy(root: Path, place: Place) -> None:
    """Copy record and relationship graph into new schemas, in one transaction."""
    from graph.storage.postgres import new_schema

    with new_schema(place) as target:
        if target is None:
            raise BadInput(f"There is a record {place.name!r} in Postgres already", "Give another name")
        with Record(root / RECORD_FILE) as record:
            record.copy_into(target)
        if has_relationships(root):
            target.turn_to(place.relationships_schema)
            with RelationshipRecord.of(root) as relationships:
                relationships.copy_into(target)


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
