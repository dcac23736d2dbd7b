"""Feedback: what runs of ``mara eval`` and people say of the passages that served a question, kept as marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from graph.errors import BadInput
from graph.relationships.history import rate_views
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.storage.marks import Mark, MarkKind, Recorded, add_marks, forget_marks, read_marks, served_passages
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from workflows.context import check_question

T = TypeVar("T")

_NAMED_UNKNOWN = 10


def record_run(root: Path, folder: Path) -> dict[str, Any]:
    """Mark the gold passages of a finished run, and those that its answers cite in claims that they support.

    All systems of the run count. A passage that the workspace does not hold is left out and counted.

    Args:
        root: the workspace that the run asked.
        folder: what ``mara eval`` wrote.

    Raises:
        BadInput: there is no finished run, its rows are damaged, or it asked another workspace.
        WorkspaceMissing: there is no workspace, or it is empty.
    """
    from workflows.runs.run_folder import load_run

    run = load_run(folder)
    with filled_record(root) as record:
        known = record.sources().keys()
        workspace_id = record.workspace_id
    if run.settings.get("workspace_id") != workspace_id:
        raise BadInput(
            f"The run at {folder} asked another workspace than {root}: its ids may stand for other passages",
            "Name the workspace that was asked, or run `mara eval` on this one",
        )
    marks = {mark for rows in run.results.values() for row in rows for mark in _marks_of_row(row, folder)}
    kept = [mark for mark in marks if mark.passage_id in known]
    unknown = {mark.passage_id for mark in marks} - known
    return report_of(root, kept, add_marks(root, kept), unknown_passages=len(unknown))


def record_mark(root: Path, question: str, passage_ids: Sequence[str], *, served: bool) -> dict[str, Any]:
    """Record what a person says of passages and a question.

    Raises:
        BadInput: no passage is named, or one that the workspace does not hold; then nothing is recorded.
        WorkspaceMissing: there is no workspace, or it is empty.
    """
    asked = check_question(question)
    with filled_record(root) as record:
        unknown = sorted(set(passage_ids) - record.sources().keys())
    if unknown or not passage_ids:
        named = f"The workspace holds no passage named {', '.join(map(repr, unknown[:_NAMED_UNKNOWN]))}"
        raise BadInput(named if unknown else "No passage is named", "Give ids as `mara ask --json` tells them")
    marks = [Mark(asked, passage, MarkKind.PERSON, served) for passage in dict.fromkeys(passage_ids)]
    return report_of(root, marks, add_marks(root, marks), unknown_passages=0)


def list_marks(root: Path, question: str = "", passage_ids: Sequence[str] = (), kind: str = "") -> dict[str, Any]:
    """Return the marks of a workspace that meet the conditions given, by question.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: they cannot be read.
    """
    filled_record(root).close()
    listed = [
        {"question": mark.question, "passage_id": mark.passage_id, "kind": mark.kind.value, "served": mark.served}
        for mark in read_marks(root)
        if (not question or mark.question == question)
        and (not passage_ids or mark.passage_id in passage_ids)
        and (not kind or mark.kind == kind)
    ]
    return {"workspace": str(root), "marks": listed}


def forget(root: Path, question: str = "", passage_ids: Sequence[str] = (), kind: str = "") -> dict[str, Any]:
    """Delete the marks that meet all conditions given.

    Raises:
        BadInput: no condition is given.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: they cannot be read.
    """
    filled_record(root).close()
    wanted = MarkKind(kind) if kind else None
    forgotten = sum(forget_marks(root, question, passage, wanted) for passage in dict.fromkeys(passage_ids or [""]))
    _rate_views(root)
    return {"workspace": str(root), "forgotten": forgotten, **_held(root)}


def _rate_views(root: Path) -> None:
    """Let the views of users in the history follow the marks, where there is a history."""
    if has_relationships(root):
        with RelationshipRecord.of(root) as record:
            rate_views(record, read_marks(root))


def filled_record(root: Path) -> Record:
    """Open the record of a workspace. Raises WorkspaceMissing where it is empty."""
    workspace = Workspace(root)
    record = workspace.open_record()
    try:
        workspace.check_passages(record)
    except BaseException:
        record.close()
        raise
    return record


def _marks_of_row(row: Mapping[str, Any], folder: Path) -> Iterator[Mark]:
    """Yield what a row of results says. Raises BadInput where it is no such row."""
    try:
        question = check_question(_a(str, row["question"]))
        yield from (Mark(question, passage, MarkKind.GOLD) for passage in _entries(row, "gold_ids", str))
        for citation in _entries(row, "citations", dict):
            if citation["supported"] is True:
                yield Mark(question, _a(str, citation["passage_id"]), MarkKind.CITED)
    except (KeyError, TypeError) as fault:
        raise BadInput(
            f"The run at {folder} holds a row that cannot be read ({row.get('id')!r}: {fault})",
            "Run it again with `mara eval --restart`",
        ) from fault


def _a(kind: type[T], value: object) -> T:
    """Return a value of that kind. Raises TypeError for any other."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _entries(row: Mapping[str, Any], key: str, kind: type[T]) -> list[T]:
    return [_a(kind, entry) for entry in _a(list, row[key])]


def report_of(root: Path, marks: Iterable[Mark], recorded: Recorded, *, unknown_passages: int) -> dict[str, Any]:
    """Let views follow the marks that were recorded; return what recording did, and what the workspace holds now."""
    _rate_views(root)
    kinds = Counter(mark.kind for mark in marks)
    return {
        "workspace": str(root),
        "marks": {kind.value: kinds[kind] for kind in MarkKind},
        "new": recorded.new,
        "changed": recorded.changed,
        "unchanged": recorded.unchanged,
        "unknown_passages": unknown_passages,
        **_held(root),
    }


def _held(root: Path) -> dict[str, int]:
    """Return how many marks a workspace holds, and of how many questions they tell a passage that served."""
    marks = read_marks(root)
    return {"held": len(marks), "questions": len(served_passages(marks))}
