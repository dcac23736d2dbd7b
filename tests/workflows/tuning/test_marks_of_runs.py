"""Feedback of a finished run or a person becomes marks, of passages that the workspace holds alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.storage.marks import Mark, MarkKind, read_marks
from graph.storage.workspace import Workspace
from tests.builders import passage_of, publish_workspace
from tests.workflows.evaluation import compared_rows
from workflows.tuning.tune import forget, list_marks, record_mark, record_run

GOLD, CITED, PERSON = MarkKind
RIVER, LAKE = "Which river?", "Which lake?"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    passages = [passage_of(key, key.title(), f"{key} is told of.") for key in ("velm", "sund", "marn")]
    return publish_workspace(tmp_path_factory.mktemp("told") / "workspace", passages).root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "workspace"))


def row_of(question: str, system: str = "mara", **changes: Any) -> dict[str, Any]:
    return compared_rows.row(question, "", "", question=question, system=system, **changes)


def citation(passage: str, *, supported: bool) -> dict[str, Any]:
    return {"number": 1, "passage_id": passage, "supported": supported, "gold": False}


def write_run(folder: Path, root: Path, rows: list[dict[str, Any]], **settings: Any) -> Path:
    """Write the files of a finished run on the workspace."""
    systems = {row["system"]: [each for each in rows if each["system"] == row["system"]] for row in rows}
    with Workspace(root).open_record() as record:
        about = {"workspace_id": record.workspace_id, "generation": record.generation, **settings}
    return compared_rows.write_run(folder, systems, **about).folder


Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path, root: Path) -> Run:
    """Write a run of some rows."""
    return lambda *rows, **settings: write_run(tmp_path / "run", root, list(rows), **settings)


class TestRuns:
    def test_gold_is_marked_and_without_gold_what_supports_a_claim(self, root: Path, run: Run) -> None:
        cited = [citation("sund", supported=True), citation("marn", supported=False)]
        folder = run(
            row_of(RIVER, "mara", gold_ids=["velm"], citations=cited),
            row_of(LAKE, "mara", citations=cited),
            row_of(RIVER, "dense", gold_ids=["velm"]),
            row_of(LAKE, "dense"),
        )
        for _ in range(2):
            done = record_run(root, folder)
            assert read_marks(root) == [Mark(LAKE, "sund", CITED), Mark(RIVER, "velm", GOLD)]
            counts = [done[name] for name in ("recorded", "held", "questions", "unknown_passages")]
            assert counts == [2, 2, 2, 0]

    def test_a_passage_that_the_workspace_does_not_hold_is_left_out_and_counted(self, root: Path, run: Run) -> None:
        done = record_run(root, run(row_of(RIVER, gold_ids=["velm", "gone"]), row_of(LAKE, gold_ids=["gone", "lost"])))
        assert (done["unknown_passages"], done["questions"]) == (2, 1)
        assert [mark.passage_id for mark in read_marks(root)] == ["velm"]

    def test_a_run_on_another_workspace_is_refused_since_its_ids_may_mean_others(self, root: Path, run: Run) -> None:
        with pytest.raises(BadInput, match="another workspace"):
            record_run(root, run(row_of(RIVER, gold_ids=["velm"]), workspace_id="other"))
        assert read_marks(root) == []


class TestPeople:
    def test_a_person_marks_what_served_and_what_did_not(self, root: Path) -> None:
        record_mark(root, RIVER, ["velm", "sund", "velm"], served=True)
        done = record_mark(root, RIVER, ["sund"], served=False)
        assert (done["recorded"], done["held"]) == (1, 2)
        assert read_marks(root) == [Mark(RIVER, "sund", PERSON, served=False), Mark(RIVER, "velm", PERSON)]

    def test_unknown_passages_or_no_question_record_nothing(self, root: Path) -> None:
        for question, passages in ((RIVER, ["velm", "gone"]), (" ", ["velm"])):
            with pytest.raises(BadInput):
                record_mark(root, question, passages, served=True)
        assert read_marks(root) == []


def test_marks_are_listed_and_forgotten(root: Path, run: Run) -> None:
    record_run(root, run(row_of(RIVER, gold_ids=["velm", "sund"]), row_of(LAKE, gold_ids=["sund"])))
    record_mark(root, RIVER, ["marn"], served=False)
    listed = [(mark["passage_id"], mark["kind"], mark["served"]) for mark in list_marks(root)["marks"]]
    gold = ("sund", "gold", True)
    assert listed == [gold, ("marn", "person", False), gold, ("velm", "gold", True)]
    done = forget(root, RIVER, ["velm", "marn"])
    assert (done["forgotten"], done["held"], done["questions"]) == (2, 2, 2)
    assert [mark.passage_id for mark in read_marks(root)] == ["sund", "sund"]
