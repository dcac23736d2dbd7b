"""A database that a record lies in: what SQLite and Postgres do alike, under one interface.

Statements are written once, in SQLite's SQL; `graph.storage.postgres` says what it rewrites. A list among the values is
asked for with ``IN (SELECT value FROM json_each(?))``. Statements order texts by their bytes in both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Protocol

from graph.errors import BadInput, MaraError, WorkspaceDamaged, WorkspaceLocked, shortage_behind

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another one's transaction."""

_REFUSALS = ("readonly", "unable to open", "full", "disk I/O")

Values = Sequence[Any] | Mapping[str, Any]


class Cursor(Protocol):
    """The rows that a statement gave; as a cursor of a driver has them."""

    @property
    def rowcount(self) -> int:
        """The number of rows that it changed."""

    def fetchone(self) -> Any:
        """Return the next row; None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class SqliteDatabase:
    """A SQLite file.

    Attributes:
        told: its name in messages, without secrets.
        faults: those of the driver.
        conflicts: those of them that a constraint of the tables raised.
    """

    faults: tuple[type[Exception], ...] = (sqlite3.DatabaseError,)
    conflicts: tuple[type[Exception], ...] = (sqlite3.IntegrityError,)

    def __init__(self, connection: sqlite3.Connection, path: Path, restore: str, log_timeout_ms: int) -> None:
        """Take an open connection.

        Args:
            connection: in autocommit mode.
            path: of the file, for messages.
            restore: what to do where the file is damaged.
            log_timeout_ms: how long `vacuum` waits for readers.
        """
        self._db = connection
        self.told = str(path)
        self._restore = restore
        self._log_timeout_ms = log_timeout_ms

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._db.in_transaction

    @property
    def total_changes(self) -> int:
        """Counts rows that statements changed."""
        return self._db.total_changes

    def execute(self, statement: str, values: Values = ()) -> Cursor:
        """Run a statement; a list among the values goes as JSON."""
        if isinstance(values, Mapping):
            return self._db.execute(statement, {key: _bound(value) for key, value in values.items()})
        return self._db.execute(statement, [_bound(value) for value in values])

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""
        self._db.executemany(statement, rows)

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Append whole rows to a table, which holds none of their keys."""
        columns = len(self._db.execute(f'SELECT * FROM "{table}" LIMIT 0').description)
        self._db.executemany(f'INSERT INTO "{table}" VALUES ({",".join("?" * columns)})', rows)

    def put(self, table: str, keys: Sequence[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of keys and columns, in place of those of the same keys; no two of the rows have the same."""
        marks = ",".join("?" * (len(keys) + len(columns)))
        self._db.executemany(f'INSERT INTO "{table}" VALUES ({marks}) {in_place(keys, columns)}', rows)

    def scan(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Yield the rows of a large result as they are read; other statements may run meanwhile."""
        yield from self.execute(statement, values)

    def define(self, statements: Iterable[str]) -> None:
        """Create tables and indexes, within a transaction."""
        for statement in statements:
            self._db.execute(statement)

    def has_table(self, name: str) -> bool:
        """Tell whether there is a table of that name."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._db.execute(query, (name,)).fetchone() is not None

    def begin(self) -> None:
        """Begin a transaction that writes; no other one does meanwhile."""
        self._db.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        """Begin a transaction that reads: what its first statement sees."""
        self._db.execute("BEGIN")

    def commit(self) -> None:
        """End the transaction, and keep what it wrote."""
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        """End the transaction, if one is open, and undo what it wrote."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def attempt(self) -> AbstractContextManager[None]:
        """Return a context that does nothing: a statement that fails leaves SQLite's transaction in use."""
        return nullcontext()

    def defer_references(self) -> None:
        """Let references be checked at the end of the transaction."""
        self._db.execute("PRAGMA defer_foreign_keys = ON")

    def vacuum(self) -> None:
        """Write the log back and cut it off, unless a reader is at work all the while."""
        self._db.execute(f"PRAGMA busy_timeout = {self._log_timeout_ms}")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.execute(f"PRAGMA busy_timeout = {1000 * BUSY_TIMEOUT_S:.0f}")

    def erase_free_pages(self) -> bool:
        """Leave no bytes of removed rows in the file or its log; False where a reader keeps the log."""
        self._db.execute("VACUUM")
        ((busy, _, _),) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not busy

    def faults_found(self) -> tuple[list[str], set[str]]:
        """Return what SQLite says against the file, and which tables refer to rows that are not there."""
        said = [str(line) for (line,) in self._db.execute("PRAGMA integrity_check") if line != "ok"]
        return said, {str(row[0]) for row in self._db.execute("PRAGMA foreign_key_check")}

    def copy_to(self, path: Path) -> None:
        """Copy the file, as it stands at one moment, to one that is not there yet."""
        with closing(sqlite3.connect(path)) as copy:
            self._db.backup(copy)

    def continue_numbers(self) -> None:
        """Do nothing: SQLite counts on from the largest number that it was given."""

    def named(self, fault: Exception) -> MaraError:
        """Return the error that tells a fault of SQLite."""
        return fault_named(fault, self.told, self._restore)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def in_place(keys: Sequence[str], columns: Sequence[str]) -> str:
    """Return what ends an INSERT whose rows take the place of those of the same keys."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


def fault_named(fault: Exception, told: str, restore: str, refused: str = "cannot be opened for writing") -> MaraError:
    """Return the error that tells a fault of SQLite, given what the file is called and what to do if it is damaged."""
    if shortage := shortage_behind(fault):
        return shortage
    said = str(fault)
    if isinstance(fault, sqlite3.OperationalError):
        if "locked" in said:
            return WorkspaceLocked(f"{told} is being written by another process", "Try again later")
        if any(words in said for words in _REFUSALS):
            return BadInput(f"{told} {refused} ({said})", "Check the permissions and the disk")
    return WorkspaceDamaged(f"{told} cannot be read ({said})", restore)


@contextmanager
def file_faults_named(path: Path, restore: str, refused: str = "cannot be opened for writing") -> Iterator[None]:
    """Raise faults of SQLite in the block, in which a file is opened, as `fault_named` tells them."""
    try:
        yield
    except sqlite3.DatabaseError as fault:
        raise fault_named(fault, str(path), restore, refused) from fault


def prepare(connection: sqlite3.Connection, number: int, statements: Iterable[str]) -> None:
    """Bring a fresh file to the format of that number by these statements. Raises DatabaseError for one of another."""
    if check_format(connection, number):
        return
    with suppress(sqlite3.OperationalError):  # another process is switching it just now
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    if not check_format(connection, number):
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")
    connection.execute("COMMIT")


def check_format(connection: sqlite3.Connection, number: int) -> bool:
    """Tell whether a file has the format of that number, rather than none. Raises DatabaseError for another."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, number):
        raise sqlite3.DatabaseError(f"it is of format {version}, this version reads {number}")
    return bool(version)


def _bound(value: Any) -> Any:
    return json.dumps(value) if type(value) is list else value


@contextmanager
def faults_named(database: Any) -> Iterator[None]:
    """Raise faults of the driver in the block as the errors that tell them."""
    try:
        yield
    except database.faults as fault:
        raise database.named(fault) from fault


def statements_of(script: str) -> Iterator[str]:
    """Yield the statements of a script in which no text holds a semicolon."""
    return (statement for statement in map(str.strip, script.split(";")) if statement)
