"""The folder of a run: rows outlive what breaks a run off, settings must agree, and nobody else's files are touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from graph.errors import BadInput
from tests.builders import Child
from workflows.runs.run_folder import EVALUATION, RESULTS, Answered, Row, RunFolder, json_lines, load_run, writing
from workflows.runs.run_folder import METRICS as METRICS_FILE

QUESTIONS = ["q1", "q2"]
METRICS: Row = {"systems": {}}
JSON_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def settings_of(*systems: str, **changes: Any) -> Row:
    return {
        "format_version": 1,
        "systems": {system: {"mode": "mara", "damping": 0.7} for system in systems},
        "questions": {"file": "questions.jsonl", "asked": len(QUESTIONS), "seed": 0},
        "generation": 1,
        **changes,
    }


def answer(system: str, question: str, **more: Any) -> Answered:
    return Answered({"id": question, "system": system, **more}, {"id": question, "system": system, "total_ms": 1.5})


def finish_rows(folder: RunFolder) -> None:
    keys = [(system, question) for system in folder.settings["systems"] for question in QUESTIONS]
    rows = [folder.answered[key].row for key in keys]
    folder.finish(keys, {RESULTS: json_lines(rows), METRICS_FILE: json.dumps(METRICS)})


def finish(path: Path, *systems: str) -> None:
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of(*systems))
        for system in systems:
            for question in reversed(QUESTIONS):
                folder.add(answer(system, question))
        finish_rows(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "run"


def test_a_finished_run_is_read_as_it_was_written_in_order(path: Path) -> None:
    finish(path, "mara", "dense")
    run = load_run(path)
    assert (run.folder, run.settings, run.metrics) == (path, settings_of("mara", "dense"), METRICS)
    assert list(run.results) == list(run.timings) == ["mara", "dense"]
    for system in ("mara", "dense"):
        assert [row["id"] for row in run.results[system]] == [row["id"] for row in run.timings[system]] == QUESTIONS
    assert run.timings["mara"][0]["total_ms"] == 1.5


@examples(max_examples=25)
@given(st.dictionaries(st.text().filter(lambda key: key not in ("id", "system")), JSON_LEAVES, max_size=4))
def test_a_row_comes_back_whatever_it_holds(tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("run") / "run"
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        folder.add(answer("mara", "q1", **values))
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        assert folder.answered == {("mara", "q1"): answer("mara", "q1", **values)}
        folder.add(answer("mara", "q2"))
        finish_rows(folder)
    assert load_run(path).results["mara"][0] == answer("mara", "q1", **values).row


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_row_that_was_torn_is_dropped_and_the_next_one_stands_on_its_own_line(path: Path, cut: int) -> None:
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        folder.add(answer("mara", "q1"))
        folder.add(answer("mara", "q2", text="a" * 100))
    journal = path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        assert list(folder.answered) == [("mara", "q1")]
        folder.add(answer("mara", "q2"))
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        assert list(folder.answered) == [("mara", "q1"), ("mara", "q2")]


def test_a_row_within_the_journal_that_is_damaged_is_told_with_its_line(path: Path) -> None:
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        folder.add(answer("mara", "q1"))
    journal = path / "journal.jsonl"
    journal.write_bytes(b"{oops\n" + journal.read_bytes())
    with writing(path, EVALUATION) as folder, pytest.raises(BadInput, match=r"journal.jsonl, line 1 is damaged"):
        folder.begin(settings_of("mara"))


def test_the_later_of_two_rows_about_one_question_counts(path: Path) -> None:
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        folder.add(answer("mara", "q1", failed=True))
        folder.add(answer("mara", "q1", failed=False))
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
        assert [one.row["failed"] for one in folder.answered.values()] == [False]


def test_a_row_that_comes_too_late_is_dropped(path: Path) -> None:
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara"))
    folder.add(answer("mara", "q1"))
    assert not (path / "journal.jsonl").exists()


def test_settings_that_differ_are_refused_with_what_differs(path: Path) -> None:
    finish(path, "mara")
    other = settings_of("mara", generation=2)
    other["systems"]["mara"] = {"mode": "mara", "damping": 0.5, "alpha": 0.1}
    with writing(path, EVALUATION) as folder, pytest.raises(BadInput) as refused:
        folder.begin(other)
    for said in ("systems.mara.damping was 0.7, now 0.5", "alpha was None, now 0.1", "generation was 1, now 2"):
        assert said in str(refused.value)
    assert load_run(path).settings == settings_of("mara")


def test_a_run_that_takes_another_system_is_not_finished_until_that_has_answered(path: Path) -> None:
    finish(path, "mara")
    with writing(path, EVALUATION) as folder:
        assert list(folder.settings["systems"]) == ["mara"]
        folder.begin(settings_of("mara", "dense"))
        folder.add(answer("dense", "q1"))
    with pytest.raises(BadInput, match="is not finished") as unfinished:
        load_run(path)
    assert "Run the same `mara eval` again" in unfinished.value.hint
    with writing(path, EVALUATION) as folder:
        folder.begin(settings_of("mara", "dense"))
        assert len(folder.answered) == 3


def test_restarting_deletes_what_a_run_wrote_and_nothing_else(path: Path) -> None:
    finish(path, "mara")
    (path / "notes.txt").write_text("mine", encoding="utf-8")
    (path / "report.md").write_text("old", encoding="utf-8")
    with writing(path, EVALUATION, restart=True) as folder:
        assert folder.settings == {}
        assert sorted(each.name for each in path.iterdir()) == [".lock", "notes.txt"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_something_else_is_left_alone(path: Path, restart: bool) -> None:
    path.mkdir(parents=True)
    (path / "results.jsonl").write_text("someone else's\n", encoding="utf-8")
    with pytest.raises(BadInput, match="holds something else than a run"), writing(path, EVALUATION, restart=restart):
        pass
    assert [each.name for each in path.iterdir()] == ["results.jsonl"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match="is a file"), writing(tmp_path / "run", EVALUATION):
        pass
    with pytest.raises(BadInput, match="There is no run at"):
        load_run(tmp_path / "run")


WRITE = """
import sys
from pathlib import Path
from workflows.runs.run_folder import EVALUATION
from workflows.runs.run_folder import writing
with writing(Path(sys.argv[1]), EVALUATION):
    print("writing")
    input()
