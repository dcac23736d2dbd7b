"""The tables of a record, the rows that are written to them together, and those that passages hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Stated
from graph.corrections.kinds import Correction, What, what_from_json, what_to_json
from graph.errors import BadInput, WorkspaceDamaged
from graph.storage.database import AMONG, Database, statements_of
from graph.storage.entry import Entry, facts_of, names_of

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
    id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL, source TEXT NOT NULL, metadata TEXT NOT NULL,
    fingerprint TEXT NOT NULL, extractor TEXT NOT NULL, entities TEXT NOT NULL, triples TEXT NOT NULL,
    notes TEXT NOT NULL, failure TEXT NOT NULL, windows INTEGER NOT NULL, vector BLOB NOT NULL
);
CREATE TABLE names (id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TABLE facts (id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TABLE passage_names (
    passage_id TEXT NOT NULL REFERENCES passages(id) ON DELETE CASCADE, name_id TEXT NOT NULL,
    PRIMARY KEY (passage_id, name_id)
) WITHOUT ROWID;
CREATE INDEX passages_of_name ON passage_names (name_id);
CREATE TABLE passage_facts (
    passage_id TEXT NOT NULL REFERENCES passages(id) ON DELETE CASCADE, fact_id TEXT NOT NULL,
    PRIMARY KEY (passage_id, fact_id)
) WITHOUT ROWID;
CREATE INDEX passages_of_fact ON passage_facts (fact_id);
"""

CORRECTIONS = """
CREATE TABLE IF NOT EXISTS corrections (
    id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, note TEXT NOT NULL, made_at TEXT NOT NULL,
    undone_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS corrected (
    passage_id TEXT PRIMARY KEY REFERENCES passages(id) ON DELETE CASCADE, fingerprint TEXT NOT NULL, by TEXT NOT NULL
) WITHOUT ROWID
"""
"""The tables of corrections, and of the passages that they change: made with the first one."""

CORRECTION_TABLES = ("corrections", "corrected")

HELD_BY = {"names": "name_id", "facts": "fact_id"}
"""The tables whose rows passages hold, and the column of ``passage_names`` or ``passage_facts`` that refers to them."""

TEXT_COLUMN = {"names": "name", "facts": "text"}
RESTORE = "Restore the record from a backup, or index the documents into a new workspace"


