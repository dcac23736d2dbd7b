"""What a batch asks: the questions of a file in their order, the first few of them, or one question by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from tests.workflows.small_world import write_lines
from workflows.runs.batch import questions_of
from workflows.runs.question_files import AskedQuestion

ROWS = [{"id": 7, "question": "Who?"}, {"id": "b", "question": "When?"}, {"question": "Where?"}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_lines(tmp_path / "questions.jsonl", ROWS)
    return tmp_path / "questions.jsonl"


def test_a_single_question_has_an_id_of_its_own_text(file: Path) -> None:
    asked, about = questions_of(None, "Who dammed it?")
    assert [question.question for question in asked] == ["Who dammed it?"]
    assert (asked, about) == questions_of(None, "Who dammed it?")
    assert asked[0].id != questions_of(None, "Who built it?")[0][0].id
    assert (about["file"], about["count"]) == (None, 1)
    for single in ("", "a" * 10_001, "\ud83d"):
        with pytest.raises(BadInput, match="The question"):
            questions_of(None, single)
    with pytest.raises(BadInput, match="Both questions and a single question"):
        questions_of(file, "Who?")
    with pytest.raises(BadInput, match="Neither questions nor a single question"):
        questions_of(None, None)


def test_fields_other_than_the_question_are_passed_over_but_there_has_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    passed_over: list[dict[str, Any]] = [
        {"context": {"title": 3}, "supporting_facts": "none"},
        {"answers": {}, "type": ["bridge"], "hops": "two"},
        {"paragraphs": [7]},
    ]
    for gold in passed_over:
        write_lines(file, [{"id": "a", "question": "Who?", **gold}])
        assert questions_of(file, None)[0] == [AskedQuestion("a", "Who?")]
    write_lines(file, [{"id": "a"}])
    with pytest.raises(BadInput, match=r"questions\.jsonl"):
        questions_of(file, None)
