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

    Raises:
        BadInput: gold or a citation is to say that a passage did not serve.
    """

    question: str
    passage_id: str
    kind: MarkKind
    served: bool = True

    def __post_init__(self) -> None:
        if not self.served and self.kind is not MarkKind.PERSON:
            raise BadInput(f"A {self.kind} mark says that a passage did not serve", "Let a person's mark say so")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The changes from recording marks: the number new, the number changed, and the number unchanged."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0


def add_marks(root: Path, marks: Iterable[Mark]) -> Recorded:
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
        known = {tuple(key): value for *key, value in db.execute("SELECT question, passage_id, kind, value FROM marks")}
        db.put("marks", _KEY, ["value"], [(*key, value) for key, value in last.items()])
    new = len(last.keys() - known.keys())
    unchanged = len(last.items() & known.items())
    return Recorded(new, len(last) - new - unchanged, unchanged)


def read_marks(root: Path) -> list[Mark]:
    """Return all marks of a workspace, by question, passage and kind; none where none was ever recorded.

    Raises as `add_marks` does.
    """
    if not (root / FEEDBACK_FILE).exists():
        return []
    with _opened(root) as db:
        rows = db.execute("SELECT question, passage_id, kind, value FROM marks").fetchall()
    return sorted(Mark(question, passage, MarkKind(kind), value > 0) for question, passage, kind, value in rows)


def forget_marks(root: Path, question: str = "", passage_id: str = "", kind: MarkKind | None = None) -> int:
    """Delete the marks that meet all conditions given; return how many those were.

    Raises as `add_marks` does, and BadInput where no condition is given.
    """
    wanted = {"question": question, "passage_id": passage_id, "kind": kind.value if kind else ""}
    conditions = {column: value for column, value in wanted.items() if value}
    if not conditions:
        raise BadInput("Nothing tells which marks are to be forgotten", "Give a question, a passage or a kind")
    if not (root / FEEDBACK_FILE).exists():
        return 0
    where = " AND ".join(f"{column} = ?" for column in conditions)
    with _opened(root) as db:
        return db.execute(f"DELETE FROM marks WHERE {where}", tuple(conditions.values())).rowcount


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


def served_passages(marks: Iterable[Mark]) -> dict[str, tuple[str, ...]]:
    """Return {question: the passages that served it}, both in order; questions that none served are left out.

    A person's word counts before any other. Where gold is known, a citation adds nothing: an answer cites what was
    retrieved, and so would only confirm it.
    """
    said: dict[str, dict[MarkKind, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for mark in marks:
        said[mark.question][mark.kind][mark.passage_id] = mark.served
    served_of = {}
    for question in sorted(said):
        by_kind = said[question]
        verdicts = {**(by_kind[MarkKind.GOLD] or by_kind[MarkKind.CITED]), **by_kind[MarkKind.PERSON]}
        served = tuple(sorted(passage for passage, good in verdicts.items() if good))
        if served:
            served_of[question] = served
    return served_of


@contextmanager
def _opened(root: Path) -> Iterator[Database]:
    """Open the file, made where there is none, for the length of the block."""
    with open_database(root / FEEDBACK_FILE, _KIND, create=True) as db, db.faults_named():
        yield db
