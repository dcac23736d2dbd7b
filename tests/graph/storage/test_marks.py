"""Marks: idempotent, safe for several writers, and strict when read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
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

    def test_recording_the_same_again_changes_nothing(self, tmp_path: Path) -> None:
        add_marks(tmp_path, [A_GOLD, A_NO])
        assert add_marks(tmp_path, [A_GOLD, A_NO]) == Recorded(unchanged=2)
        assert len(read_marks(tmp_path)) == 2

    def test_a_person_may_change_their_mind(self, tmp_path: Path) -> None:
        add_marks(tmp_path, [A_NO])
        yes = Mark(A_NO.question, A_NO.passage_id, PERSON)
        assert add_marks(tmp_path, [A_NO, yes]) == Recorded(changed=1)
        assert read_marks(tmp_path) == [yes]

    @pytest.mark.parametrize("kind", [GOLD, CITED])
    def test_a_person_alone_can_say_that_a_passage_did_not_serve(self, kind: MarkKind) -> None:
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
    @pytest.mark.parametrize(
        ("conditions", "left"),
        [
            ({"question": "Which river?"}, []),
            ({"passage_id": "sund"}, [A_GOLD]),
            ({"kind": CITED}, [A_NO, A_GOLD]),
            ({"passage_id": "sund", "kind": PERSON}, [A_CITED, A_GOLD]),
            ({"question": "Which lake?"}, [A_CITED, A_NO, A_GOLD]),
        ],
    )
    def test_takes_what_meets_all_conditions(
        self, tmp_path: Path, conditions: dict[str, MarkKind], left: list[Mark]
    ) -> None:
        add_marks(tmp_path, [A_GOLD, A_CITED, A_NO])
        assert forget_marks(tmp_path, **conditions) == 3 - len(left)
        assert read_marks(tmp_path) == left

    def test_everything_is_not_forgotten_by_oversight(self, tmp_path: Path) -> None:
        add_marks(tmp_path, [A_GOLD])
        with pytest.raises(BadInput, match="which marks"):
            forget_marks(tmp_path)
        assert read_marks(tmp_path) == [A_GOLD]


class TestWhatServed:
    def test_a_cited_passage_served_where_nothing_better_is_known(self) -> None:
        assert served_passages([A_CITED]) == {"Which river?": ("sund",)}

    def test_where_gold_is_known_a_citation_adds_nothing(self) -> None:
        assert served_passages([A_CITED, A_GOLD]) == {"Which river?": ("velm",)}

    def test_a_person_adds_to_gold_and_takes_from_it(self) -> None:
        marks = [A_GOLD, Mark("Which river?", "velm", PERSON, served=False), Mark("Which river?", "marn", PERSON)]
        assert served_passages(marks) == {"Which river?": ("marn",)}

    def test_a_question_that_nothing_served_is_left_out(self) -> None:
        assert served_passages([A_CITED, A_NO]) == {}

    @given(st.permutations([A_GOLD, A_CITED, A_NO, Mark("q", "b", CITED), Mark("q", "a", CITED), Mark("a", "x", GOLD)]))
    @settings(max_examples=20)
    def test_the_order_of_the_marks_does_not_matter(self, marks: list[Mark]) -> None:
        found = served_passages(marks)
        assert list(found.items()) == [("Which river?", ("velm",)), ("a", ("x",)), ("q", ("a", "b"))]


def scribble(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def other_table(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE other (x)")
        db.execute("PRAGMA user_version = 1")


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 2")


def strange_kind(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute("UPDATE marks SET kind = 'rumour'")


class TestFaults:
    @pytest.mark.parametrize("damage", [scribble, other_table, newer, strange_kind])
    def test_a_damaged_file_is_told_with_what_to_do(self, tmp_path: Path, damage: Callable[[Path], None]) -> None:
        add_marks(tmp_path, [A_GOLD])
        damage(tmp_path / FEEDBACK_FILE)
        with pytest.raises(WorkspaceDamaged, match=r"feedback\.sqlite cannot be read") as told:
            read_marks(tmp_path)
        assert "backup" in told.value.hint

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
