"""The rows of the record that passages hold: links to names and facts, and these with their vectors.

All of it happens within a transaction of the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graph.corrections.apply import Stated
from graph.storage import correction_table
from graph.storage.database import Database
from graph.storage.entry import Entry, facts_of, names_of
from graph.storage.record_tables import HELD_BY, TEXT_COLUMN, NewVectors

PAGE = 5_000
"""Ids that one statement asks for: SQLite takes 32,766 parameters."""


def delete(db: Database, ids: Sequence[str]) -> dict[str, set[str]]:
    """Delete passages; return the names and facts that they held, by table."""
    held = unlink(db, ids)
    for among, page in pages(ids):
        db.execute(f"DELETE FROM passages WHERE id {among}", page)
    return held


def unlink(db: Database, ids: Sequence[str]) -> dict[str, set[str]]:
    """Let passages hold nothing; return the names and facts that they held, by table."""
    held: dict[str, set[str]] = {table: set() for table in HELD_BY}
    for among, page in pages(ids):
        for table, column in HELD_BY.items():
            gone = f"DELETE FROM passage_{table} WHERE passage_id {among} RETURNING {column}"
            held[table].update(key for (key,) in db.execute(gone, page))
    correction_table.forget_corrected(db, ids)
    return held


def hold(db: Database, stated: Sequence[tuple[Entry, Stated]]) -> None:
    """Let passages hold what they state."""
    for table, held_by in (("names", names_of), ("facts", facts_of)):
        links = ((entry.passage.id, key) for entry, says in stated for key in held_by(says))
        db.insert(f"passage_{table}", links)
    for entry, says in stated:
        if says.by:
            made = says.fingerprint(entry.fingerprint)
            correction_table.keep_corrected(db, entry.passage.id, made, says.by)


def drop_unheld(db: Database, table: str, candidates: Iterable[str]) -> set[str]:
    """Delete those of the names or facts that no passage holds; return them."""
    rows = db.execute(
        f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        f" AND id NOT IN (SELECT {HELD_BY[table]} FROM passage_{table}"
        f" WHERE {HELD_BY[table]} IN (SELECT value FROM json_each(?))) RETURNING id",
        ([*candidates],) * 2,
    )
    return {key for (key,) in rows}


def insert_vectors(db: Database, table: str, new: NewVectors) -> None:
    """Write names or facts with their vectors, in place of those of the same ids."""
    rows = ((key, text, new.vectors[i].tobytes()) for i, (key, text) in enumerate(new.texts.items()))
    db.put(table, ["id"], [TEXT_COLUMN[table], "vector"], rows)


def pages(ids: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a condition and the ids that it asks for; a list in JSON would end each id at a NUL character."""
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        yield f"IN ({','.join('?' * len(page))})", page
