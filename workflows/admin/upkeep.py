"""The upkeep of a workspace, told as plain values: examining and repairing it, and its record in Postgres."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph.checks.doctor import Examination, examine_workspace, repair_workspace
from graph.errors import BadInput, MaraError
from graph.publish.derive import publish_committed
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.storage.lock import WriterLock
from graph.storage.place import (
    PLACE_FILE,
    RECORD_FILE,
    RELATIONSHIPS_FILE,
    Place,
    name_record,
    place_name,
    place_named,
)
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from workflows.context import Context
from workflows.runtime.resources import OFFLINE, chat_model_name, chat_model_of

_MOVED = ".moved"


def run_doctor(root: Path, *, repair: bool = False) -> dict[str, Any]:
    """Return what is right and wrong with a workspace; with ``repair``, what was done about it, and what was before.

    The chat model is told beside it, as far as that can be seen without a request.

    Raises:
        WorkspaceMissing: there is none.
        WorkspaceLocked: it is to be repaired, and another process is writing.
        StoreUnavailable: the Chroma server does not take what is written.
    """
    if not repair:
        return {"workspace": str(root), **_told(examine_workspace(root)), "chat_model": _chat_model()}
    before, done, after = repair_workspace(root)
    report = {**_told(after), "done": done, "before": _told(before)}
    return {"workspace": str(root), **report, "chat_model": _chat_model()}


def _told(examination: Examination) -> dict[str, Any]:
    return {
        "ok": examination.ok,
        "generation": examination.generation,
        "findings": [{**asdict(finding), "examples": list(finding.examples)} for finding in examination.findings],
    }


def _chat_model() -> dict[str, Any]:
    """Return the chat model that runs get by default, and whether it can be had; nothing is asked of it."""
    context = Context()
    name = chat_model_name(context)
    try:
        chat_model_of(context, context.temperature)
    except MaraError as fault:
        return {"name": name, "ok": False, "message": fault.message, "advice": fault.hint}
    message = "none is configured, the offline agents answer" if name == OFFLINE else f"{name} is configured"
    return {"name": name, "ok": True, "message": message, "advice": ""}


def join_record(root: Path, name: str = "") -> dict[str, Any]:
    """Let a folder have a record that is in Postgres, and derive its index from the record as it stands.

    A folder that has it already is brought up to date.

    Args:
        root: the folder, which is made where there is none.
        name: of the record; by default the one that the folder names.

    Raises:
        BadInput: no record is named, or the folder has another one.
        WorkspaceDamaged: there is no record of that name.
        WorkspaceLocked: a writer is at work; it derives its own index, and this one can be derived afterwards.
        RecordUnavailable: the server does not answer.
    """
    workspace = Workspace(root)
    is_new = not (root / PLACE_FILE).exists()
    if not is_new and name not in ("", place_name(root)):
        raise BadInput(f"{root} has another record: {place_name(root)!r}", "Name another folder")
    if is_new:
        if not name:
            raise BadInput("No record is named", "Give the name that `mara show` shows of it")
        place = place_named(name)
        root.mkdir(parents=True, exist_ok=True)
        name_record(root, place.name, joins=True)
    try:
        (root / "index").mkdir(exist_ok=True)
        workspace.open_record().close()
    except MaraError:
        if is_new:
            (root / PLACE_FILE).unlink()
        raise
    published = publish_committed(workspace)
    return {"record": place_name(root), "generation": workspace.current(), "derived": published is not None}


def move_record(root: Path, name: str = "") -> dict[str, Any]:
    """Copy what a workspace holds in SQLite to the database of ``MARA_RECORD_URL``, and let the folder name it.

    The derived files stay, and are of the record as it was. The SQLite files are kept under other names.

    Returns:
        The name of the ``record``, and in ``set_aside`` the names of the files that can be deleted.

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
    return {"record": place.name, "set_aside": _set_aside(root)}


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
    names = [(name, suffix) for name in (RECORD_FILE, RELATIONSHIPS_FILE) for suffix in ("", "-wal", "-shm")]
    there = [(name, suffix) for name, suffix in names if (root / f"{name}{suffix}").exists()]
    return [(root / f"{name}{end}").rename(root / f"{name}{_MOVED}{end}").name for name, end in there]