print("done")
input()
"""


def test_one_process_writes_a_run_and_the_next_once_that_has_ended(path: Path) -> None:
    with Child(WRITE, path) as other:
        assert other.hear() == "writing"
        with pytest.raises(BadInput, match="Another process writes the run"), writing(path, EVALUATION):
            pass
        other.kill()
        with writing(path, EVALUATION) as folder:
            folder.begin(settings_of("mara"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("run.json", "{", "run.json cannot be read"),
        ("run.json", "[]", "run.json is damaged"),
        ("run.json", json.dumps({**settings_of("mara"), "format_version": 2}), "has format 2, not 1"),
        ("run.json", json.dumps({"format_version": 1}), "does not tell the systems and questions"),
        ("metrics.json", "", "metrics.json cannot be read"),
        ("results.jsonl", '{"id": "q1"}\n', "results.jsonl, line 1 is damaged"),
        ("results.jsonl", '{"id": "q1", "system": "other"}\n', "holds systems that run.json does not name"),
        ("timings.jsonl", '{"id": "q1", "system": "mara"}\n', "timings.jsonl does not fit"),
        ("timings.jsonl", "\x00\n", "timings.jsonl, line 1 is damaged"),
    ],
)
def test_a_damaged_file_is_named(path: Path, name: str, text: str, said: str) -> None:
    finish(path, "mara")
    (path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        load_run(path)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["results.jsonl", "metrics.json"])
def test_a_missing_file_is_told(path: Path, name: str) -> None:
    finish(path, "mara")
    (path / name).unlink()
    with pytest.raises(BadInput):
        load_run(path)
