"""The first thing that is shown for 20 questions over a folder of ordinary office files: right, partly, wrong, refused.

    python -m benchmarks.ordinary_files [--folder DIR] [--questions FILE]

The files are written, indexed without a model into a workspace that is thrown away, and asked. Each question is printed
with what the terminal shows for it, to be graded by a reader; beside it stands what the expected words say. Another
folder is asked with questions of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.answers.citations import strip_citations
from agents.offline.extractor import OfflineExtractor
from benchmarks.ordinary_files.writing import write_folder
from workflows.answering import ask
from workflows.cli import render
from workflows.context import make_context
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE, close_indexes
from workflows.settings.enums import Workflow
from workflows.wording import WORDS

_WIDTH = 110


class Grade(StrEnum):
    """The worth of the first thing shown."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"
    REFUSED = "refused"


def main() -> None:
    """Ask the questions, print what is shown for each, and count the grades."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--questions", type=Path, default=Path(__file__).with_name("questions.jsonl"))
    options = parser.parse_args()
    questions = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as workspace:
        if options.folder is None:
            write_folder(Path(made))
        index_sources([options.folder or Path(made)], Path(workspace), extractor=OfflineExtractor())
        context = make_context(Workflow.MARA, workspace=workspace, model=OFFLINE)
        grades = Counter(_asked(question, ask(question["question"], context)) for question in questions)
        close_indexes()
    print(", ".join(f"{grade} {grades[grade]}" for grade in Grade))


def _asked(question: Mapping[str, Any], result: Mapping[str, Any]) -> Grade:
    """Print what is shown for a question, and return how it is graded by the expected words."""
    grade = grade_of(question, first_shown(result["answer"]), result["answer"], refused=result["refused"])
    console = Console(file=io.StringIO(), width=_WIDTH, emoji=False, highlight=False)
    render.answer(console, result)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    expected = "; ".join(question.get("all_of", ())) or "nothing is told of it"
    print(f"== {question['id']} ({question['kind']}) {question['question']}\n   expected: {expected}")
    print(f"   graded by its words: {grade}\n\n{told}\n")
    return grade


def first_shown(answer: str) -> str:
    """Return the first paragraph of an answer, without a label."""
    return answer.removeprefix(f"{WORDS['en'].quotes}:").strip().partition("\n\n")[0]


def grade_of(question: Mapping[str, Any], first: str, whole: str, *, refused: bool) -> Grade:
    """Return the grade of an answer.

    Right is a first paragraph that holds all expected words and none of the others, partly one that holds some of them,
    or an answer that holds them all farther down. Where nothing is to be told, a refusal is right.
    """
    expected = question.get("all_of", [])
    if refused or not expected:
        return (Grade.RIGHT if refused else Grade.WRONG) if not expected else Grade.REFUSED
    held = [_holds(first, words) for words in expected]
    if all(held) and not any(_holds(first, words) for words in question.get("none_of", ())):
        return Grade.RIGHT
    return Grade.PARTLY if any(held) or all(_holds(whole, words) for words in expected) else Grade.WRONG


def _holds(text: str, words: str) -> bool:
    """Tell whether a text holds words or a number whole, its citations aside."""
    return re.search(rf"(?<![\w.,:-]){re.escape(words)}(?![\w]|[.,:-]\w)", strip_citations(text)) is not None


if __name__ == "__main__":
    main()
