"""Batches: a workflow answers the questions of a file into a folder, and resumes if interrupted."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.errors import BadInput, ServiceUnavailable
from graph.schema import stable_id
from workflows.answering import ask
from workflows.context import Context, check_question
from workflows.results import TOTAL
from workflows.runs.question_files import AskedQuestion, read_questions
from workflows.runs.run_folder import (
    BATCH,
    FORMAT_VERSION,
    Answered,
    Key,
    Row,
    RunFolder,
    counted,
    rounded,
    text_of,
    writing,
)
from workflows.runs.runner import (
    Progress,
    Round,
    about_workspace,
    ask_rounds,
    check_place,
    described,
    outcome_of,
    workers,
)
from workflows.runtime.resources import open_workspace_index
from workflows.runtime.versions import ANSWERING
from workflows.settings.enums import Format, ResultKind

CONCURRENCY = 4
"""Questions asked side by side if a chat model answers."""

_CODE = (*ANSWERING, "workflows/answering.py", "workflows/runs/batch.py")


_ANSWER_KEYS = ("final_prompt", "answer", "plain_answer", "answer_kind", "refused")
_COVERAGE_KEYS = ("coverage", "components", "follow_ups")
_CLAIM_KEYS = ("number", "text", "cited", "supported_by", "verdict", "kept", "spans")
_ERROR_KEYS = ("node", "kind", "message", "attempt")

Result = Mapping[str, Any]


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
        """Return how many questions have which kind of result or failed, and their coverage."""
        answered = [row for row in self.rows if row["failed"] is None]
        kinds = Counter(row["answer_kind"] for row in answered)
        calls = [row["model_calls"] for row in answered if row.get("model_calls") is not None]
        fallbacks = (fault["node"] for row in answered for fault in row["errors"] if fault["kind"] == "Fallback")
        return {
            "file": str(self.file),
            "questions": len(self.rows),
            "answered": kinds[ResultKind.ANSWER],
            "evidence": kinds[ResultKind.EVIDENCE],
            "refused": kinds[ResultKind.REFUSAL],
            "asked_back": kinds[ResultKind.CLARIFICATION],
            "failed": len(self.rows) - len(answered),
            "failures": counted(row["failed"]["kind"] for row in self.rows if row["failed"]),
            "fallbacks": counted(fallbacks),
            "coverage": counted(row.get("coverage") for row in answered),
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
        which = "Neither questions nor a single question" if file is None else "Both questions and a single question"
        raise BadInput(f"{which} is given", "Give a file of questions, or --single-question")
    if limit is not None and limit < 1:
        raise BadInput(f"The limit is {limit}", "Ask 1 question or more")
    if file is not None:
        questions, name, data = read_questions(file, gold=False), file.name, file.read_bytes()
    else:
        text = check_question(single or "")
        questions, name, data = [AskedQuestion(stable_id("question", text), text)], None, text.encode()
    asked = questions[:limit]
    about = {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "count": len(questions), "asked": len(asked)}
    return asked, about


def _ask(question: AskedQuestion, order: Order, generation: int) -> tuple[Answered, ServiceUnavailable | None]:
    """Return what comes of a question, and why a model or a server failed it."""
    result, failed, fault = outcome_of(lambda: ask(question.question, order.context), generation)
    if order.form is Format.DEBUG:
        row = whole_row(question, result, failed)
    else:
        row = answer_row(question, result, order.context.answer_passages, failed)
    return Answered(row, timing_row(question, result)), fault


def write_answers(folder: RunFolder, keys: Sequence[Key], form: Format) -> list[Row]:
    """Write the answers of a batch and return their rows; a file of another format that is there is updated too.

    Args:
        folder: of the batch.
        keys: all that was asked, in order; each is answered.
        form: of the file to write.
    """
    rows = [folder.answered[key].row for key in keys]
    forms = [each for each in Format if each is form or (folder.path / each.file).exists()]
    folder.finish(keys, {each.file: text_of(each, rows) for each in forms})
    return rows


def answer_row(question: AskedQuestion, result: Result, answer_passages: int, failed: Row | None = None) -> Row:
    """Return the row of a question; what its workflow does not tell is null, and so is all where it failed.

    Args:
        question: what was asked.
        result: what the workflow gave; empty where it failed.
        answer_passages: how many of the best passages an answer is written from where the result does not tell.
        failed: why there is no result, see `outcome_of`.
    """
    row = {
        "id": question.id,
        "question": question.question,
        "passages": [_passage(hit, number) for number, hit in written_from(result, answer_passages)],
        **{key: result.get(key) for key in _ANSWER_KEYS},
        "claims": _parts(result.get("claims"), _CLAIM_KEYS),
        **{key: result.get(key) for key in _COVERAGE_KEYS},
        "model_calls": (result.get("usage") or {}).get("calls"),
        "errors": _parts(result.get("errors") or [], _ERROR_KEYS),
        "failed": failed,
    }
    plain: Row = rounded(row)
    return plain


def whole_row(question: AskedQuestion, result: Result, failed: Row | None = None) -> Row:
    """Return the whole result of a question but for its timings and tokens, which differ from run to run."""
    whole = {key: value for key, value in result.items() if key not in ("timings_ms", "usage")}
    whole |= {"model_calls": result["usage"]["calls"]} if "usage" in result else {}
    plain: Row = rounded({"id": question.id, **whole, "question": question.question, "failed": failed})
    return plain


def timing_row(question: AskedQuestion, result: Result) -> Row:
    """Return how long a question took, in all and node by node, and its usage of models; null where it failed."""
    nodes = {**result.get("timings_ms", {})}
    total_ms = nodes.pop(TOTAL, None)
    return {"id": question.id, "total_ms": total_ms, "timings_ms": nodes, "usage": result.get("usage")}


def written_from(result: Result, answer_passages: int) -> list[tuple[int, Row]]:
    """Return the passages that an answer was written from, each with its number, in order of number.

    Where the result does not tell them, they are the best few.
    """
    hits = [(hit.get("number") or place, hit) for place, hit in enumerate(result.get("passages") or [], start=1)]
    numbers = result.get("written_from")
    if numbers is None:
        return hits[:answer_passages]
    return sorted(((number, hit) for number, hit in hits if number in numbers), key=lambda numbered: numbered[0])


def _passage(hit: Row, number: int) -> Row:
    return {
        "passage": "\n".join(part for part in (hit["title"], hit["text"]) if part),
        "doc_IDs": [hit["id"]],
        "number": number,
        "score": hit["score"],
    }


def _parts(rows: Sequence[Row] | None, keys: Sequence[str]) -> list[Row] | None:
    return None if rows is None else [{key: row.get(key) for key in keys} for row in rows]
