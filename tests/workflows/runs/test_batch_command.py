"""``mara batch`` on the command line: a folder of answers, a summary, and an exit code that tells the fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.errors import ModelUnavailable
from tests.workflows.command_line import Mara, Outcome
from tests.workflows.runs.batches import IDS, QUESTIONS, Watch, lines_of, names_in
from tests.workflows.small_world import write_lines


class BatchCommand:
    """Runs the command on the small rows and questions."""

    def __init__(self, mara: Mara, workspace: Path, folder: Path) -> None:
        self.questions = folder / "questions.jsonl"
        self.out = folder / "batch"
        self._mara = mara
        self._workspace = workspace
        write_lines(self.questions, QUESTIONS)

    def __call__(self, *options: str | Path) -> Outcome:
        return self.without_questions(self.questions, *options)

    def without_questions(self, *options: str | Path) -> Outcome:
        return self._mara("batch", "-w", self._workspace, "--out", self.out, *options)


@pytest.fixture
def batch(mara: Mara, rivers: Path, tmp_path: Path) -> BatchCommand:
    return BatchCommand(mara, rivers, tmp_path)


def test_answers_are_written_and_summed_up(batch: BatchCommand) -> None:
    shown = batch("--limit", "2")
    assert shown.code == 0
    assert "2 questions: 0 answered, 2 with quotes that no model checked, 0 refused" in shown.out
    assert str(batch.out / "answers.jsonl") in shown.out.replace("\n", "")
    assert names_in(batch.out) == ["answers.jsonl", "batch.json", "timings.jsonl"]
    assert [row["id"] for row in lines_of(batch.out / "answers.jsonl")] == IDS[:2]
    summary = batch("--json", "--format", "json", "--limit", "2")
    assert summary.json == {
        **{"file": str(batch.out / "answers.json"), "questions": 2, "answered": 0, "evidence": 2, "refused": 0},
        **{"asked_back": 0, "failed": 0, "failures": {}, "fallbacks": {}, "coverage": {}, "model_calls": 0},
    }
    assert [row["id"] for row in json.loads((batch.out / "answers.json").read_text(encoding="utf-8"))] == IDS[:2]


def test_a_single_question_takes_the_place_of_a_file(batch: BatchCommand) -> None:
    shown = batch.without_questions("--single-question", "Who dammed Lake Sund?", "--format", "debug", "--json")
    assert (shown.code, shown.json["questions"]) == (0, 1)
    assert lines_of(batch.out / "debug.jsonl")[0]["question"] == "Who dammed Lake Sund?"


def test_failed_questions_are_shown_with_their_kinds_and_ctrl_c_exits_with_130(
    batch: BatchCommand, watch: Watch
) -> None:
    watch.break_off_at("q3", KeyboardInterrupt())
    stopped = batch()
    assert (stopped.code, stopped.out) == (130, "")
    assert "run the same command to go on" in stopped.err
    watch.break_off_at("q3", ModelUnavailable("No model is there"))
    shown = batch()
    assert shown.code == 0
    assert "1 failed (ModelUnavailable 1)" in shown.out
    watch.go_on()
    assert " failed" not in batch().out
    assert watch.asked == ["q3"]
