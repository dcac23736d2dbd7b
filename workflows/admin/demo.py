"""The demonstration: the bundled sample corpus, indexed and asked."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from workflows.answering import ask
from workflows.context import Context
from workflows.evaluation import holds_gold
from workflows.indexing import Progress, index_sources, no_progress
from workflows.runtime.resources import OFFLINE
from workflows.settings.indexing import IndexingContext

_RECALL_AT = 5


def sample_questions() -> list[dict[str, Any]]:
    """Return the sample's questions with their gold passages and answers."""
    lines = files("workflows.sample").joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def run_demo(workspace: Path, progress: Progress = no_progress) -> dict[str, Any]:
    """Index the sample corpus, which asks no model, and answer its questions.

    Returns:
        The indexing report, the results, and over all questions: the share of gold passages among the first five
        (recall@5) and how many answers hold a gold answer's words.
    """
    with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
        report = index_sources([corpus], workspace, progress=progress, settings=IndexingContext(model=OFFLINE))
    context = Context(workspace=str(workspace))
    questions = sample_questions()
    results = []
    for done, question in enumerate(questions):
        progress("ask", done, len(questions))
        results.append({**ask(question["question"], context), "gold_ids": question["gold_ids"]})
    progress("ask", len(questions), len(questions))
    recalls = [_recall(result) for result in results]
    return {
        "index": report.to_json(),
        "results": results,
        "recall_at_5": sum(recalls) / len(recalls),
        "answers_with_gold": sum(
            not result["refused"] and holds_gold(result["plain_answer"], question["answers"])
            for result, question in zip(results, questions, strict=True)
        ),
    }


def _recall(result: dict[str, Any]) -> float:
    ids = {passage["id"] for passage in result["passages"][:_RECALL_AT]}
    return len(ids & set(result["gold_ids"])) / len(result["gold_ids"])
