"""The row that a batch writes of a question, of either workflow."""

from __future__ import annotations

from tests.workflows.runs.batches import hit, ragenta_result
from workflows.runs.batch import answer_row, timing_row, whole_row
from workflows.runs.question_files import AskedQuestion

KEYS = (
    *("id", "question", "passages", "final_prompt", "answer", "plain_answer", "answer_kind", "refused", "claims"),
    *("coverage", "components", "follow_ups", "model_calls", "errors", "failed"),
)
ASKED = AskedQuestion("q1", "Which?")


def test_a_row_holds_the_answer_with_its_passages_claims_and_coverage() -> None:
    row = answer_row(ASKED, ragenta_result(), 5)
    assert tuple(row) == KEYS
    assert (row["id"], row["question"], row["failed"]) == ("q1", "Which?", None)
    assert row["passages"] == [
        {"passage": "A\nAbout a.", "doc_IDs": ["a"], "number": 1, "score": 1.0},
        {"passage": "C\nAbout c.", "doc_IDs": ["c"], "number": 3, "score": 0.333333333},
    ]
    assert row["claims"] == [
        {
            **{"number": 1, "text": "It is so.", "cited": [3], "supported_by": [3], "verdict": "supported"},
            **{"kept": True, "spans": [{"number": 3, "passage_id": "c", "start": 0, "end": 5}]},
        }
    ]
    assert (row["coverage"], row["model_calls"], row["final_prompt"]) == ("PARTIALLY ANSWERED", 9, "# Final predictor")
    assert row["components"][0]["claims"] == [1]
    assert row["follow_ups"][0]["passages"] == [4]
    assert row["errors"] == [{"node": "judge_passage", "kind": "MalformedReply", "message": "no", "attempt": 1}]


def test_passages_are_those_that_the_answer_was_written_from_or_else_the_best_few() -> None:
    shuffled = [hit("d", 4), hit("b", 2), hit("a", 1)]
    cases = [
        (ragenta_result(written_from=[4, 2], passages=shuffled), 1, [2, 4]),
        (ragenta_result(written_from=[]), 3, []),
        (ragenta_result(written_from=None), 3, [1, 2, 3]),
    ]
    for result, answer_passages, numbers in cases:
        row = answer_row(ASKED, result, answer_passages)
        assert [passage["number"] for passage in row["passages"]] == numbers
    assert answer_row(ASKED, {"passages": [hit("a", 1, title="")]}, 5)["passages"][0]["passage"] == "About a."


def test_a_failed_question_says_why_and_has_no_answer() -> None:
    failed = {"kind": "BadInput", "message": "It is no question. Ask another"}
    row = answer_row(ASKED, {}, 5, failed)
    assert tuple(row) == KEYS
    assert row["failed"] == {"kind": "BadInput", "message": "It is no question. Ask another"}
    assert (row["passages"], row["answer"], row["refused"], row["errors"]) == ([], None, None, [])
    assert whole_row(ASKED, {}, failed) == {"id": "q1", "question": "Which?", "failed": failed}
    assert timing_row(ASKED, {}) == {"id": "q1", "total_ms": None, "timings_ms": {}, "usage": None}
