"""Batches: a workflow answers the questions of a file into a folder, and resumes if interrupted."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.errors import BadInput, ServiceUnavailable
from graph.schema import stable_id
from workflows.ask import ask
from workflows.context import Context, check_question
from workflows.runs.batch_rows import BATCH, Format, answer_row, timing_row, whole_row, write_answers
from workflows.runs.question_files import AskedQuestion, read_questions
from workflows.runs.run_folder import FORMAT_VERSION, Answered, Key, Row, counted, writing
from workflows.runs.runner import (
    Progress,
    Round,
    about_workspace,
    ask_rounds,
    check_place,
    check_untuned_since,
    described,
    outcome_of,
    workers,
)
from workflows.runtime.resources import open_workspace_index
from workflows.runtime.versions import ANSWERING
from workflows.settings.enums import ResultKind

CONCURRENCY = 4
"""Questions asked side by side if a chat model answers."""

_CODE = (*ANSWERING, "workflows/ask.py", "workflows/runs/batch_rows.py")


@dataclass(frozen=True, slots=True)
class Order:
    """The plan of a batch.

    Attributes:
        out: the folder that answers are written into.
        questions: the question file; None where there is a single question.
        single_question: in place of a file.
        context: the settings of the workflow, which is the context's; the workspace among them.
        form: how answers are written.
        limit: how many questions of the file are asked, from its beginning; None for all.
        concurrency: questions asked side by side; None for `CONCURRENCY` with a chat model and 1 without.
        restart: whether an earlier batch in the folder is deleted.
    """

    out: Path
    questions: Path | None = None
    single_question: str | None = None
    context: Context = field(default_factory=Context)
    form: Format = Format.JSONL
    limit: int | None = None
    concurrency: int | None = None
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A finished batch.

    Attributes:
        file: the answers, or the whole results.
        rows: what it holds.
    """

    file: Path
    rows: list[Row]

    def summary(self) -> dict[str, Any]:
        """Return how many questions have which kind of result, or failed, and how far they are covered."""
        told = [row for row in self.rows if row["failed"] is None]
        kinds = Counter(row["answer_kind"] for row in told)
        calls = [row["model_calls"] for row in told if row.get("model_calls") is not None]
        fallbacks = (fault["node"] for row in told for fault in row["errors"] if fault["kind"] == "Fallback")
        return {
            "file": str(self.file),
            "questions": len(self.rows),
            "answered": kinds[ResultKind.ANSWER],
            "evidence": kinds[ResultKind.EVIDENCE],
            "refused": kinds[ResultKind.REFUSAL],
            "asked_back": kinds[ResultKind.CLARIFICATION],
            "failed": len(self.rows) - len(told),
            "failures": counted(row["failed"]["kind"] for row in self.rows if row["failed"]),
            "fallbacks": counted(fallbacks),
            "coverage": counted(row.get("coverage") for row in told),
            "model_calls": sum(calls) if calls else None,
        }


def run_batch(order: Order, progress: Progress = lambda stage, done, total: None) -> Batch:
    """Ask what is still to be asked, write the answers and return them.

    A question that fails for a reason of its own is recorded as failed. One that a model or a server failed is asked
    again when the batch is run again, and several of these in a row stop it.

    Args:
        order: what is to be run.
        progress: is told the workflow, how many questions it has answered, and how many there are.

    Raises:
        BadInput: the questions or the folder cannot be used, or the batch began otherwise.
        WorkspaceMissing: there is no workspace, or it is empty.
        ServiceUnavailable: a model or a server does not answer; what was answered is kept.
    """
    workspace = check_place(order.out, order.context)
    questions, about = questions_of(order.questions, order.single_question, order.limit)
    index = open_workspace_index(order.context)
    settings = {
        "format_version": FORMAT_VERSION,
        "debug": order.form is Format.DEBUG,
        "settings": described(order.context),
        "questions": about,
        **about_workspace(workspace, order.context, index, _CODE),
    }
    asked: dict[Key, AskedQuestion] = {(question.id,): question for question in questions}
    asking = Round(
        str(order.context.workflow),
        asked,
        lambda question: _ask(question, order, index.graph.generation),
        workers(order.context, order.concurrency, CONCURRENCY),
    )
    with writing(order.out, BATCH, restart=order.restart) as folder:
        folder.begin(settings)
        ask_rounds(folder, [asking], progress)
        check_untuned_since(settings["settings"], described(order.context))
        rows = write_answers(folder, list(asked), order.form)
    return Batch(order.out / order.form.file, rows)


def questions_of(file: Path | None, single: str | None, limit: int | None = None) -> tuple[list[AskedQuestion], Row]:
    """Return what is to be asked, in order, and what the settings of the batch tell of it.

    Args:
        file: a question file, see `read_questions`; answers and gold in it are passed over.
        single: one question in place of a file.
        limit: how many of the file's questions are asked, from its beginning; None for all.

    Raises:
        BadInput: both or neither is given, the limit is under 1, or a question cannot be asked.
    """
    if (file is None) == (single is None):
        given = "Neither questions nor a single question" if file is None else "Both questions and a single question"
        raise BadInput(f"{given} is given", "Give a file of questions, or --single-question")
    if limit is not None and limit < 1:
        raise BadInput(f"The limit is {limit}", "Ask 1 question or more")
    if file is not None:
        found, name, data = read_questions(file, gold=False), file.name, file.read_bytes()
    else:
        text = check_question(single or "")
        found, name, data = [AskedQuestion(stable_id("question", text), text)], None, text.encode()
    asked = found[:limit]
    about = {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "count": len(found), "asked": len(asked)}
    return asked, about


def _ask(question: AskedQuestion, order: Order, generation: int) -> tuple[Answered, ServiceUnavailable | None]:
    """Return what comes of a question, and why a model or a server failed it."""
    result, failed, fault = outcome_of(lambda: ask(question.question, order.context), generation)
    if order.form is Format.DEBUG:
        row = whole_row(question, result, failed)
    else:
        row = answer_row(question, result, order.context.answer_passages, failed)
    return Answered(row, timing_row(question, result)), fault
