"""The tables of the record that hold corrections: what was said, and which passages it changes.

They are made with the first correction, so that a record without any needs none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph.corrections.kinds import Correction, What, what_from_json, what_to_json
from graph.errors import BadInput, WorkspaceDamaged
from graph.storage.database import Database, statements_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS corrections (
    id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, note TEXT NOT NULL, made_at TEXT NOT NULL,
    undone_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS corrected (
    passage_id TEXT PRIMARY KEY REFERENCES passages(id) ON DELETE CASCADE, fingerprint TEXT NOT NULL, by TEXT NOT NULL
) WITHOUT ROWID
"""
TABLE_NAMES = ("corrections", "corrected")


@dataclass(frozen=True, slots=True)
class Corrected:
    """What corrections made of a passage.

    Attributes:
        fingerprint: of what it states.
        by: ids of the corrections, ascending.
    """

    fingerprint: str
    by: tuple[int, ...]


def read(db: Database) -> list[Correction]:
    """Return all corrections, by id.

    Raises:
        WorkspaceDamaged: one cannot be read.
    """
    if not _is_there(db):
        return []
    rows = db.execute("SELECT id, what, note, made_at, undone_at FROM corrections ORDER BY id").fetchall()
    try:
        return [Correction(id, what_from_json(json.loads(what)), *told) for id, what, *told in rows]
    except (BadInput, ValueError, TypeError) as fault:
        raise WorkspaceDamaged(
            f"The corrections in the record cannot be read ({fault})", "Restore the record from a backup"
        ) from fault


def add(db: Database, what: What, note: str, made_at: str) -> int:
    """Write a correction; return its id, which is larger than that of any before it."""
    db.define(statements_of(SCHEMA))
    text = json.dumps(what_to_json(what), ensure_ascii=False)
    query = "INSERT INTO corrections (what, note, made_at, undone_at) VALUES (?,?,?,'') RETURNING id"
    return int(db.execute(query, (text, note, made_at)).fetchone()[0])


def undo(db: Database, ids: Sequence[int], undone_at: str) -> None:
    """Note of some corrections that they do not stand any more."""
    db.executemany("UPDATE corrections SET undone_at = ? WHERE id = ?", [(undone_at, id) for id in ids])


def read_corrected(db: Database) -> dict[str, Corrected]:
    """Return {passage id: what corrections made of it} of the passages that they change."""
    if not _is_there(db):
        return {}
    rows = db.execute("SELECT passage_id, fingerprint, by FROM corrected")
    return {key: Corrected(fingerprint, tuple(json.loads(by))) for key, fingerprint, by in rows}


def keep_corrected(db: Database, passage_id: str, fingerprint: str, by: Sequence[int]) -> None:
    """Note that corrections change a passage, and how."""
    db.execute("INSERT INTO corrected VALUES (?,?,?)", (passage_id, fingerprint, json.dumps(by)))


def forget_corrected(db: Database, passage_ids: Sequence[str]) -> None:
    """Note that nothing changes some passages."""
    if _is_there(db):
        db.executemany("DELETE FROM corrected WHERE passage_id = ?", [(key,) for key in passage_ids])


def replace_corrected(db: Database, corrected: Mapping[str, Corrected]) -> None:
    """Put this in place of all that was noted of passages."""
    if _is_there(db):
        db.execute("DELETE FROM corrected")
        for key, each in corrected.items():
            keep_corrected(db, key, each.fingerprint, each.by)


def _is_there(db: Database) -> bool:
    return db.has_table("corrections")
