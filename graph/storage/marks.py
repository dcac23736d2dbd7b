"""Marks: which passages served a question and which did not, kept beside the record in a file of their own.

A mark is what a person, a gold standard or an answer's citations said; nothing derives it again, and no generation
depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from graph.errors import BadInput, WorkspaceLocked
from graph.storage.database import Database, Kind
from graph.storage.opening import open_database

FEEDBACK_FILE = "feedback.sqlite"
"""The marks' file in a workspace."""

_SCHEMA = """
CREATE TABLE marks (
    question TEXT NOT NULL, passage_id TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('gold', 'cited', 'person')),
    value INTEGER NOT NULL CHECK (value = 1 OR (value = -1 AND kind = 'person')),
    PRIMARY KEY (question, passage_id, kind)
) WITHOUT ROWID"""
_KEY = ("question", "passage_id", "kind")
_RESTORE = "Restore it from a backup, or delete it: the marks in it are then lost"
_KIND = Kind("marks", lambda db: db.define([_SCHEMA]), _RESTORE)


class MarkKind(StrEnum):
    """Who says that a passage served."""

    GOLD = "gold"
    """The question's gold standard."""
    CITED = "cited"
    """An answer that cites it in a claim that it supports."""
    PERSON = "person"


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """One source's word on a passage and a question.

    Attributes:
        question: as it was asked.
        served: whether the passage helped to answer it; a person alone can say that it did not.
    """

    question: str
    passage_id: str
    kind: MarkKind
    served: bool = True


def add_marks(root: Path, marks: Iterable[Mark]) -> None:
    """Record marks in one transaction; of one question, passage and kind the last stays.

    Args:
        root: the workspace, which is to be there.
        marks: what is said; nothing is checked against the record.

    Raises:
        BadInput: the disk refuses (DiskFull where it is full).
        WorkspaceDamaged: the file cannot be read.
        WorkspaceLocked: other processes write for longer than one waits.
    """
    last = {(mark.question, mark.passage_id, mark.kind.value): 1 if mark.served else -1 for mark in marks}
    with _opened(root) as db, db.transaction():
        db.put("marks", _KEY, ["value"], [(*key, value) for key, value in last.items()])


def read_marks(root: Path) -> list[Mark]:
    """Return all marks of a workspace, by question, passage and kind; none where none was ever recorded.

    Raises as `add_marks` does.
    """
    if not (root / FEEDBACK_FILE).exists():
        return []
    with _opened(root) as db:
        rows = db.execute("SELECT question, passage_id, kind, value FROM marks").fetchall()
    return sorted(Mark(question, passage, MarkKind(kind), value > 0) for question, passage, kind, value in rows)


def forget_marks(root: Path, question: str = "", passage_id: str = "") -> int:
    """Delete the marks of a question, of a passage, or of both together; return how many those were.

    Raises as `add_marks` does, and BadInput where neither is given.
    """
    if not question and not passage_id:
        raise BadInput("Nothing tells which marks are to be forgotten", "Give a question or a passage")
    if not (root / FEEDBACK_FILE).exists():
        return 0
    with _opened(root) as db:
        return db.execute(
            "DELETE FROM marks WHERE question = coalesce(?, question) AND passage_id = coalesce(?, passage_id)",
            (question or None, passage_id or None),
        ).rowcount


def erase_marks(root: Path, questions: Iterable[str]) -> int:
    """Delete all marks of these questions, and leave no byte of them in the file; return how many those were.

    Raises as `add_marks` does, and WorkspaceLocked where another process keeps reading.
    """
    if not (root / FEEDBACK_FILE).exists():
        return 0
    with _opened(root) as db:
        with db.transaction():
            gone = sum(db.execute("DELETE FROM marks WHERE question = ?", (each,)).rowcount for each in set(questions))
        is_erased = db.erase_free_pages()
    if not is_erased:
        raise WorkspaceLocked(
            f"{root / FEEDBACK_FILE} is being read by another process, and its log still holds what was deleted",
            "Do it again when no other process has the workspace open",
        )
    return gone


def served_passages(marks: Iterable[Mark]) -> dict[str, list[str]]:
    """Return {question: the passages that served it}, both in order; questions that none served are left out.

    A person's word counts before any other.
    """
    said: dict[str, dict[str, bool]] = defaultdict(dict)
    for mark in sorted(marks, key=lambda mark: mark.kind is MarkKind.PERSON):
        said[mark.question][mark.passage_id] = mark.served
    served = {
        question: sorted(passage for passage, good in verdicts.items() if good)
        for question, verdicts in sorted(said.items())
    }
    return {question: passages for question, passages in served.items() if passages}


@contextmanager
def _opened(root: Path) -> Iterator[Database]:
    """Open the file, made where there is none, for the length of the block."""
    with open_database(root / FEEDBACK_FILE, _KIND, create=True) as db, db.faults_named():
        yield db
