"""Marks: idempotent, safe for several writers, and strict when read."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from graph.errors import BadInput, WorkspaceDamaged
from graph.storage.marks import (
    FEEDBACK_FILE,
    Mark,
    MarkKind,
    add_marks,
    forget_marks,
    read_marks,
    served_passages,
)

GOLD, CITED, PERSON = MarkKind
A_GOLD = Mark("Which river?", "velm", GOLD)
A_CITED = Mark("Which river?", "sund", CITED)
A_NO = Mark("Which river?", "sund", PERSON, served=False)


class TestRecording:
    def test_recording_the_same_again_changes_nothing_and_a_person_may_change_their_mind(self, tmp_path: Path) -> None:
        for _ in range(2):
            add_marks(tmp_path, [A_GOLD, A_NO])
            assert read_marks(tmp_path) == [A_NO, A_GOLD]
        yes = Mark(A_NO.question, A_NO.passage_id, PERSON)
        add_marks(tmp_path, [A_NO, yes])
        assert read_marks(tmp_path) == [yes, A_GOLD]

    def test_several_writers_at_once_lose_nothing_not_even_as_the_file_is_made(self, tmp_path: Path) -> None:
        def write(number: int) -> None:
            add_marks(tmp_path, [Mark(f"question {number}", f"p{i}", GOLD) for i in range(10)])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(16)))
        assert len(read_marks(tmp_path)) == 160


class TestForgetting:
    def test_takes_what_meets_all_conditions(self, tmp_path: Path) -> None:
        cases: list[tuple[dict[str, str], list[Mark]]] = [
            ({"question": "Which river?"}, []),
            ({"passage_id": "sund"}, [A_GOLD]),
            ({"question": "Which river?", "passage_id": "velm"}, [A_CITED, A_NO]),
            ({"question": "Which lake?"}, [A_CITED, A_NO, A_GOLD]),
        ]
        for conditions, left in cases:
            add_marks(tmp_path, [A_GOLD, A_CITED, A_NO])
            assert forget_marks(tmp_path, **conditions) == 3 - len(left), conditions
            assert read_marks(tmp_path) == left, conditions

    def test_everything_is_not_forgotten_by_oversight(self, tmp_path: Path) -> None:
        add_marks(tmp_path, [A_GOLD])
        with pytest.raises(BadInput, match="which marks"):
            forget_marks(tmp_path)
        assert read_marks(tmp_path) == [A_GOLD]


def test_a_person_counts_before_what_runs_say() -> None:
    no_gold = Mark("Which river?", "velm", PERSON, served=False)
    for marks, served in (
        ([A_CITED, A_GOLD], {"Which river?": ["sund", "velm"]}),
        ([no_gold, A_GOLD, Mark("Which river?", "marn", PERSON)], {"Which river?": ["marn"]}),
        ([A_CITED, A_NO], {}),
    ):
        assert served_passages(marks) == served, marks


def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / FEEDBACK_FILE
    add_marks(tmp_path, [A_GOLD])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("DROP TABLE marks; CREATE TABLE other (x)")
    with pytest.raises(WorkspaceDamaged, match=r"feedback\.sqlite cannot be read.*backup"):
        read_marks(tmp_path)
