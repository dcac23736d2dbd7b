"""The folder of a batch: nothing that was answered is lost, settings must agree, nobody else's files are touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from graph.errors import BadInput
from tests.workflows.runs.batches import lines_of, names_in
from workflows.runs import run_folder
from workflows.runs.batch import write_answers
from workflows.runs.run_folder import BATCH, Answered, Row, RunFolder, writing
from workflows.settings.enums import Format

IDS = ["q1", "q2", "q3"]
KEYS = [(key,) for key in IDS]


def settings_of(asked: int = 3, **changes: Any) -> Row:
    return {
        **{"format_version": 1, "workflow": "mara", "debug": False, "generation": 1, "settings": {"alpha": 0.5}},
        "questions": {"file": "questions.jsonl", "sha256": "0", "count": 3, "limit": None, "asked": asked},
        **changes,
    }


def answer(key: str, **more: Any) -> Answered:
    return Answered({"id": key, "answer": f"So {key}.", "failed": None, **more}, {"id": key, "total_ms": 1.5})


def finish_rows(folder: RunFolder, form: Format, ids: list[str] = IDS) -> None:
    write_answers(folder, [(key,) for key in ids], form)


def finish(path: Path, form: Format = Format.JSONL, ids: list[str] = IDS, **changes: Any) -> None:
    with writing(path, BATCH) as folder:
        folder.begin(settings_of(len(ids), **changes))
        for key in reversed(ids):
            if (key,) not in folder.answered:
                folder.add(answer(key))
        finish_rows(folder, form, ids)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "batch"


@pytest.mark.parametrize(
    ("form", "name"),
    [(Format.JSONL, "answers.jsonl"), (Format.JSON, "answers.json"), (Format.DEBUG, "debug.jsonl")],
)
def test_answers_are_written_in_order_in_the_format_asked_for(path: Path, form: Format, name: str) -> None:
    finish(path, form)
    file = path / name
    rows = json.loads(file.read_text(encoding="utf-8")) if form is Format.JSON else lines_of(file)
    assert rows == [answer(key).row for key in IDS]
    assert [row["id"] for row in lines_of(path / "timings.jsonl")] == IDS
    assert names_in(path) == sorted([name, "batch.json", "timings.jsonl"])
    with writing(path, BATCH) as folder:
        folder.begin(settings_of())
        assert list(folder.answered) == KEYS, "whatever the format, a finished batch is gone on with"


def test_answers_of_a_finished_batch_are_written_in_the_other_format_too_and_both_stay_up_to_date(path: Path) -> None:
    finish(path, Format.JSONL, IDS[:2])
    finish(path, Format.JSON)
    rows = [answer(key).row for key in IDS]
    assert lines_of(path / "answers.jsonl") == json.loads((path / "answers.json").read_text(encoding="utf-8")) == rows


@examples(max_examples=25)
@given(cut=st.integers(0, 400), broken=st.sampled_from(["a\ud83db", "\u2028", "Köln\n"]))
def test_wherever_a_batch_was_killed_it_goes_on_to_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, cut: int, broken: str
) -> None:
    folder = tmp_path_factory.mktemp("batches")
    for name, cut_off in (("whole", 0), ("killed", cut)):
        with writing(folder / name, BATCH) as begun:
            begun.begin(settings_of())
            for key in IDS:
                begun.add(answer(key, text=broken))
        journal = folder / name / "journal.jsonl"
        journal.write_bytes(journal.read_bytes()[: max(0, journal.stat().st_size - cut_off)])
        with writing(folder / name, BATCH) as gone_on:
            gone_on.begin(settings_of())
            for key in IDS:
                if (key,) not in gone_on.answered:
                    gone_on.add(answer(key, text=broken))
            finish_rows(gone_on, Format.JSON)
    assert (folder / "killed" / "answers.json").read_bytes() == (folder / "whole" / "answers.json").read_bytes()


def test_a_batch_killed_while_its_files_are_written_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*written: object) -> None:
        raise KeyboardInterrupt

    with writing(path, BATCH) as folder:
        folder.begin(settings_of())
        for key in IDS:
            folder.add(answer(key))
        with monkeypatch.context() as patch:
            patch.setattr(run_folder, "write_atomically", dies)
            with pytest.raises(KeyboardInterrupt):
                finish_rows(folder, Format.JSONL)
    with writing(path, BATCH) as folder:
        folder.begin(settings_of())
        assert list(folder.answered) == KEYS


def test_the_later_of_two_rows_about_one_question_counts(path: Path) -> None:
    finish(path)
    with writing(path, BATCH) as folder:
        folder.begin(settings_of())
        folder.add(answer("q2", answer="Otherwise."))
    with writing(path, BATCH) as folder:
        folder.begin(settings_of())
        assert folder.answered["q2",].row["answer"] == "Otherwise."
        finish_rows(folder, Format.JSONL)
    assert [row["answer"] for row in lines_of(path / "answers.jsonl")] == ["So q1.", "Otherwise.", "So q3."]


def test_more_questions_of_the_same_file_go_on_with_a_batch_and_fewer_do_not(path: Path) -> None:
    finish(path, ids=IDS[:2])
    finish(path)
    assert len(lines_of(path / "answers.jsonl")) == 3
    with writing(path, BATCH) as folder, pytest.raises(BadInput, match=r"questions\.asked was 3, now 2"):
        folder.begin(settings_of(2))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workflow": "ragenta"}, "workflow was mara, now ragenta"),
        ({"settings": {"alpha": 0.7}}, "settings.alpha was 0.5, now 0.7"),
        ({"settings": {"n": 1}}, "settings.n was None, now 1"),
        ({"generation": 2}, "generation was 1, now 2"),
        ({"debug": True}, "debug was False, now True"),
        ({"questions": {**settings_of()["questions"], "sha256": "1"}}, "questions.sha256 was 0, now 1"),
    ],
)
def test_a_batch_is_not_gone_on_with_otherwise_unless_it_is_restarted(
    path: Path, changes: dict[str, Any], said: str
) -> None:
    finish(path)
    with writing(path, BATCH) as folder, pytest.raises(BadInput) as refused:
        folder.begin(settings_of(**changes))
    assert said in str(refused.value)
    assert "--restart" in refused.value.hint
    with writing(path, BATCH, restart=True) as folder:
        folder.begin(settings_of(**changes))
        assert not folder.answered
        assert names_in(path) == ["batch.json"]


@pytest.mark.parametrize("restart", [False, True])
def test_the_folder_of_something_else_is_left_alone(path: Path, restart: bool) -> None:
    path.mkdir(parents=True)
    (path / "run.json").write_text("the folder of an evaluation", encoding="utf-8")
    with pytest.raises(BadInput, match="holds something else than a run"), writing(path, BATCH, restart=restart):
        pass
    assert names_in(path) == ["run.json"]


def test_one_at_a_time_writes_a_batch(path: Path) -> None:
    with writing(path, BATCH), pytest.raises(BadInput, match="Another process writes"), writing(path, BATCH):
        pass


@pytest.mark.parametrize(
    ("form", "name", "text", "said"),
    [
        (Format.JSONL, "batch.json", "{", "batch.json cannot be read"),
        (Format.JSONL, "batch.json", "[]", "batch.json is damaged"),
        (Format.JSONL, "batch.json", '{"format_version": 2}', "has format 2, not 1"),
        (Format.JSONL, "batch.json", '{"format_version": 1}', "does not tell the questions"),
        (Format.JSONL, "answers.jsonl", '{"id": "q1"}\n', "answers.jsonl, line 1 is damaged"),
        (Format.JSON, "answers.json", "[{]", "answers.json is damaged"),
        (Format.JSON, "answers.json", '{"id": "q1"}', "answers.json is damaged"),
        (Format.JSON, "answers.json", '[{"id": "q1"}]', "answers.json is damaged"),
        (Format.JSONL, "timings.jsonl", "\x00\n", "timings.jsonl, line 1 is damaged"),
        (Format.JSONL, "journal.jsonl", '{"row": {}}\n', "journal.jsonl, line 1 is damaged"),
    ],
)
def test_a_damaged_file_is_named(path: Path, form: Format, name: str, text: str, said: str) -> None:
    finish(path, form)
    (path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as refused, writing(path, BATCH) as folder:
        folder.begin(settings_of())
    assert said in str(refused.value)
