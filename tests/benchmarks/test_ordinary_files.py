"""The benchmark of ordinary files: what it expects stands in the files that it names, and grades go by it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from benchmarks import ordinary_files
from benchmarks.ordinary_files.__main__ import Grade, first_shown, grade_of
from benchmarks.ordinary_files.writing import UNREADABLE, write_folder
from graph.sources.documents import read_documents

HERE = Path(ordinary_files.__file__).parent
QUESTIONS = [json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def test_all_files_are_read_but_those_that_cannot_be(tmp_path: Path) -> None:
    write_folder(tmp_path)
    read = read_documents([tmp_path])
    names = yaml.safe_load((HERE / "files.yaml").read_text(encoding="utf-8"))
    assert {passage.source for passage in read.passages.values()} == {*names}
    assert {Path(refused.source).name for refused in read.refused} == {*UNREADABLE}


def test_expected_words_stand_in_the_files_that_a_question_names() -> None:
    texts = {
        name: str(content)
        for name, content in yaml.safe_load((HERE / "files.yaml").read_text(encoding="utf-8")).items()
    }
    for question in QUESTIONS:
        told = " ".join(texts[name] for name in question["files"]).replace("\n", " ")
        missing = [words for words in question.get("all_of", ()) if words not in told and question["kind"] != "count"]
        assert missing == [], question["id"]


def test_a_grade_is_of_the_first_thing_shown() -> None:
    for first, rest, refused, grade in [
        ("It costs 95 euros. [1]", "", False, Grade.RIGHT),
        ("It costs 950 euros. [1]", "\n\nIt costs 95 euros. [2]", False, Grade.PARTLY),
        ("It costs 950 euros. [95]", "", False, Grade.WRONG),
        ("It costs 95 or 96 euros. [1]", "", False, Grade.PARTLY),
        ("NOT IN THE PASSAGES", "", True, Grade.REFUSED),
    ]:
        question = {"all_of": ["95"], "none_of": ["96"]}
        answer = f"{first}{rest}"
        assert first_shown(answer) == first, first
        assert grade_of(question, first_shown(answer), answer, refused=refused) is grade, first


def test_where_nothing_is_told_a_refusal_is_right() -> None:
    assert grade_of({}, "", "", refused=True) is Grade.RIGHT
    assert grade_of({}, "It is 5. [1]", "It is 5. [1]", refused=False) is Grade.WRONG
