"""Locks: who may write or make something, and what may not be removed as it is read.

Each ends when it is released or when its process ends, however it ends: the system frees those of files, and the
Postgres server that of a record that lies in it.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from graph.errors import MaraError, WorkspaceLocked
from graph.storage.place import place_of
from graph.storage.read_only import may_write
from graph.storage.record import Record

if TYPE_CHECKING:
    from filelock import FileLock

    from graph.storage.postgres import SessionLock

_LOCK_FILE = "lock"
_WRITER = "writer"
"""The note of the record that names its writer."""


@contextmanager
def alone(path: Path, wait_s: float, message: str, hint: str) -> Iterator[None]:
    """Let no other process or thread into such a block meanwhile. Raises WorkspaceLocked with a message and a hint."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(path, timeout=wait_s, thread_local=False):
            yield
    except Timeout as fault:
        raise WorkspaceLocked(message, hint) from fault


class WriterLock:
    """The lock of a workspace's one writer: of a file beside the record, or of the Postgres server."""

    def __init__(self, record_path: Path) -> None:
        """Become the writer of a record, which exists.

        Raises:
            WorkspaceLocked: another process is, which is named.
            RecordUnavailable: the record is in Postgres, and the server does not answer.
        """
        from filelock import Timeout

        self._record_path = record_path
        self._lock = _lock_of(record_path)
        root = record_path.parent
        try:
            self._lock.acquire()
        except Timeout:
            with Record(record_path) as record:
                writer = writer_of(record) or "another process"
            raise WorkspaceLocked(
                f"{root} is being written by {writer}", "Wait until it is done, or stop that process"
            ) from None
        try:
            # This waits for what a writer before may just be committing on a connection that is not lost yet.
            self._note(f"process {os.getpid()} on {socket.gethostname()}")
        except BaseException:
            self._lock.release()
            raise

    def check(self) -> None:
        """Raise WorkspaceLocked where the lock was lost. Within a transaction, it cannot be before the end of that."""
        if not self._lock.is_locked:
            raise WorkspaceLocked(
                f"This writer of {self._record_path.parent} lost its connection to the server, and its lock",
                "Run the same command again: it resumes after the last commit",
            )

    def release(self) -> None:
        """Give the workspace free."""
        with suppress(MaraError):
            self.check()
            self._note("")
        self._lock.release()

    def _note(self, writer: str) -> None:
        with Record(self._record_path) as record, record.transaction():
            record.set_note(_WRITER, writer)


def writer_of(record: Record) -> str:
    """Return the process that writes a record, or was killed while it did; empty where there is none."""
    return record.note(_WRITER)


def is_being_written(record_path: Path) -> bool:
    """Tell whether a living process holds the lock of a record's writer. Raises RecordUnavailable."""
    from filelock import Timeout

    lock = _lock_of(record_path)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _lock_of(record_path: Path) -> FileLock | SessionLock:
    place = place_of(record_path)
    if place is None:
        from filelock import FileLock

        return FileLock(record_path.parent / _LOCK_FILE, timeout=0, thread_local=False)
    from graph.storage.postgres import SessionLock

    return SessionLock(place)


class GenerationHold:
    """A reader's share of the lock of a generation, which is not removed meanwhile.

    Where the folder may not be written there is none: no process removes anything there.
    """

    _FILE = "held.db"

    def __init__(self, folder: Path) -> None:
        """Raises FileNotFoundError where the generation is gone."""
        from filelock import ReadWriteLock

        if not folder.is_dir():
            raise FileNotFoundError(folder)
        self._lock: ReadWriteLock | None = None
        if not may_write(folder):
            return
        self._lock = ReadWriteLock(folder / self._FILE, is_singleton=False)
        self._lock.acquire_read()

    def release(self) -> None:
        """Give the generation back."""
        if self._lock is not None:
            self._lock.close()

    @classmethod
    def is_held(cls, folder: Path) -> bool:
        """Tell whether any process holds the generation in that folder."""
        from filelock import ReadWriteLock, Timeout

        if not (folder / cls._FILE).exists():
            return False
        lock = ReadWriteLock(folder / cls._FILE, is_singleton=False)
        try:
            lock.acquire_write(blocking=False)
        except Timeout:
            return True
        except sqlite3.DatabaseError:
            return False  # a damaged file, which no process can have locked
        finally:
            lock.close()
        return False