@dataclass(frozen=True, slots=True)
class Corrected:
    """A passage as corrections left it.

    Attributes:
        fingerprint: of what it states.
        by: ids of the corrections, ascending.
    """

    fingerprint: str
    by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The state of an entry, to compare with the wanted one.

    Attributes:
        fingerprint: of all that was given and extracted.
        extractor: who extracted.
        failure: why nothing could be extracted; empty otherwise.
        content_hash: of what was given.
    """

    fingerprint: str
    extractor: str
    failure: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class NewVectors:
    """Vectors of names or facts that the record does not hold yet; texts and rows correspond."""

    texts: Mapping[str, str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Additions:
    """The rows that a commit adds beside its passages: names and facts that the record lacks."""

    names: NewVectors
    facts: NewVectors


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """The rows of a record that follow from its passages and vectors.

    Attributes:
        texts: by table, {id: text} of the names and facts that passages hold.
        links: by table, (passage id, id of what it holds).
        corrected: {id of a passage: what corrections made of it}, where they change it.
    """

    texts: Mapping[str, dict[str, str]]
    links: Mapping[str, set[tuple[str, str]]]
    corrected: dict[str, Corrected]


PAGE = 5_000
"""Passages that are read by one statement."""


def delete(db: Database, ids: Sequence[str]) -> dict[str, set[str]]:
    """Delete passages; return the names and facts that they held, by table."""
    unlinked = unlink(db, ids)
    db.execute(f"DELETE FROM passages WHERE id {AMONG}", ([*ids],))
    return unlinked


def unlink(db: Database, ids: Sequence[str]) -> dict[str, set[str]]:
    """Let passages hold nothing; return the names and facts that they held, by table."""
    unlinked: dict[str, set[str]] = {table: set() for table in HELD_BY}
    for table, column in HELD_BY.items():
        gone = f"DELETE FROM passage_{table} WHERE passage_id {AMONG} RETURNING {column}"
        unlinked[table].update(key for (key,) in db.execute(gone, ([*ids],)))
    forget_corrected(db, ids)
    return unlinked


def hold(db: Database, stated: Sequence[tuple[Entry, Stated]]) -> None:
    """Let passages hold what they state."""
    for table, held_by in (("names", names_of), ("facts", facts_of)):
        links = ((entry.passage.id, key) for entry, says in stated for key in held_by(says))
        db.insert(f"passage_{table}", links)
    for entry, says in stated:
        if says.by:
            made = says.fingerprint(entry.fingerprint)
            keep_corrected(db, entry.passage.id, made, says.by)


def drop_unheld(db: Database, candidates: Mapping[str, Iterable[str]]) -> None:
    """Delete those of some names and facts, by table, that no passage holds."""
    for table, ids in candidates.items():
        db.execute(
            f"DELETE FROM {table} WHERE id {AMONG}"
            f" AND id NOT IN (SELECT {HELD_BY[table]} FROM passage_{table} WHERE {HELD_BY[table]} {AMONG})",
            ([*ids],) * 2,
        )


def insert_vectors(db: Database, table: str, new: NewVectors) -> None:
    """Write names or facts with their vectors, in place of those of the same ids."""
    rows = ((key, text, new.vectors[i].tobytes()) for i, (key, text) in enumerate(new.texts.items()))
    db.put(table, ["id"], [TEXT_COLUMN[table], "vector"], rows)


def read_corrections(db: Database) -> list[Correction]:
    """Return all corrections, by id.

    Raises:
        WorkspaceDamaged: one cannot be read.
    """
    if not db.has_table("corrections"):
        return []
    rows = db.execute("SELECT id, what, note, made_at, undone_at FROM corrections ORDER BY id").fetchall()
    try:
        return [Correction(id, what_from_json(json.loads(what)), *columns) for id, what, *columns in rows]
    except (BadInput, ValueError, TypeError) as fault:
        raise WorkspaceDamaged(
            f"The corrections in the record cannot be read ({fault})", "Restore the record from a backup"
        ) from fault


def add_correction(db: Database, what: What, note: str, made_at: str) -> int:
    """Write a correction; return its id, which is larger than that of any before it."""
    db.define(statements_of(CORRECTIONS))
    text = json.dumps(what_to_json(what), ensure_ascii=False)
    query = "INSERT INTO corrections (what, note, made_at, undone_at) VALUES (?,?,?,'') RETURNING id"
    return int(db.execute(query, (text, note, made_at)).fetchone()[0])


def undo_corrections(db: Database, ids: Sequence[int], undone_at: str) -> None:
    """Note of some corrections that they do not stand any more."""
    db.executemany("UPDATE corrections SET undone_at = ? WHERE id = ?", [(undone_at, id) for id in ids])


def read_corrected(db: Database) -> dict[str, Corrected]:
    """Return {passage id: what corrections made of it} of the passages that they change."""
    if not db.has_table("corrections"):
        return {}
    rows = db.execute("SELECT passage_id, fingerprint, by FROM corrected")
    return {key: Corrected(fingerprint, tuple(json.loads(by))) for key, fingerprint, by in rows}


def keep_corrected(db: Database, passage_id: str, fingerprint: str, by: Sequence[int]) -> None:
    """Note that corrections change a passage, and how."""
    db.execute("INSERT INTO corrected VALUES (?,?,?)", (passage_id, fingerprint, json.dumps(by)))


def forget_corrected(db: Database, passage_ids: Sequence[str]) -> None:
    """Note that nothing changes some passages."""
    if db.has_table("corrections"):
        db.executemany("DELETE FROM corrected WHERE passage_id = ?", [(key,) for key in passage_ids])


def replace_corrected(db: Database, corrected: Mapping[str, Corrected]) -> None:
    """Put this in place of all that was noted of passages."""
    if db.has_table("corrections"):
        db.execute("DELETE FROM corrected")
        for key, each in corrected.items():
            keep_corrected(db, key, each.fingerprint, each.by)
