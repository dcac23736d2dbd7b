"""Replies of a model that were read and found valid, kept on disk so that nothing is paid for twice."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from agents.chat.usage import Usage
from graph.errors import MaraError, WorkspaceDamaged
from graph.storage.database import Database, Kind
from graph.storage.opening import open_database

_SCHEMA = """
CREATE TABLE replies (
    key BLOB PRIMARY KEY, extractor TEXT NOT NULL, reply BLOB NOT NULL, digest BLOB NOT NULL,
    requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    unknown INTEGER NOT NULL, seconds REAL NOT NULL
)"""
_SELECT = """
SELECT reply, digest, requests, prompt_tokens, completion_tokens, unknown, seconds FROM replies WHERE key = ?"""
_KIND = Kind("replies", lambda db: db.define([_SCHEMA]), "It is set aside")


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply as it came, and what it took to get it when it was asked for."""

    raw: str
    usage: Usage


class ReplyCache:
    """A SQLite file of valid replies; safe to share between threads, and between processes.

    A cache is never worth a failed run: a file that SQLite calls damaged is set aside and a new one begun, and where
    the disk or another process's lock refuses, replies are simply not found and not kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._db: Database | None = None
        self._closed = False
        self._execute("SELECT 1")

    def get(self, key: bytes) -> KeptReply | None:
        """Return the reply of a key, None where there is none or its row is damaged."""
        for reply, digest, *usage in self._execute(_SELECT, key):
            with suppress(TypeError, ValueError):
                if digest == _digest(key, reply):
                    return KeptReply(reply.decode(), Usage(*usage))
            self.reject(key)
        return None

    def put(self, key: bytes, extractor: str, reply: KeptReply) -> None:
        """Keep a reply that was read and found valid, in place of any other of the key."""
        raw = reply.raw.encode()
        row = (key, extractor, raw, _digest(key, raw), *astuple(reply.usage))
        self._execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def reject(self, key: bytes) -> None:
        """Drop a row whose reply turned out not to be valid."""
        self._execute("DELETE FROM replies WHERE key = ?", key)

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return those of the keys that have a row."""
        return {key for (key,) in self._execute("SELECT key FROM replies")}.intersection(keys)

    def knows(self, extractor: str) -> bool:
        """Tell whether any reply to this extractor was ever kept."""
        return bool(self._execute("SELECT 1 FROM replies WHERE extractor = ? LIMIT 1", extractor))

    def close(self) -> None:
        """Close the file; a closed cache finds nothing and keeps nothing."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _execute(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a statement, from a fresh file if this one proves damaged; none where that fails too."""
        with self._lock:
            for _ in range(2):
                if self._closed:
                    break
                try:
                    if self._db is None:
                        self._db = open_database(self.path, _KIND, create=True)
                    with self._db.faults_named():
                        return self._db.execute(statement, values).fetchall()
                except WorkspaceDamaged:
                    self._disconnect()
                    if not _set_aside(self.path):
                        break
                except MaraError:
                    break
            return []

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _set_aside(path: Path) -> bool:
    """Rename a damaged file; False where the disk refuses."""
    try:
        path.replace(path.with_name(f"{path.name}.damaged"))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _digest(key: bytes, reply: bytes) -> bytes:
    """A checksum of a row: what was edited by hand is not what a model said."""
    return hashlib.blake2b(key + reply, digest_size=16).digest()
