"""The conversations of the page, in one SQLite file that several processes may write at a time."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graph.errors import BadInput, WorkspaceLocked
from workflows.output.printable import shortened

FILE_NAME = "conversations.sqlite"
"""The file within the default workspace."""

TOUCHED_EVERY_S = 5.0
"""How often whoever answers a turn says that it is still at work."""

CUT_AFTER_S = 20.0
"""The silence after which whoever answered a turn is taken to be gone."""

TITLE_LENGTH = 80

LAST_TURNS = 8
"""Turns that come with a question: more than any question leans on."""

_VERSION = 1
_BUSY_S = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, title TEXT NOT NULL, version INTEGER NOT NULL, changed REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS conversations_of_owner ON conversations (owner, changed);
CREATE TABLE IF NOT EXISTS turns (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    question TEXT NOT NULL,
    alone INTEGER NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL,
    answer TEXT NOT NULL DEFAULT '',
    result TEXT,
    error TEXT NOT NULL DEFAULT '',
    touched REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_of_conversation ON turns (conversation, number, place);
"""
_SHOWN = """
SELECT * FROM turns AS turn WHERE conversation = ? AND NOT EXISTS (
    SELECT 1 FROM turns AS newer
    WHERE newer.conversation = turn.conversation AND newer.number = turn.number AND newer.place > turn.place
    AND newer.state = 'running' AND newer.touched > ?
) ORDER BY number, place
"""
"""The turns of a conversation, less those in whose place another is being answered."""

_OF_USER = "substr(owner, 1, length(owner) - 17) = ?"
"""The conversations of a user: what follows the name in the owner is a hash of the filter, of 16 digits."""

RUNNING, ANSWERED, STOPPED, FAILED, CUT = "running", "answered", "stopped", "failed", "cut"
"""What became of a turn; cut: whoever answered it is gone."""


class NoConversation(BadInput):
    """There is no such conversation or turn, or it is somebody else's.

    Attributes:
        status: the HTTP status to answer with.
    """

    status = 404


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        version: grows with every change.
        changed: seconds since 1970.
    """

    id: str
    title: str
    version: int
    changed: float


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A question of a conversation, and what became of it.

    Attributes:
        number: its place among the turns, from 1; attempts at the same one share it.
        alone: whether it is asked without the turns before it.
        settings: what the page asked it with.
        answer: what had been written when it was stopped; empty for a turn with a result.
        result: what asking gave, where it ended.
        error: why it failed.
    """

    id: str
    conversation: str
    number: int
    question: str
    alone: bool
    settings: Mapping[str, Any]
    state: str
    answer: str
    result: Mapping[str, Any] | None
    error: str


