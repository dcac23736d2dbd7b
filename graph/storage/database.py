"""A database: a SQLite file, or a schema of Postgres, opened, written and explained when it fails in one way.

Both read the same statements. A ``?``, or ``:name``, stands for a value, and `AMONG` for the values of a list; types
are SQLite's, and texts are ordered by their bytes.
"""

from __future__ import annotations

import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self

from graph.errors import BadInput, MaraError, WorkspaceDamaged, WorkspaceLocked, shortage_behind
from graph.storage.place import Place
from graph.storage.read_only import may_write, open_read_only, scratch_folder

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another one's transaction."""

AMONG = "IN (SELECT value FROM json_each(?))"
"""The condition that something is among the values of a list; ``NOT x IN ...``, rather than ``x NOT IN``, is its
contrary."""

_LOG_TIMEOUT_MS = 1_000
_PAGE_BYTES = 8192
_CACHE_KIB = 16_384
"""Of pages that a transaction changes: one that does not fit is written to the log again each time it changes."""

_LOG_PAGES = 4_000
"""Pages in the log from which on they are written back, each once, however many transactions changed it."""

_REFUSALS = ("readonly", "unable to open", "full", "disk I/O")

Values = Sequence[Any] | Mapping[str, Any]


class Cursor(Protocol):
    """The rows that a statement gave; as a cursor of a driver has them."""

    @property
    def rowcount(self) -> int:
        """The number of rows that it changed."""

    @property
    def description(self) -> Any:
        """The columns, one after the other."""

    def fetchone(self) -> Any:
        """Return the next row; None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Closing:
    """Holds an open database, which is closed at the end of a ``with`` block."""

    _db: Any

    def close(self) -> None:
        """Close it."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Database(Closing, ABC):
    """An open database, which no two threads use at once.

    Attributes:
        told: its name in messages, without secrets.
        faults: those of the driver, which `faults_named` tells in this project's words.
        conflicts: those of them that a constraint of the tables raised.
    """

    told: str
    faults: tuple[type[Exception], ...]
    conflicts: tuple[type[Exception], ...]

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    @abstractmethod
    def total_changes(self) -> int:
        """Counts rows that statements changed, at least those that were not changed by a reference alone."""

    @abstractmethod
    def execute(self, statement: str, values: Values = ()) -> Cursor:
        """Run a statement."""

    @abstractmethod
    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""

    def scan(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Yield the rows of a large result as they are read; other statements may run meanwhile."""
        yield from self.execute(statement, values)

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Append whole rows to a table, which holds none of their keys."""
        self.executemany(f'INSERT INTO "{table}" VALUES ({self._marks(table)})', rows)

    def put(self, table: str, keys: Sequence[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of keys and columns, in place of those of the same keys."""
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        in_place = f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
        self.executemany(f'INSERT INTO "{table}" VALUES ({self._marks(table)}) {in_place}', rows)

    def _marks(self, table: str) -> str:
        columns = self.execute(f'SELECT * FROM "{table}" LIMIT 0').description
        return ",".join("?" * len(columns))

    @abstractmethod
    def define(self, statements: Iterable[str]) -> None:
        """Create tables and indexes, within a transaction."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Tell whether there is a table of that name."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that writes; no other one does meanwhile."""

    @abstractmethod
    def begin_reading(self) -> None:
        """Begin a transaction that reads: what stands at its first statement."""

    def commit(self) -> None:
        """End the transaction, and keep what it wrote."""
        self.execute("COMMIT")

    @abstractmethod
    def rollback(self) -> None:
        """End the transaction, if one is open, and undo what it wrote."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write within the block, whole or not at all; no other process writes meanwhile."""
        with self.faults_named():
            self.begin()
            try:
                yield
                self.commit()
            except BaseException:
                self.rollback()
                raise

    @contextmanager
    def as_it_stands(self) -> Iterator[None]:
        """Read what stands at the beginning of the block, whatever is written meanwhile; nothing can be written."""
        with self.faults_named():
            self.begin_reading()
            try:
                yield
            finally:
                self.rollback()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Undo the block where it raises, and keep the transaction around it in use."""
        self.execute("SAVEPOINT attempt")
        try:
            yield
        except self.conflicts:
            self.execute("ROLLBACK TO SAVEPOINT attempt")
            raise
        self.execute("RELEASE SAVEPOINT attempt")

    @abstractmethod
    def vacuum(self) -> None:
        """Take what was deleted out of the log or the tables, unless a reader is at work all the while."""

    @abstractmethod
    def erase_free_pages(self) -> bool:
        """Leave no bytes of removed rows; False where a reader keeps them for longer than one waits."""

    def faults_found(self) -> tuple[list[str], set[str]]:
        """Return what is known against the files, and which tables refer to rows that are not there.

        Of Postgres that is nothing: it refuses such rows, and its operators check its files.
        """
        return [], set()

    @abstractmethod
    def continue_numbers(self) -> None:
        """Let rows to come have larger numbers than those that were inserted with one."""

    @abstractmethod
    def named(self, fault: Exception) -> MaraError:
        """Return the error that tells a fault of the driver."""

    @contextmanager
    def faults_named(self) -> Iterator[None]:
        """Raise faults of the driver in the block as the errors that tell them."""
        try:
            yield
        except self.faults as fault:
            raise self.named(fault) from fault


def _not_there(name: str) -> MaraError:
    return WorkspaceDamaged(f"{name} is not there", "Restore it from a backup")


FIRST_FORMAT = 1
"""The number of a kind's format that was never changed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of databases: their tables, and the errors of one that is missing or damaged.

    Attributes:
        table: one that is there as soon as anything is.
        make: creates the tables in an empty database, within a transaction.
        restore: what to do where one is damaged.
        missing: the error of one that is not there, given its name.
        number: of the format, which a SQLite file keeps.
        schema: the schema of a place in Postgres; none where they are always in SQLite.
    """

    table: str
    make: Callable[[Database], None]
    restore: str
    missing: Callable[[str], MaraError] = _not_there
    number: int = FIRST_FORMAT
    schema: Callable[[Place], str] | None = None


class SqliteDatabase(Database):
    """A SQLite file.

    One that may not be written is read: from a copy, where it cannot be in place.
    """

    faults = (sqlite3.DatabaseError,)
    conflicts = (sqlite3.IntegrityError,)

    def __init__(self, path: Path, number: int, restore: str, *, read_only: bool = False, told: str = "") -> None:
        """Open a file, or make one.

        Args:
            path: of the file.
            number: of its format, unless it has none.
            restore: what to do where the file is damaged.
            read_only: whether nothing is written, not even beside it.
            told: its name in messages, where that is not its path.
        """
        self.path, self.told = path, told or str(path)
        self._restore = restore
        self._scratch: TemporaryDirectory[str] | None = None
        with self.faults_named():
            self._db: sqlite3.Connection = self._connected(path, read_only)
            try:
                ((version,),) = self._db.execute("PRAGMA user_version")
                if version not in (0, number):
                    raise sqlite3.DatabaseError(f"it is of format {version}, this version reads {number}")
            except BaseException:
                self.close()
                raise

    def _connected(self, path: Path, read_only: bool) -> sqlite3.Connection:
        if not read_only and (not path.exists() or (may_write(path.parent) and may_write(path))):
            return _open_to_write(path)
        self._scratch = scratch_folder()
        try:
            connection = open_read_only(path, Path(self._scratch.name))
        except BaseException:
            self._scratch.cleanup()
            raise
        connection.execute("COMMIT")
        return connection

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

    def define(self, statements: Iterable[str]) -> None:
        """Create tables and indexes, within a transaction."""
        for statement in statements:
            self._db.execute(statement)

    def has_table(self, name: str) -> bool:
        """Tell whether there is a table of that name."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._db.execute(query, (name,)).fetchone() is not None

    def stamp(self, number: int) -> None:
        """Give a new file the number of its format. Raises DatabaseError where it holds something else."""
        if self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise sqlite3.DatabaseError("it holds something else")
        self._db.execute(f"PRAGMA user_version = {number}")

    def begin(self) -> None:
        """Begin a transaction that writes; no other one does meanwhile."""
        self._db.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        """Begin a transaction that reads what its first statement sees."""
        self._db.execute("BEGIN")

    def rollback(self) -> None:
        """End the transaction, if one is open, and undo what it wrote."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def vacuum(self) -> None:
        """Write the log back and cut it off, unless a reader is at work all the while."""
        self._db.execute(f"PRAGMA busy_timeout = {_LOG_TIMEOUT_MS}")
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

    def continue_numbers(self) -> None:
        """Do nothing: SQLite counts on from the largest number that it was given."""

    def named(self, fault: Exception) -> MaraError:
        """Return the error that tells a fault of SQLite."""
        if shortage := shortage_behind(fault):
            return shortage
        said = str(fault)
        if isinstance(fault, sqlite3.OperationalError):
            if "locked" in said:
                return WorkspaceLocked(f"{self.told} is being written by another process", "Try again later")
            if any(words in said for words in _REFUSALS):
                return BadInput(
                    f"{self.told} cannot be opened for writing ({said})", "Check the permissions and the disk"
                )
        return WorkspaceDamaged(f"{self.told} cannot be read ({said})", self._restore)

    def close(self) -> None:
        """Close the file, and remove a copy of it."""
        super().close()
        if self._scratch is not None:
            self._scratch.cleanup()


def _open_to_write(path: Path) -> sqlite3.Connection:
    with suppress(OSError):  # A new file is its owner's alone; SQLite tells why there can be none.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # of a new file
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as fault:
            if "locked" not in str(fault):  # else another process is switching it just now
                raise
        sizes = (f"cache_size = -{_CACHE_KIB}", f"wal_autocheckpoint = {_LOG_PAGES}")
        for setting in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", *sizes):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


class InDatabase(Closing):
    """A record in a database, which it opens, writes and closes."""

    _db: Database

    def as_it_stands(self) -> AbstractContextManager[None]:
        """Read what stands at the beginning of the block, whatever is written meanwhile; nothing can be written."""
        return self._db.as_it_stands()

    def shorten_log(self) -> None:
        """Take what was erased out of the log beside the file, too, unless a reader is at work all the while."""
        with self._faults_named():
            self._db.vacuum()

    def _faults_named(self) -> AbstractContextManager[None]:
        return self._db.faults_named()


def statements_of(script: str) -> Iterator[str]:
    """Yield the statements of a script in which no text holds a semicolon."""
    return (statement for statement in map(str.strip, script.split(";")) if statement)


def _bound(value: Any) -> Any:
    return json.dumps(value) if type(value) is list else value
