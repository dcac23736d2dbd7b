"""The conversations that visitors of a page hold, in the history's database of a workspace.

A run writes to the history what was said, once it is answered; this is what the page shows of it: what happens while
a turn is answered, the words of an answer that was stopped, why a question failed, and the whole result, each its
owner's alone. Any process may answer a turn, and any other one follow or stop it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graph.errors import BadInput, MaraError
from graph.relationships.conversations import Conversation as Listed
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.schema import time_text
from graph.relationships.tables import PAGE_TABLES, RUN_TABLES, VERSION_TABLES
from graph.storage.database import AMONG, Database, SqliteDatabase
from workflows.output.printable import shortened

TOUCHED_EVERY_S = 3.0
"""The longest that the process which answers a turn stays silent."""

CUT_AFTER_S = 12.0
"""The silence after which the process that answers a turn is taken to be gone."""

TITLE_LENGTH = 80

LAST_TURNS = 8
"""Turns that come with a question: more than any question leans on."""

UNDER_WAY_EACH = 8
"""Questions that one owner has under way."""

_CONVERSATION = """
id, title, version, changed,
EXISTS (SELECT 1 FROM turns WHERE conversation = conversations.id AND state = 'running' AND touched > ?)"""
_TURN = "id, conversation, number, question, alone, settings, state, answer, result, error, touched"
RUNNING, ANSWERED, STOPPED, FAILED, CUT = "running", "answered", "stopped", "failed", "cut"
"""The states of a turn; cut: the process that answered it is gone."""

_UNDER_WAY = """
SELECT conversation FROM turns JOIN conversations ON conversations.id = turns.conversation
WHERE state = 'running' AND touched > ? AND owner = ?"""
"""The conversations in which somebody has a question under way."""

_HASH_LENGTH = 17
"""The length of what follows a name in an owner: a colon and the hash of the filter."""

_OF_USER = f"substr(owner, 1, length(owner) - {_HASH_LENGTH}) = ?"
_LISTED = f"""
SELECT id, title, (SELECT min(touched) FROM turns WHERE conversation = conversations.id), changed, owner,
    (SELECT count(*) FROM turns WHERE conversation = conversations.id AND state = '{ANSWERED}') FROM conversations"""


class NoConversation(BadInput):
    """There is no such conversation or turn, or it belongs to another user.

    Attributes:
        status: the HTTP status to answer with.
    """

    status = 404


class UnderWay(MaraError):
    """A question has to wait for others of its owner: for the one before it in its conversation, or for any of many.

    Attributes:
        status: the HTTP status to answer with.
    """

    status = 409


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        version: grows with every change.
        changed: seconds since 1970.
        running: whether a question of it is under way.
    """

    id: str
    title: str
    version: int
    changed: float
    running: bool


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A question of a conversation, and what became of it.

    Attributes:
        number: its place among the turns, from 1; versions of the same one share it.
        alone: whether it is asked without the turns before it.
        settings: what the page asked it with.
        answer: what had been written when it was stopped; empty for a turn with a result.
        result: what asking gave, where it ended.
        error: why it failed.
        touched: when it last changed, in seconds since 1970.
        versions: the ids of all versions of the turn, its own among them, in the order in which they were asked.
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
    touched: float = 0.0
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The news of a turn from the process that answers it.

    Attributes:
        first: the position of its first event among all of the turn's, from 0.
        events: what happened since the last report.
        answer: the words so far.
        state: `RUNNING`, or what became of the turn.
        result: what asking gave, where it ended.
        error: why it failed.
    """

    turn: str
    first: int = 0
    events: Sequence[Mapping[str, Any]] = ()
    answer: str = ""
    state: str = RUNNING
    result: Mapping[str, Any] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Versions:
    """The turns of a conversation by what they follow; those that follow the same one are versions of each other.

    Attributes:
        follows: of each turn the one that it follows, empty for none; in the order in which they were asked.
    """

    follows: Mapping[str, str]

    @property
    def last(self) -> tuple[str, ...]:
        """The turns that none follows, in the order in which they were asked."""
        followed = set(self.follows.values())
        return tuple(key for key in self.follows if key not in followed)

    def shown(self, at: str = "") -> list[str]:
        """Return the way to the turn asked last, the first turn first; to the last one after ``at``, if that is one."""
        ways = [self.way_to(key) for key in self.last]
        return next((way for way in reversed(ways) if at in way), ways[-1] if ways else [])

    def way_to(self, turn: str) -> list[str]:
        """Return the turns that lead to one, the first first, and it itself."""
        way = []
        while turn:
            way.append(turn)
            turn = self.follows.get(turn, "")
        return way[::-1]

    def beside(self, turn: str) -> tuple[str, ...]:
        """Return the versions of a turn, it itself among them, in the order in which they were asked."""
        return tuple(key for key, before in self.follows.items() if before == self.follows[turn])


@dataclass(frozen=True)
class Conversations:
    """The conversations of visitors, each its owner's alone.

    Attributes:
        root: the workspace in whose history's database they are, or a folder for that database alone.
        clock: seconds since 1970.
    """

    root: Path
    clock: Callable[[], float] = time.time

    @property
    def _alive(self) -> float:
        """The time after which the process that answers a turn must have said so."""
        return self.clock() - CUT_AFTER_S

    def of(self, owner: str, words: str = "") -> list[Conversation]:
        """Return somebody's conversations, the last changed first.

        Args:
            owner: whose.
            words: each has to be in the title, or in questions and answers of any version, in whatever case.
        """
        query = f"SELECT {_CONVERSATION} FROM conversations WHERE owner = ? ORDER BY changed DESC"
        with suppress(NoConversation), self._reading() as db:
            conversations = [Conversation(*row) for row in db.execute(query, (self._alive, owner))]
            return [each for each in conversations if not words or _holds(db, each, words.casefold().split())]
        return []

    def read(self, owner: str, conversation: str, at: str = "") -> tuple[Conversation, list[KeptTurn]]:
        """Return a conversation, and the turns that lead to the one asked last. Raises NoConversation.

        Args:
            owner: whose conversation it is.
            conversation: its id.
            at: a turn, a version of others, that is to be among them, where it is still there; empty for any.
        """
        with self._reading() as db:
            entry, versions = self._found(db, owner, conversation), _versions(db, conversation)
            rows = db.execute(f"SELECT {_TURN} FROM turns WHERE id {AMONG} ORDER BY number", (versions.shown(at),))
            return entry, [self._turn(row, versions) for row in rows]

    def version(self, owner: str, conversation: str) -> int:
        """Return what grows with every change of a conversation. Raises NoConversation."""
        with self._reading() as db:
            return self._found(db, owner, conversation).version

    def turn(self, owner: str, turn: str) -> KeptTurn:
        """Return a turn. Raises NoConversation."""
        with self._reading() as db:
            return self._found_turn(db, owner, turn)

    def answered_version(self, owner: str, turn: str) -> str:
        """Return the id of the version of a turn that was answered last; empty for none. Raises NoConversation."""
        with self._reading() as db:
            versions = self._found_turn(db, owner, turn).versions
            query = f"SELECT id FROM turns WHERE id {AMONG} AND state = ? ORDER BY place DESC"
            row = db.execute(query, ([*versions], ANSWERED)).fetchone()
            return str(row[0]) if row else ""

    def ended(self, owner: str, turn: str) -> tuple[KeptTurn, int]:
        """Return a turn, and the version of its conversation. Raises NoConversation."""
        kept = self.turn(owner, turn)
        return kept, self.version(owner, kept.conversation)

    def rename(self, owner: str, conversation: str, title: str) -> None:
        """Give a conversation another title. Raises NoConversation; BadInput for one of which nothing is seen."""
        shown = shortened(title, TITLE_LENGTH)
        if not shown:
            raise BadInput("A conversation needs a title", "Write a few words")
        with self._writing() as db:
            self._found(db, owner, conversation)
            db.execute("UPDATE conversations SET title = ? WHERE id = ?", (shown, conversation))
            self._change(db, conversation)

    def delete(self, owner: str, conversation: str) -> None:
        """Remove a conversation and all its turns. Raises NoConversation."""
        with self._writing() as db:
            self._found(db, owner, conversation)
            db.execute("DELETE FROM conversations WHERE id = ?", (conversation,))

    def turns(self, conversation: str) -> list[KeptTurn]:
        """Return all turns of a conversation, of any owner, in all their versions."""
        query = f"SELECT {_TURN} FROM turns WHERE conversation = ? ORDER BY number, place"
        with suppress(NoConversation), self._reading() as db:
            versions = _versions(db, conversation)
            return [self._turn(row, versions) for row in db.execute(query, (conversation,))]
        return []

    def of_user(self, user: str = "") -> list[Listed]:
        """Return conversations as the history lists its own, the last changed first.

        Args:
            user: whose, under whatever filter they were held; empty: everybody's.
        """
        where, values = (f"WHERE {_OF_USER}", (user,)) if user else ("", ())
        with suppress(NoConversation), self._reading() as db:
            rows = db.execute(f"{_LISTED} {where} ORDER BY changed DESC", values)
            return [
                Listed(key, title, _time(begun), _time(changed), owner[:-_HASH_LENGTH], 2 * answered)
                for key, title, begun, changed, owner, answered in rows
            ]
        return []

    def remove_user(self, user: str) -> int:
        """Remove all conversations of somebody; return how many there were."""
        with suppress(NoConversation), self._reading() as db, db.transaction():
            return db.execute(f"DELETE FROM conversations WHERE {_OF_USER}", (user,)).rowcount
        return 0

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
        follows: str = "",
    ) -> tuple[KeptTurn, list[Mapping[str, Any]]]:
        """Keep a question before it is asked; a conversation begins with its first one.

        Args:
            owner: whose conversation it is.
            conversation: its id, chosen by the page.
            turn: the turn's id, chosen by the page: a request that is sent again doubles nothing.
            question: as it was typed.
            settings: what it is asked with.
            alone: whether the turns before it do not count.
            replaces: the turn of which it is another version; empty for none.
            follows: the turn that it follows, unless it replaces one; empty: the one that was asked last.

        Returns:
            The turn, and the results of the last ones that it follows.

        Raises:
            NoConversation: the conversation is somebody else's or was deleted, or has no such turn.
            BadInput: the turn has been asked already.
            UnderWay: another question of the conversation is being answered, or `UNDER_WAY_EACH` of its owner's are.
        """
        with self._writing() as db:
            now = self.clock()
            db.execute(
                "INSERT INTO conversations (id, owner, title, version, changed) VALUES (?, ?, ?, 0, ?)"
                " ON CONFLICT DO NOTHING",
                (conversation, owner, shortened(question, TITLE_LENGTH), now),
            )
            self._found(db, owner, conversation)
            if db.execute("SELECT 1 FROM turns WHERE id = ?", (turn,)).fetchone():
                raise BadInput("This question has been asked already", "Load the conversation again")
            under_way = [each for (each,) in db.execute(_UNDER_WAY, (self._alive, owner))]
            if conversation in under_way:
                raise UnderWay("A question of this conversation is being answered", "Wait for the answer, or stop it")
            if len(under_way) >= UNDER_WAY_EACH:
                told = f"{len(under_way)} of your questions are being answered, as many as may be at once"
                raise UnderWay(told, "Wait for one of the answers, or stop one")
            way = self._way_before(db, conversation, replaces, follows)
            db.execute(
                "INSERT INTO turns (id, conversation, number, question, alone, settings, state, touched)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (turn, conversation, len(way) + 1, question, int(alone), json.dumps(settings), RUNNING, now),
            )
            db.execute("INSERT INTO turn_follows (turn, follows) VALUES (?, ?)", (turn, way[-1] if way else ""))
            self._change(db, conversation)
            before = db.execute(
                f"SELECT result FROM turns WHERE id {AMONG} AND state = ? ORDER BY number DESC LIMIT ?",
                (way, ANSWERED, LAST_TURNS),
            )
            results = [json.loads(result) for (result,) in before][::-1]
            return self._found_turn(db, owner, turn), results

    def tell(self, *reports: Report) -> None:
        """Keep news of turns under way; of those that were stopped or deleted meanwhile nothing is kept."""
        with self._writing() as db:
            for report in reports:
                self._tell(db, report)

    def follow(self, positions: Iterable[tuple[str, int]]) -> list[tuple[str, list[str]]]:
        """Return for each turn its state, empty where it was deleted, and its events from a position on, as JSON.

        Each event tells its position, ``at``. They go a while after the turn has ended.
        """
        query = "SELECT event FROM run_events WHERE turn = ? AND position >= ? ORDER BY position"
        with self._reading() as db:
            reports = []
            for turn, position in positions:
                row = db.execute("SELECT state, touched FROM turns WHERE id = ?", (turn,)).fetchone()
                events = db.execute(query, (turn, position)) if row else ()
                reports.append((self._state(*row) if row else "", [event for (event,) in events]))
            return reports

    def stop(self, owner: str, turn: str) -> None:
        """Let a turn under way end with the words that it has. Raises NoConversation."""
        with self._writing() as db:
            kept = self._found_turn(db, owner, turn)
            stopping = "UPDATE turns SET state = ?, touched = ? WHERE id = ? AND state = 'running'"
            if db.execute(stopping, (STOPPED, self.clock(), turn)).rowcount:
                self._change(db, kept.conversation)

    def _tell(self, db: Database, report: Report) -> None:
        row = db.execute("SELECT conversation FROM turns WHERE id = ? AND state = 'running'", (report.turn,)).fetchone()
        if row is None:
            return
        events = enumerate(report.events, start=report.first)
        rows = [(report.turn, position, json.dumps({**event, "at": position})) for position, event in events]
        db.executemany("INSERT INTO run_events (turn, position, event) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)
        kept = None if report.result is None else json.dumps(report.result)
        answer = report.answer if report.result is None else report.result.get("answer")
        db.execute(
            "UPDATE turns SET state = ?, answer = ?, result = ?, error = ?, touched = ? WHERE id = ?",
            (report.state, answer or "", kept, report.error, self.clock(), report.turn),
        )
        if report.state != RUNNING:
            rested = "SELECT touched FROM turns WHERE id = run_events.turn"
            db.execute(f"DELETE FROM run_events WHERE ({rested}) <= ?", (self._alive,))
            self._change(db, row[0])

    def _way_before(self, db: Database, conversation: str, replaces: str, follows: str) -> list[str]:
        """Return the turns that a new one follows, the first one first.

        Of the versions of a turn that it replaces, those that came to nothing go, unless another turn follows them.
        """
        versions = _versions(db, conversation)
        if any(key and key not in versions.follows for key in (replaces, follows)):
            raise NoConversation("There is no such turn in this conversation", "Load the conversation again")
        if not replaces:
            return versions.way_to(follows) if follows else versions.shown()
        unfollowed = [key for key in versions.beside(replaces) if key in versions.last]
        db.execute(f"DELETE FROM turns WHERE id {AMONG} AND state != ?", (unfollowed, ANSWERED))
        return versions.way_to(versions.follows[replaces])

    def _change(self, db: Database, conversation: str) -> None:
        db.execute(
            "UPDATE conversations SET version = version + 1, changed = ? WHERE id = ?", (self.clock(), conversation)
        )

    def _found_turn(self, db: Database, owner: str, turn: str) -> KeptTurn:
        row = db.execute(f"SELECT {_TURN} FROM turns WHERE id = ?", (turn,)).fetchone()
        if row is None:
            raise NoConversation("There is no such turn", "Load the conversation again")
        conversation = row[1]
        self._found(db, owner, conversation)
        return self._turn(row, _versions(db, conversation))

    def _found(self, db: Database, owner: str, conversation: str) -> Conversation:
        query = f"SELECT {_CONVERSATION} FROM conversations WHERE id = ? AND owner = ?"
        row = db.execute(query, (self._alive, conversation, owner)).fetchone()
        if row is None:
            raise _no_conversation()
        return Conversation(*row)

    def _turn(self, row: Sequence[Any], versions: Versions) -> KeptTurn:
        key, conversation, number, question, alone, settings, state, answer, result, error, touched = row
        state, asked_with = self._state(state, touched), json.loads(settings)
        kept = None if result is None else json.loads(result)
        fields = (question, bool(alone), asked_with, state, "" if kept else answer, kept, error, touched)
        return KeptTurn(key, conversation, number, *fields, versions.beside(key))

    def _state(self, state: str, touched: float) -> str:
        return CUT if state == RUNNING and touched <= self._alive else state

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        self.root.mkdir(parents=True, exist_ok=True)
        with RelationshipRecord.of(self.root, create=True).database as db, db.faults_named(), db.transaction():
            if not db.has_table("turns"):
                db.define((*PAGE_TABLES, *RUN_TABLES, *VERSION_TABLES))
                if isinstance(db, SqliteDatabase):
                    db.path.chmod(0o600)  # no other user of the machine may read it
            yield db

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """Open what is there. Raises NoConversation where none was kept yet."""
        if not has_relationships(self.root):
            raise _no_conversation()
        with RelationshipRecord.of(self.root).database as db, db.faults_named():
            if not db.has_table("turns"):
                raise _no_conversation()
            yield db


def _versions(db: Database, conversation: str) -> Versions:
    query = "SELECT turn, follows FROM turn_follows JOIN turns ON turns.id = turn WHERE conversation = ? ORDER BY place"
    return Versions(dict(db.execute(query, (conversation,))))


def _holds(db: Database, conversation: Conversation, words: Sequence[str]) -> bool:
    query = "SELECT question, answer FROM turns WHERE conversation = ?"
    texts = [conversation.title, *(text for row in db.execute(query, (conversation.id,)) for text in row)]
    text = "\n".join(texts).casefold()
    return all(word in text for word in words)


def _time(seconds: float) -> str:
    return time_text(datetime.fromtimestamp(seconds, UTC))


def _no_conversation() -> NoConversation:
    return NoConversation("There is no such conversation", "It may have been deleted: choose another, or begin one")
