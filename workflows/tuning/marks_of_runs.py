"""Feedback: what runs of ``mara eval`` and people say of the passages that served a question, kept as marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.relationships.history import rate_views
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.storage.marks import Mark, MarkKind, add_marks, forget_marks, read_marks, served_passages
from graph.storage.workspace import Workspace
from workflows.context import check_question


def record_run(root: Path, folder: Path) -> dict[str, Any]:
    """Mark the gold passages of a finished run; of a question without gold, those cited in claims that they support.

    All systems of the run count. A passage that the workspace does not hold is left out and counted.

    Args:
        root: the workspace that the run asked.
        folder: what ``mara eval`` wrote.

    Raises:
        BadInput: there is no finished run, its rows are damaged, or it asked another workspace.
        WorkspaceMissing: there is no workspace.
    """
    from workflows.runs.run_folder import load_run

    run = load_run(folder)
    with Workspace(root).open_record() as record:
        known = record.sources().keys()
        workspace_id = record.workspace_id
    if run.settings.get("workspace_id") != workspace_id:
        raise BadInput(
            f"The run at {folder} asked another workspace than {root}: its ids may stand for other passages",
            "Name the workspace that was asked, or run `mara eval` on this one",
        )
    marks = {mark for rows in run.results.values() for row in rows for mark in _marks_of_row(row)}
    unknown = {mark.passage_id for mark in marks} - known
    return _recorded(root, [mark for mark in marks if mark.passage_id in known], unknown_passages=len(unknown))


def record_mark(root: Path, question: str, passage_ids: Sequence[str], *, served: bool) -> dict[str, Any]:
    """Record what a person says of passages and a question.

    Raises:
        BadInput: a passage is named that the workspace does not hold; then nothing is recorded.
        WorkspaceMissing: there is no workspace.
    """
    asked = check_question(question)
    with Workspace(root).open_record() as record:
        unknown = sorted(set(passage_ids) - record.sources().keys())
    if unknown:
        raise BadInput(f"The workspace holds no passage {unknown[0]!r}", "Give ids as `mara ask --json` tells them")
    return _recorded(root, [Mark(asked, passage, MarkKind.PERSON, served) for passage in passage_ids])


def list_marks(root: Path) -> dict[str, Any]:
    """Return the marks of a workspace, by question.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: they cannot be read.
    """
    Workspace(root).open_record().close()
    listed = [
        {"question": mark.question, "passage_id": mark.passage_id, "kind": mark.kind.value, "served": mark.served}
        for mark in read_marks(root)
    ]
    return {"workspace": str(root), "marks": listed}


def forget(root: Path, question: str = "", passage_ids: Sequence[str] = ()) -> dict[str, Any]:
    """Delete the marks of a question, of passages, or of both together.

    Raises:
        BadInput: neither is given.
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: they cannot be read.
    """
    Workspace(root).open_record().close()
    forgotten = sum(forget_marks(root, question, passage) for passage in passage_ids or [""])
    return {**_held(root), "forgotten": forgotten}


def _marks_of_row(row: Mapping[str, Any]) -> list[Mark]:
    cited = [each["passage_id"] for each in row["citations"] if each["supported"]]
    kind = MarkKind.GOLD if row["gold_ids"] else MarkKind.CITED
    return [Mark(row["question"], passage, kind) for passage in row["gold_ids"] or cited]


def _recorded(root: Path, marks: Sequence[Mark], unknown_passages: int = 0) -> dict[str, Any]:
    """Record marks; return how many they are, and what the workspace holds now."""
    add_marks(root, marks)
    return {**_held(root), "recorded": len(set(marks)), "unknown_passages": unknown_passages}


def _held(root: Path) -> dict[str, Any]:
    """Return how many marks a workspace holds, and of how many questions they tell a passage that served.

    The views of users in the history follow the marks, where there is a history.
    """
    marks = read_marks(root)
    if has_relationships(root):
        with RelationshipRecord.of(root) as record:
            rate_views(record, marks)
    return {"workspace": str(root), "held": len(marks), "questions": len(served_passages(marks))}
