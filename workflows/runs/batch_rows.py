"""The rows of a batch: the answer with its passages, claims and coverage, or the whole result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput
from workflows.results import TOTAL
from workflows.runs.run_folder import Key, Row, RunFolder, RunKind, dumps, json_lines, read_rows, rounded

if TYPE_CHECKING:
    from workflows.runs.question_files import AskedQuestion

_ANSWER_KEYS = ("final_prompt", "answer", "plain_answer", "answer_kind", "refused")
_COVERAGE_KEYS = ("coverage", "components", "follow_ups")
_CLAIM_KEYS = ("number", "text", "cited", "supported_by", "verdict", "kept", "spans")
_ERROR_KEYS = ("node", "kind", "message", "attempt")

Result = Mapping[str, Any]


class Format(StrEnum):
    """The format of the answers."""

    JSONL = "jsonl"
    """One answer a line."""
    JSON = "json"
    """A list of answers."""
    DEBUG = "debug"
    """One whole result a line."""

    @property
    def file(self) -> str:
        """The name of the file."""
        return {Format.JSONL: "answers.jsonl", Format.JSON: "answers.json", Format.DEBUG: "debug.jsonl"}[self]

    def text(self, rows: Sequence[Row]) -> str:
        """Return the text of the file."""
        return dumps(rows, indent=2) + "\n" if self is Format.JSON else json_lines(rows)

    def read(self, file: Path) -> list[Row]:
        """Return the rows of the file. Raises BadInput if it is damaged."""
        return _read_list(file) if self is Format.JSON else read_rows(file, "id", "failed")


def finished_rows(folder: Path) -> list[Row]:
    """Return the rows of the first file of answers in a batch's folder, whatever its format; none if there is none."""
    return next((form.read(folder / form.file) for form in Format if (folder / form.file).exists()), [])


BATCH = RunKind(
    name="batch",
    settings="batch.json",
    parts=("questions",),
    row="row",
    key=("id",),
    files=tuple(form.file for form in Format),
    finished=finished_rows,
)


def write_answers(folder: RunFolder, keys: Sequence[Key], form: Format) -> list[Row]:
    """Write the answers of a batch and return their rows; a file of another format that is there is updated too.

    Args:
        folder: of the batch.
        keys: all that was asked, in order; each is answered.
        form: of the file to write.
    """
    rows = [folder.answered[key].row for key in keys]
    forms = [each for each in Format if each is form or (folder.path / each.file).exists()]
    folder.finish(keys, {each.file: each.text(rows) for each in forms})
    return rows


def answer_row(question: AskedQuestion, result: Result, answer_passages: int, failed: Row | None = None) -> Row:
    """Return the row of a question; what its workflow does not tell is null, and so is all where it failed.

    Args:
        question: what was asked.
        result: what the workflow gave; empty where it failed.
        answer_passages: how many of the best passages an answer is written from where the result does not tell.
        failed: why there is no result, see `failure`.
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
    told = {key: value for key, value in result.items() if key not in ("timings_ms", "usage")}
    told |= {"model_calls": result["usage"]["calls"]} if "usage" in result else {}
    plain: Row = rounded({"id": question.id, **told, "question": question.question, "failed": failed})
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


def _read_list(file: Path) -> list[Row]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and {"id", "failed"} <= row.keys() for row in rows):
        raise BadInput(f"{file} is damaged", "Start the run again with --restart")
    return rows
