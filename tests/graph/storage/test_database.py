"""Opening a database, and writing to it: the same for every file, and for a schema of Postgres."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graph.errors import WorkspaceDamaged, WorkspaceLocked
from graph.storage import database as databases
from graph.storage.database import AMONG, Database, Kind
from graph.storage.opening import open_database, place_to_make

TABLE = "CREATE TABLE kept (id TEXT PRIMARY KEY, number INTEGER, share REAL, bytes BLOB) WITHOUT ROWID"


def make(db: Database) -> None:
    db.define([TABLE, "CREATE TABLE linked (id TEXT NOT NULL REFERENCES kept(id) ON DELETE CASCADE)"])


KIND = Kind("kept", make, "Restore it", number=3, schema=lambda place: place.schema)


@pytest.fixture
def path(tmp_path: Path, database: str) -> Path:
    """Where a database is, in SQLite or in Postgres."""
    place_to_make(tmp_path / "kept.sqlite")
    return tmp_path / "kept.sqlite"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    with open_database(path, KIND, create=True) as db:
        yield db


class TestOpening:
    def test_what_was_written_is_there_again(self, db: Database, path: Path) -> None:
        with db.transaction():
            db.insert("kept", [("a", 2**40, 0.1, b"\x00\xff")])
        for read_only in (False, True):
            with open_database(path, KIND, read_only=read_only) as again:
                assert again.execute("SELECT * FROM kept").fetchall() == [("a", 2**40, 0.1, b"\x00\xff")]

    @pytest.mark.sqlite_file
    def test_a_file_that_holds_something_else_is_left_as_it_is(self, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / "kept.sqlite")) as other:
            other.execute("CREATE TABLE other (x)")
        with pytest.raises(WorkspaceDamaged, match="holds something else"):
            open_database(tmp_path / "kept.sqlite", KIND, create=True)
        with closing(sqlite3.connect(tmp_path / "kept.sqlite")) as other:
            assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]

    @pytest.mark.sqlite_file
    def test_a_file_is_there_once_it_is_whole(self, tmp_path: Path) -> None:
        def look(db: Database) -> None:
            make(db)
            assert not (tmp_path / "kept.sqlite").exists()

        open_database(tmp_path / "kept.sqlite", Kind("kept", look, ""), create=True).close()
        assert [path.name for path in tmp_path.iterdir()] == ["kept.sqlite"]

    def test_making_one_that_breaks_off_leaves_nothing(self, path: Path) -> None:
        def broken(db: Database) -> None:
            make(db)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            open_database(path, Kind("kept", broken, "", schema=KIND.schema), create=True)
        with pytest.raises(WorkspaceDamaged, match="is not there"):
            open_database(path, KIND)
        open_database(path, KIND, create=True).close()


class TestWriting:
    @pytest.mark.sqlite_file
    def test_a_page_that_many_transactions_change_is_written_back_once(self, db: Database, path: Path) -> None:
        for content in range(20):
            with db.transaction():
                db.put("kept", ["id"], ["number", "share", "bytes"], [("a", 1, 0.5, bytes([content]) * 1_000_000)])
        assert path.stat().st_size < 1_000_000
        assert db.execute("SELECT bytes FROM kept").fetchone() == (bytes([19]) * 1_000_000,)

    def test_a_transaction_that_fails_keeps_nothing(self, db: Database) -> None:
        with pytest.raises(ZeroDivisionError), db.transaction():
            db.insert("kept", ((key, 1 // (key != "b"), None, None) for key in "ab"))
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (0,)

    def test_an_attempt_that_fails_leaves_the_transaction_in_use(self, db: Database) -> None:
        with db.transaction():
            db.insert("kept", [("a", 1, None, None)])
            with pytest.raises(db.conflicts), db.attempt():
                db.insert("kept", [("b", 1, None, None), ("a", 2, None, None)])
            db.insert("kept", [("c", 1, None, None)])
        assert [key for (key,) in db.execute("SELECT id FROM kept ORDER BY id")] == ["a", "c"]

    def test_one_writes_at_a_time(self, db: Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(databases, "BUSY_TIMEOUT_S", 0.05)
        refused = pytest.raises(WorkspaceLocked, match="another process")
        with open_database(path, KIND) as other, db.transaction(), refused, other.transaction():
            pass


def test_both_read_the_same_conditions(db: Database) -> None:
    with db.transaction():
        db.insert("kept", [(key, number, None, None) for number, key in enumerate("aBé")])
    assert db.execute(f"SELECT id FROM kept WHERE id {AMONG} ORDER BY id", (["é", "a", "x"],)).fetchall() == [
        ("a",),
        ("é",),
    ]
    assert db.execute(f"SELECT id FROM kept WHERE NOT number {AMONG}", ([0, 2],)).fetchall() == [("B",)]
    assert db.execute("SELECT id FROM kept WHERE number = :n AND id LIKE '%B'", {"n": 1}).fetchall() == [("B",)]
    assert [key for (key,) in db.scan("SELECT id FROM kept ORDER BY id")] == ["B", "a", "é"]
