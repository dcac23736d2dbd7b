"""A few questions on the small rows of `tests.workflows.workspaces`, and runs over them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import ROWS, Row, use_embedder
from workflows.context import Context
from workflows.evaluation import ask_system, runner
from workflows.evaluation.ask_system import context_for
from workflows.evaluation.runner import Order, evaluate
from workflows.indexing import index_sources
from workflows.runs.run_folder import Run

QUESTIONS: list[Row] = [
    {"id": "q1", "question": "Into which lake does the Velm flow?", "answers": ["Lake Sund"], "gold_ids": ["velm"]},
    {
        "id": "q2",
        "question": "Where was the engineer born who dammed Lake Sund?",
        "answers": ["Karv", "the harbour of Karv"],
        "gold_ids": ["sund", "brandt"],
        "type": "bridge",
        "hops": 2,
    },
    {"id": "q3", "question": "Of what is Ostra a province?", "answers": ["Belavia"], "gold_ids": ["ostra"]},
    {"id": "q4", "question": "Who dammed Lake Sund?", "gold_ids": ["sund", "not in the corpus"]},
    {"id": "q5", "question": "Which towns are there in Belavia?", "answers": ["Karv"]},
    {"id": "q6", "question": "When was Lake Sund dammed?", "answers": ["1911"], "gold_ids": ["sund"]},
]
IDS = [row["id"] for row in QUESTIONS]
SYSTEMS = ("mara", "dense", "mara+random-beta")
ALL = Counter({(system, key): 1 for system in SYSTEMS for key in IDS})
"""Each system is asked each question once."""

Runs = Callable[..., Run]
Orders = Callable[..., Order]


def index_rows(folder: Path, rows: Sequence[Row] = ROWS) -> Path:
    """Index rows into the workspace of a folder; return it."""
    folder.mkdir(exist_ok=True)
    write_lines(folder / "corpus.jsonl", list(rows))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        index_sources([folder / "corpus.jsonl"], folder / "workspace")
    return folder / "workspace"


def order_of(workspace: Path, folder: Path, questions: Sequence[Row] = QUESTIONS, **changes: Any) -> Order:
    """Return an order to run some questions over `SYSTEMS`, into a folder beside them."""
    folder.mkdir(exist_ok=True)
    write_lines(folder / "questions.jsonl", list(questions))
    settings = {"systems": SYSTEMS, "out": folder / "run", **changes}
    context = settings.pop("context", Context(workspace=str(workspace)))
    return Order(questions=folder / "questions.jsonl", context=context, **settings)


def run_order(monkeypatch: pytest.MonkeyPatch, order: Order, **how: Any) -> Run:
    """Run an order without a report."""
    monkeypatch.setattr(runner, "write_report", lambda run: None)
    return evaluate(order, **how)


def rows_in(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Watch:
    """Counts what is asked, by system and question, and may break a run off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.before: Callable[[str, str], None] = lambda system, question: None

        def watched(system: Any, question: str, *rest: Any) -> Context:
            key = next(row["id"] for row in QUESTIONS if row["question"] == question)
            self.before(system.name, key)
            self.asked[system.name, key] += 1
            return context_for(system, question, *rest)

        monkeypatch.setattr(ask_system, "context_for", watched)

    def break_off_at(self, system: str, question: str, fault: BaseException) -> None:
        def breaking(*asked: str) -> None:
            if asked == (system, question):
                raise fault

        self.before = breaking

    def go_on(self) -> None:
        self.before = lambda system, question: None
