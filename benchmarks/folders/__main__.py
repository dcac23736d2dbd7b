"""The answers of both workflows from folders as users have them: right, wrong and refused, for each kind of question.

    python -m benchmarks.folders [FOLDER ...] [--workflow mara] [--model MODEL] [--each]

A folder holds ``documents/`` and ``questions.jsonl``; without any, those beside this file are taken. Each is indexed
without a model into a workspace that is thrown away.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.offline.extractor import OfflineExtractor
from benchmarks.folders.scoring import Outcome, outcome_of
from workflows.answering import ask
from workflows.context import make_context
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE, close_indexes
from workflows.settings.enums import Workflow


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was asked, what came of it, and whether the result calls it fully answered."""

    folder: str
    question: Mapping[str, Any]
    result: Mapping[str, Any]
    outcome: Outcome
    is_called_full: bool


def main() -> None:
    """Ask all questions of the folders and print a table for each workflow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--workflow", action="append", choices=list(Workflow))
    parser.add_argument("--model", default=OFFLINE)
    parser.add_argument("--each", action="store_true", help="also print every question that was not answered right")
    options = parser.parse_args()
    here = Path(__file__).parent
    folders = options.folders or sorted(path.parent for path in here.glob("*/questions.jsonl"))
    asked: dict[str, list[Asked]] = defaultdict(list)
    for folder in folders:
        with tempfile.TemporaryDirectory() as workspace:
            index_sources([folder / "documents"], Path(workspace), extractor=OfflineExtractor())
            for workflow in options.workflow or list(Workflow):
                asked[workflow] += ask_all(folder, workspace, workflow, options.model)
            close_indexes()
    for workflow, answers in asked.items():
        if options.each:
            print("\n\n".join(map(told, (each for each in answers if each.outcome is not Outcome.RIGHT))))
        print(f"\n{workflow}\n\n{table(answers)}")


def ask_all(folder: Path, workspace: str, workflow: str, model: str) -> Iterator[Asked]:
    """Ask the questions of a folder, and yield what came of each."""
    context = make_context(workflow, workspace=workspace, model=model)
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        result = ask(question["question"], context)
        outcome = outcome_of(question, result["plain_answer"], refused=result["refused"])
        is_full = result.get("coverage") == "FULLY ANSWERED"
        yield Asked(folder.name, question, result, outcome, is_full)


def table(asked: list[Asked]) -> str:
    """Return a Markdown table with a row for each kind of question."""
    kinds = dict.fromkeys([*(each.question["kind"] for each in asked), "answerable", "not answerable"])
    lines = ["| kind | asked | right | wrong | refused | wrong, called full |", "|---|--:|--:|--:|--:|--:|"]
    for kind in kinds:
        own = [each for each in asked if kind in (each.question["kind"], _answerable(each.question))]
        found = Counter(each.outcome for each in own)
        full = sum(each.is_called_full for each in own if each.outcome is Outcome.WRONG)
        shares = " | ".join(f"{found[outcome]} ({100 * found[outcome] / len(own):.0f} %)" for outcome in Outcome)
        lines.append(f"| {kind} | {len(own)} | {shares} | {full} |")
    return "\n".join(lines)


def told(asked: Asked) -> str:
    """Return a question, what was expected and what was said, to read."""
    question = asked.question
    expected = question.get("all_of") or question.get("answers")
    head = f"{asked.outcome.upper()} {asked.folder}/{question['id']} ({question['kind']}): {question['question']}"
    return f"{head}\n  expected: {expected} in {question['files']}\n  said: {asked.result['answer']}"


def _answerable(question: Mapping[str, Any]) -> str:
    return "answerable" if question.get("answers") or question.get("all_of") else "not answerable"


if __name__ == "__main__":
    main()
