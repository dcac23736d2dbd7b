"""Batches over the small rows, results as the workflows give them, and a watch over what is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.small_world import write_lines
from workflows.answering import ask
from workflows.context import Context
from workflows.results import Result
from workflows.runs import batch
from workflows.runs.batch import Order
from workflows.runs.run_folder import Row

QUESTIONS: list[Row] = [
    {"id": "q1", "question": "Into which lake does the Velm flow?"},
    {"id": 2, "question": "Where was the engineer born who dammed Lake Sund?"},
    {"id": "q3", "question": "Of what is Ostra a province?"},
    {"id": "q4", "question": "Who dammed Lake Sund?"},
    {"id": "q5", "question": "Which towns are there in Belavia?"},
    {"id": "q6", "question": "When was Lake Sund dammed?"},
]
IDS = [str(row["id"]) for row in QUESTIONS]

Orders = Callable[..., Order]

_ID_OF = {row["question"]: str(row["id"]) for row in QUESTIONS}


def order_of(workspace: Path, folder: Path, questions: Sequence[Row] | None = QUESTIONS, **changes: Any) -> Order:
    """Return an order to answer some questions, or none of a file, into a folder beside them."""
    folder.mkdir(exist_ok=True)
    write_lines(folder / "questions.jsonl", list(questions or ()))
    fields: dict[str, Any] = {
        "questions": None if questions is None else folder / "questions.jsonl",
        "out": folder / "batch",
        "context": Context(workspace=str(workspace)),
        **changes,
    }
    return Order(**fields)


def lines_of(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def names_in(folder: Path) -> list[str]:
    """Return the names of a folder's files, but for the lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


class Watch:
    """Notes what is asked, by the question's id, and may break a batch off before a question."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.before: Callable[[str], None] = lambda key: None

        def watched(question: str, context: Context) -> Result:
            key = _ID_OF.get(question, question)
            self.before(key)
            self.asked.append(key)
            return ask(question, context)

        monkeypatch.setattr(batch, "ask", watched)

    def break_off_at(self, question: str, fault: BaseException) -> None:
        def breaking(key: str) -> None:
            if key == question:
                raise fault

        self.before = breaking

    def go_on(self) -> None:
        self.asked.clear()
        self.before = lambda key: None


def hit(key: str, number: int, **more: Any) -> Row:
    """Return a passage of a result."""
    return {
        **{"id": key, "title": key.title(), "text": f"About {key}.", "source": "s", "metadata": {}},
        **{"score": 1 / number, "number": number, **more},
    }


def ragenta_result(**changes: Any) -> Row:
    """Return what workflow ragenta gives, by its contract."""
    return {
        **{"question": "Which?", "mode": "hybrid", "workflow": "ragenta", "refused": False, "generation": 1},
        "answer_kind": "answer",
        "answer": "It is so [3]. It was so [1]. [unsupported]",
        "plain_answer": "It is so. It was so.",
        "citations": [{"number": 3, "passage_id": "c", "start": 0, "end": 5}],
        "passages": [hit("a", 1), hit("b", 2), hit("c", 3), hit("d", 4)],
        "written_from": [3, 1],
        "claims": [
            {
                **{"number": 1, "text": "It is so.", "cited": [3], "supported_by": [3], "component": 1},
                **{"verdict": "supported", "kept": True},
                "spans": [{"number": 3, "passage_id": "c", "start": 0, "end": 5}],
            }
        ],
        "coverage": "PARTIALLY ANSWERED",
        "components": [{"text": "Which?", "coverage": "PARTIALLY ANSWERED", "claims": [1]}],
        "follow_ups": [{"question": "And?", "component": 1, "outcome": "asked", "passages": [4]}],
        "final_prompt": "# Final predictor",
        "usage": {"calls": 9, "prompt_tokens": 800, "completion_tokens": 90, "unknown": 0},
        "timings_ms": {"encode_question": 1.25},
        "errors": [{"node": "judge_passage", "kind": "MalformedReply", "message": "no", "attempt": 1, "raw": "?"}],
        **changes,
    }
