"""Marks: idempotent, safe for several writers, and strict when read."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput, WorkspaceDamaged, WorkspaceLocked
from graph.storage import database
from graph.storage.marks import (
    FEEDBACK_FILE,
    Mark,
    MarkKind,
    Recorded,
    add_marks,
    forget_marks,
    read_marks,
    served_passages,
)
from tests.builders import Child

GOLD, CITED, PERSON = MarkKind
A_GOLD = Mark("Which river?", "velm", GOLD)
A_CITED = Mark("Which river?", "sund", CITED)
A_NO = Mark("Which river?", "sund", PERSON, served=False)


class TestRecording:
    def test_a_workspace_without_marks_has_no_file_of_them(self, tmp_path: Path) -> None:
        assert read_marks(tmp_path) == []
        assert forget_marks(tmp_path, question="Which river?") == 0
        assert list(tmp_path.iterdir()) == []

    def test_what_was_recorded_is_read_by_question_passage_and_kind(self, tmp_path: Path) -> None:
        other = Mark("青石鎮?", "Белогорка", PERSON)
        assert add_marks(tmp_path, [other, A_NO, A_GOLD, A_CITED]) == Recorded(new=4)
        assert read_marks(tmp_path) == [A_CITED, A_NO, A_GOLD, other]

    def test_recording_the_same_again_changes_nothing_and_a_person_may_change_their_mind(self, tmp_path: Path) -> None:
        add_marks(tmp_path, [A_GOLD, A_NO])
        assert add_marks(tmp_path, [A_GOLD, A_NO]) == Recorded(unchanged=2)
        yes = Mark(A_NO.question, A_NO.passage_id, PERSON)
        assert add_marks(tmp_path, [A_NO, yes]) == Recorded(changed=1)
        assert read_marks(tmp_path) == [yes, A_GOLD]

    def test_a_person_alone_can_say_that_a_passage_did_not_serve(self) -> None:
        for kind in [GOLD, CITED]:
            with pytest.raises(BadInput, match="did not serve"):
                Mark("Which river?", "velm", kind, served=False)

    def test_several_writers_at_once_lose_nothing_not_even_as_the_file_is_made(self, tmp_path: Path) -> None:
        def write(number: int) -> Recorded:
            return add_marks(tmp_path, [Mark(f"question {number}", f"p{i}", GOLD) for i in range(10)])

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(write, range(16))) == [Recorded(new=10)] * 16
        assert len(read_marks(tmp_path)) == 160

    def test_a_killed_writer_leaves_what_was_committed(self, tmp_path: Path) -> None:
        add_marks(tmp_path, [A_GOLD])
        with Child(WRITE_HALF, tmp_path / FEEDBACK_FILE) as child:
            assert child.hear() == "half"
            child.kill()
        assert read_marks(tmp_path) == [A_GOLD]
        assert add_marks(tmp_path, [A_NO]) == Recorded(new=1)


WRITE_HALF = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
db.execute("DELETE FROM marks")
print("half")
input()
"""


class TestForgetting:
    def test_takes_what_meets_all_conditions(self, tmp_path: Path) -> None:
        cases: list[tuple[dict[str, Any], list[Mark]]] = [
            ({"question": "Which river?"}, []),
            ({"passage_id": "sund"}, [A_GOLD]),
            ({"kind": CITED}, [A_NO, A_GOLD]),
            ({"passage_id": "sund", "kind": PERSON}, [A_CITED, A_GOLD]),
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


class TestWhatServed:
    def test_gold_counts_before_citations_and_a_person_before_both(self) -> None:
        no_gold = Mark("Which river?", "velm", PERSON, served=False)
        for marks, served in (
            ([A_CITED], {"Which river?": ("sund",)}),
            ([A_CITED, A_GOLD], {"Which river?": ("velm",)}),
            ([A_GOLD, no_gold, Mark("Which river?", "marn", PERSON)], {"Which river?": ("marn",)}),
            ([A_CITED, A_NO], {}),
        ):
            assert served_passages(marks) == served, marks

    @given(st.permutations([A_GOLD, A_CITED, A_NO, Mark("q", "b", CITED), Mark("q", "a", CITED), Mark("a", "x", GOLD)]))
    def test_the_order_of_the_marks_does_not_matter(self, marks: list[Mark]) -> None:
        served = [("Which river?", ("velm",)), ("a", ("x",)), ("q", ("a", "b"))]
        assert list(served_passages(marks).items()) == served


class TestFaults:
    def test_a_damaged_file_is_an_error_that_says_what_to_do(self, tmp_path: Path) -> None:
        path = tmp_path / FEEDBACK_FILE
        for damage in (
            "DROP TABLE marks; CREATE TABLE other (x)",
            "PRAGMA user_version = 2",
            "PRAGMA ignore_check_constraints = 1; UPDATE marks SET kind = 'rumour'",
            "",
        ):
            add_marks(tmp_path, [A_GOLD])
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                db.executescript(damage)
            if not damage:
                path.write_bytes(b"no database at all" * 100)
            with pytest.raises(WorkspaceDamaged, match=r"feedback\.sqlite cannot be read.*backup"):
                read_marks(tmp_path)
            path.unlink()

    def test_a_writer_that_never_ends_is_not_waited_for_for_ever(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_marks(tmp_path, [A_GOLD])
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.01)
        with closing(sqlite3.connect(tmp_path / FEEDBACK_FILE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(WorkspaceLocked, match="another process"):
                add_marks(tmp_path, [A_NO])
            assert read_marks(tmp_path) == [A_GOLD]

    def test_a_disk_that_refuses_is_no_damage(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="cannot be opened for writing"):
            add_marks(tmp_path / "nowhere", [A_GOLD])
