"""The folder of a run: rows outlive its interruption, settings must agree, and other files in it are not touched."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from graph.errors import BadInput
from tests.builders import Child
from tests.workflows.runs.batches import lines_of, names_in
from workflows.runs import run_folder
from workflows.runs.batch import write_answers
from workflows.runs.run_folder import (
    BATCH,
    EVALUATION,
    METRICS,
    RESULTS,
    Answered,
    Row,
    RunFolder,
    dumps,
    json_lines,
    load_run,
    writing,
)
from workflows.settings.enums import Format

IDS = ["q1", "q2", "q3"]
KEYS = [(key,) for key in IDS]


def of_batch(asked: int = 3, **changes: Any) -> Row:
    return {
        **{"format_version": 1, "workflow": "mara", "debug": False, "generation": 1, "settings": {"alpha": 0.5}},
        "questions": {"file": "questions.jsonl", "sha256": "0", "count": 3, "limit": None, "asked": asked},
        **changes,
    }


def of_evaluation(*systems: str, **changes: Any) -> Row:
    return {
        "format_version": 1,
        "systems": {system: {"mode": "mara", "damping": 0.7} for system in systems},
        "questions": {"file": "questions.jsonl", "asked": len(IDS), "seed": 0},
        "generation": 1,
        **changes,
    }


def answer(key: str, **more: Any) -> Answered:
    row = {"id": key, "answer": f"So {key}.", "failed": None, **more}
    return Answered(row, {"id": key, "total_ms": 1.5, **({"system": more["system"]} if "system" in more else {})})


def finish_batch(path: Path, form: Format = Format.JSONL, ids: list[str] = IDS) -> None:
    with writing(path, BATCH) as folder:
        folder.begin(of_batch(len(ids)))
        for key in reversed(ids):
            if (key,) not in folder.answered:
                folder.add(answer(key))
        write_answers(folder, [(key,) for key in ids], form)


def finish_evaluation(path: Path, *systems: str) -> None:
    keys = [(system, question) for system in systems for question in IDS]
    with writing(path, EVALUATION) as folder:
        folder.begin(of_evaluation(*systems))
        for system, question in reversed(keys):
            folder.add(answer(question, system=system))
        rows = [folder.answered[key].row for key in keys]
        folder.finish(keys, {RESULTS: json_lines(rows), METRICS: json.dumps({"systems": {}})})


def answered_in(path: Path) -> RunFolder:
    """The folder of a batch as the next process finds it."""
    with writing(path, BATCH) as folder:
        folder.begin(of_batch())
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "run"


class TestJournal:
    def test_rows_are_valid_unicode_and_numbers(self, path: Path) -> None:
        with writing(path, BATCH) as folder:
            folder.begin(of_batch())
            for number in (float("nan"), float("inf")):
                with pytest.raises(ValueError, match="not JSON compliant"):
                    folder.add(answer("q1", score=number))
            assert not (path / "journal.jsonl").exists()
            folder.add(answer("q1", text="a \ud83d b", other="Köln"))
        assert (path / "journal.jsonl").read_text(encoding="utf-8").isascii()
        assert answered_in(path).answered[("q1",)] == answer("q1", text="a \ud83d b", other="Köln")
        assert dumps({"answer": "Köln"}) == '{"answer": "Köln"}'

    def test_a_full_disk_takes_back_what_it_took_of_a_row_and_the_journal_goes_on(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = os.write
        written: list[int] = []

        def fills_up(file: int, data: bytes) -> int:
            if written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(write(file, data[:4]))
            return 4

        with writing(path, BATCH) as folder:
            folder.begin(of_batch())
            folder.add(answer("q1"))
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", fills_up)
                with pytest.raises(OSError, match="No space left"):
                    folder.add(answer("q2"))
            folder.add(answer("q3"))
        folder.add(answer("q2"))
        assert list(answered_in(path).answered) == [("q1",), ("q3",)], "one that is late is dropped"


class TestBatch:
    def test_answers_are_written_in_order_in_the_format_of_the_batch(self, tmp_path: Path) -> None:
        names = {Format.JSONL: "answers.jsonl", Format.JSON: "answers.json", Format.DEBUG: "debug.jsonl"}
        for form, name in names.items():
            path = tmp_path / str(form)
            finish_batch(path, form)
            file = path / name
            rows = json.loads(file.read_text(encoding="utf-8")) if form is Format.JSON else lines_of(file)
            assert rows == [answer(key).row for key in IDS]
            assert [row["id"] for row in lines_of(path / "timings.jsonl")] == IDS
            assert names_in(path) == sorted([name, "batch.json", "timings.jsonl"])
            assert list(answered_in(path).answered) == KEYS, f"a finished batch of {form} is gone on with"

    def test_a_batch_takes_more_questions_but_not_fewer_and_keeps_each_format_up_to_date(self, path: Path) -> None:
        finish_batch(path, Format.JSONL, IDS[:2])
        finish_batch(path, Format.JSON)
        rows = [answer(key).row for key in IDS]
        assert lines_of(path / "answers.jsonl") == json.loads((path / "answers.json").read_text("utf-8")) == rows
        with writing(path, BATCH) as folder, pytest.raises(BadInput, match=r"questions\.asked was 3, now 2"):
            folder.begin(of_batch(2))

    @examples(max_examples=25)
    @given(cut=st.integers(0, 400), broken=st.sampled_from(["a\ud83db", "\u2028", "Köln\n"]))
    def test_wherever_a_batch_was_killed_it_goes_on_to_the_same_files(
        self, tmp_path_factory: pytest.TempPathFactory, cut: int, broken: str
    ) -> None:
        folder = tmp_path_factory.mktemp("batches")
        for name, cut_off in (("whole", 0), ("killed", cut)):
            with writing(folder / name, BATCH) as begun:
                begun.begin(of_batch())
                for key in IDS:
                    begun.add(answer(key, text=broken))
            journal = folder / name / "journal.jsonl"
            journal.write_bytes(journal.read_bytes()[: max(0, journal.stat().st_size - cut_off)])
            with writing(folder / name, BATCH) as gone_on:
                gone_on.begin(of_batch())
                for key in IDS:
                    if (key,) not in gone_on.answered:
                        gone_on.add(answer(key, text=broken))
                write_answers(gone_on, KEYS, Format.JSON)
        assert (folder / "killed" / "answers.json").read_bytes() == (folder / "whole" / "answers.json").read_bytes()

    def test_a_batch_killed_while_its_files_are_written_loses_nothing(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def dies(*written: object) -> None:
            raise KeyboardInterrupt

        with writing(path, BATCH) as folder:
            folder.begin(of_batch())
            for key in IDS:
                folder.add(answer(key))
            with monkeypatch.context() as patch:
                patch.setattr(run_folder, "write_atomically", dies)
                with pytest.raises(KeyboardInterrupt):
                    write_answers(folder, KEYS, Format.JSONL)
        assert list(answered_in(path).answered) == KEYS

    def test_the_later_of_two_rows_about_one_question_counts(self, path: Path) -> None:
        finish_batch(path)
        with writing(path, BATCH) as folder:
            folder.begin(of_batch())
            folder.add(answer("q2", answer="Other."))
            folder.add(answer("q2", answer="Otherwise."))
        with writing(path, BATCH) as folder:
            folder.begin(of_batch())
            write_answers(folder, KEYS, Format.JSONL)
        assert [row["answer"] for row in lines_of(path / "answers.jsonl")] == ["So q1.", "Otherwise.", "So q3."]

    def test_a_damaged_file_is_named(self, tmp_path: Path) -> None:
        cases = [
            (Format.JSONL, "batch.json", "{", "batch.json cannot be read"),
            (Format.JSONL, "batch.json", '{"format_version": 2}', "has format 2, not 1"),
            (Format.JSONL, "answers.jsonl", '{"id": "q1"}\n', "answers.jsonl, line 1 is damaged"),
            (Format.JSON, "answers.json", '[{"id": "q1"}]', "answers.json is damaged"),
            (Format.JSONL, "timings.jsonl", "\x00\n", "timings.jsonl, line 1 is damaged"),
            (Format.JSONL, "journal.jsonl", '{oops\n{"row": {}}\n', "journal.jsonl, line 1 is damaged"),
        ]
        for number, (form, name, text, said) in enumerate(cases):
            path = tmp_path / str(number)
            finish_batch(path, form)
            (path / name).write_text(text, encoding="utf-8")
            with pytest.raises(BadInput) as refused:
                answered_in(path)
            assert said in str(refused.value), name


class TestEvaluation:
    def test_a_run_takes_another_system_but_not_one_otherwise_set(self, path: Path) -> None:
        finish_evaluation(path, "mara")
        other = of_evaluation("mara", generation=2)
        other["systems"]["mara"] = {"mode": "mara", "damping": 0.5, "alpha": 0.1}
        with writing(path, EVALUATION) as folder, pytest.raises(BadInput) as refused:
            folder.begin(other)
        for said in ("systems.mara.damping was 0.7, now 0.5", "alpha was None, now 0.1", "generation was 1, now 2"):
            assert said in str(refused.value)
        with writing(path, EVALUATION) as folder:
            folder.begin(of_evaluation("mara", "dense"))
            folder.add(answer("q1", system="dense"))
        with pytest.raises(BadInput, match="is not finished") as unfinished:
            load_run(path)
        assert "Run the same `mara eval` again" in unfinished.value.hint
        with writing(path, EVALUATION) as folder:
            folder.begin(of_evaluation("mara", "dense"))
            assert len(folder.answered) == 4

    def test_a_damaged_or_missing_file_is_named(self, tmp_path: Path) -> None:
        cases = [
            ("metrics.json", None, "metrics.json cannot be read"),
            ("results.jsonl", None, "is not finished"),
        ]
        for number, (name, text, said) in enumerate(cases):
            path = tmp_path / str(number)
            finish_evaluation(path, "mara")
            (path / name).unlink() if text is None else (path / name).write_text(text, encoding="utf-8")
            with pytest.raises(BadInput, match=said):
                load_run(path)


def test_a_folder_of_something_else_or_a_file_is_left_alone(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "run.json").write_text("the folder of an evaluation", encoding="utf-8")
    for restart in (False, True):
        with pytest.raises(BadInput, match="holds something else than a run"), writing(path, BATCH, restart=restart):
            pass
    assert names_in(path) == ["run.json"]
    with pytest.raises(BadInput, match="is a file"), writing(path / "run.json", EVALUATION):
        pass
    with pytest.raises(BadInput, match="There is no run at"):
        load_run(path / "nowhere")


WRITE = """
import sys
from pathlib import Path
from workflows.runs.run_folder import EVALUATION, writing
with writing(Path(sys.argv[1]), EVALUATION):
    print("writing")
    input()
"""


def test_one_process_writes_a_run_and_the_next_once_that_has_ended(path: Path) -> None:
    with Child(WRITE, path) as other:
        assert other.hear() == "writing"
        with pytest.raises(BadInput, match="Another process writes the run"), writing(path, EVALUATION):
            pass
        other.kill()
        with writing(path, EVALUATION) as folder:
            folder.begin(of_evaluation("mara"))