class Conversations:
    """The conversations in a file, each its owner's alone.

    Args:
        path: the file; made where there is none.
        clock: seconds since 1970.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock

    def of(self, owner: str) -> list[Conversation]:
        """Return somebody's conversations, the last changed first."""
        with self._open() as file:
            rows = file.execute("SELECT * FROM conversations WHERE owner = ? ORDER BY changed DESC", (owner,))
            return [_conversation(row) for row in rows]

    def read(self, owner: str, conversation: str) -> tuple[Conversation, list[KeptTurn]]:
        """Return a conversation and its turns. Raises NoConversation."""
        with self._open() as file:
            found = _found(file, owner, conversation)
            cut = self._clock() - CUT_AFTER_S
            return _conversation(found), [_turn(row, cut) for row in file.execute(_SHOWN, (conversation, cut))]

    def version(self, owner: str, conversation: str) -> int:
        """Return what grows with every change of a conversation. Raises NoConversation."""
        with self._open() as file:
            return int(_found(file, owner, conversation)["version"])

    def turn(self, owner: str, turn: str) -> KeptTurn:
        """Return a turn. Raises NoConversation."""
        with self._open() as file:
            return _turn(_found_turn(file, owner, turn), self._clock() - CUT_AFTER_S)

    def ended(self, owner: str, turn: str) -> tuple[KeptTurn, int]:
        """Return a turn, and the version of its conversation. Raises NoConversation."""
        kept = self.turn(owner, turn)
        return kept, self.version(owner, kept.conversation)

    def rename(self, owner: str, conversation: str, title: str) -> None:
        """Give a conversation another title. Raises NoConversation; BadInput for one of which nothing is seen."""
        if not shortened(title, TITLE_LENGTH):
            raise BadInput("A conversation needs a title", "Write a few words")
        with self._writing() as file:
            _found(file, owner, conversation)
            file.execute(
                "UPDATE conversations SET title = ? WHERE id = ?", (shortened(title, TITLE_LENGTH), conversation)
            )
            self._change(file, conversation)

    def delete(self, owner: str, conversation: str) -> None:
        """Remove a conversation and all its turns. Raises NoConversation."""
        with self._writing() as file:
            _found(file, owner, conversation)
            file.execute("DELETE FROM conversations WHERE id = ?", (conversation,))

    def of_user(self, user: str) -> list[tuple[Conversation, list[KeptTurn]]]:
        """Return all conversations of somebody, under whatever filter they were held, with all their turns."""
        with self._open() as file:
            rows = file.execute(
                f"SELECT * FROM conversations WHERE {_OF_USER} ORDER BY changed DESC", (user,)
            ).fetchall()
            turns = "SELECT * FROM turns WHERE conversation = ? ORDER BY number, place"
            return [
                (_conversation(row), [_turn(each, 0.0) for each in file.execute(turns, (row["id"],))]) for row in rows
            ]

    def erase_user(self, user: str) -> int:
        """Remove all conversations of somebody, and leave no byte of them in the file; return how many there were.

        Raises WorkspaceLocked where another process keeps reading.
        """
        with self._writing() as file:
            gone = file.execute(f"DELETE FROM conversations WHERE {_OF_USER}", (user,)).rowcount
        with self._open() as file:
            file.execute("VACUUM")
            (busy, *_) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise WorkspaceLocked(
                f"{self.path} is being read by another process, and its log still holds what was deleted",
                "Do it again when no page is served",
            )
        return gone

    def begin(
        self,
        owner: str,
        conversation: str,
        turn: str,
        question: str,
        settings: Mapping[str, Any],
        *,
        alone: bool = False,
        replaces: str = "",
    ) -> tuple[KeptTurn, list[Mapping[str, Any]]]:
        """Keep a question before it is asked; a conversation begins with its first one.

        Args:
            owner: whose conversation it is.
            conversation: its id, chosen by the page.
            turn: the turn's id, chosen by the page: who asks again since the connection broke doubles nothing.
            question: as it was typed.
            settings: what it is asked with.
            alone: whether the turns before it do not count.
            replaces: the turn in whose place it stands once it is answered; empty: it comes last.

        Returns:
            The turn, and the results of the last ones before it.

        Raises:
            NoConversation: the conversation is somebody else's, or there is no turn to replace.
            BadInput: the turn has been asked already.
        """
        with self._writing() as file:
            now = self._clock()
            file.execute(
                "INSERT OR IGNORE INTO conversations VALUES (?, ?, ?, 0, ?)",
                (conversation, owner, shortened(question, TITLE_LENGTH), now),
            )
            _found(file, owner, conversation)
            if file.execute("SELECT 1 FROM turns WHERE id = ?", (turn,)).fetchone():
                raise BadInput("This question has been asked already", "Load the conversation again")
            number = self._place(file, owner, conversation, replaces)
            file.execute(
                "INSERT INTO turns (id, conversation, number, question, alone, settings, state, touched)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (turn, conversation, number, question, alone, json.dumps(settings), RUNNING, now),
            )
            self._change(file, conversation)
            row = file.execute("SELECT * FROM turns WHERE id = ?", (turn,)).fetchone()
            before = file.execute(
                "SELECT result FROM turns WHERE conversation = ? AND number < ? AND state = ?"
                " ORDER BY number DESC LIMIT ?",
                (conversation, number, ANSWERED, LAST_TURNS),
            )
            return _turn(row, now - CUT_AFTER_S), [json.loads(result) for (result,) in before][::-1]

    def touch(self, turn: str) -> None:
        """Say that a turn is still being answered."""
        with self._writing() as file:
            file.execute("UPDATE turns SET touched = ? WHERE id = ?", (self._clock(), turn))

    def finish(
        self, turn: str, state: str, *, answer: str = "", result: Mapping[str, Any] | None = None, error: str = ""
    ) -> None:
        """Keep what became of a turn; an answered one takes the place of earlier attempts. A deleted one stays so."""
        with self._writing() as file:
            row = file.execute("SELECT * FROM turns WHERE id = ?", (turn,)).fetchone()
            if row is None:
                return
            kept = None if result is None else json.dumps(result)
            file.execute(
                "UPDATE turns SET state = ?, answer = ?, result = ?, error = ? WHERE id = ?",
                (state, answer, kept, error, turn),
            )
            if state == ANSWERED:
                file.execute(
                    "DELETE FROM turns WHERE conversation = ? AND number = ? AND place < ?",
                    (row["conversation"], row["number"], row["place"]),
                )
            self._change(file, row["conversation"])

    def _place(self, file: sqlite3.Connection, owner: str, conversation: str, replaces: str) -> int:
        """Return the number of a new turn; earlier attempts at it that came to nothing go."""
        if not replaces:
            (last,) = file.execute("SELECT MAX(number) FROM turns WHERE conversation = ?", (conversation,)).fetchone()
            return (last or 0) + 1
        replaced = _found_turn(file, owner, replaces)
        if replaced["conversation"] != conversation:
            raise NoConversation("There is no such turn in this conversation", "Load the conversation again")
        file.execute(
            "DELETE FROM turns WHERE conversation = ? AND number = ? AND state != ?"
            " AND NOT (state = 'running' AND touched > ?)",
            (conversation, replaced["number"], ANSWERED, self._clock() - CUT_AFTER_S),
        )
        return int(replaced["number"])

    def _change(self, file: sqlite3.Connection, conversation: str) -> None:
        file.execute(
            "UPDATE conversations SET version = version + 1, changed = ? WHERE id = ?", (self._clock(), conversation)
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open() as file:
            file.execute("BEGIN IMMEDIATE")
            try:
                yield file
            except BaseException:
                file.execute("ROLLBACK")
                raise
            file.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._make()
            with closing(sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)) as file:
                file.row_factory = sqlite3.Row
                file.execute("PRAGMA foreign_keys = ON")
                file.execute("PRAGMA synchronous = NORMAL")  # A power cut may cost the last turn, never the file.
                self._prepare(file)
                yield file
        except (sqlite3.Error, OSError) as fault:
            raise BadInput(
                f"The conversations in {self.path} cannot be kept ({fault})",
                "Check the file and the disk, or name another file with `mara serve --conversations FILE`",
            ) from fault

    def _make(self) -> None:
        """Make the file, for nobody else to read."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    def _prepare(self, file: sqlite3.Connection) -> None:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise BadInput(f"{self.path} was written by a newer version of mara", "Update mara, or name another file")
        if version < _VERSION:
            file.execute("PRAGMA journal_mode = WAL")
            file.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT")


def _found(file: sqlite3.Connection, owner: str, conversation: str) -> sqlite3.Row:
    found = file.execute("SELECT * FROM conversations WHERE id = ? AND owner = ?", (conversation, owner))
    row: sqlite3.Row | None = found.fetchone()
    if row is None:
        raise NoConversation("There is no such conversation", "It may have been deleted: choose another, or begin one")
    return row


def _found_turn(file: sqlite3.Connection, owner: str, turn: str) -> sqlite3.Row:
    row: sqlite3.Row | None = file.execute("SELECT * FROM turns WHERE id = ?", (turn,)).fetchone()
    if row is None:
        raise NoConversation("There is no such turn", "Load the conversation again")
    _found(file, owner, row["conversation"])
    return row


def _conversation(row: sqlite3.Row) -> Conversation:
    return Conversation(row["id"], row["title"], row["version"], row["changed"])


def _turn(row: sqlite3.Row, cut: float) -> KeptTurn:
    kept = {field.name: row[field.name] for field in fields(KeptTurn)}
    kept |= {"alone": bool(row["alone"]), "settings": json.loads(row["settings"])}
    kept["result"] = None if row["result"] is None else json.loads(row["result"])
    if row["state"] == RUNNING and row["touched"] <= cut:
        kept["state"] = CUT
    return KeptTurn(**kept)
