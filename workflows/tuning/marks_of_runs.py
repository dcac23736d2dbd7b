"""Feedback: what runs of ``mara eval`` and people say of the passages that served a question, kept as marks."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graph.environment import environment
from graph.errors import BadInput, ServiceUnavailable
from graph.relationships.history import rate_views
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.storage.marks import Mark, MarkKind, Recorded, add_marks, forget_marks, read_marks, served_passages
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from workflows.context import check_question
from workflows.runtime.trace_delivery import langsmith_client

if TYPE_CHECKING:
    from langsmith import Client
    from langsmith.schemas import Feedback
    from langsmith.types import Run

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


PASSAGE_KEY = "passage"
"""Feedback on one passage: its value is the passage's id, its score 1 where it served, 0 where it did not."""

ANSWER_KEY = "user_score"
"""Feedback on the whole answer: score 1 says that it is right, and so that the passages it cites served."""

WORKFLOWS = ("mara", "retrieval")
"""Names of the root runs whose feedback is read."""

WORKSPACE_ID = "mara_workspace_id"
"""The key of a root run's metadata that names the workspace asked."""

_PEOPLE = ("api", "app")
"""Sources of feedback that stand for people; the others are models and evaluators."""

_RUNS_A_PAGE = 100
_RUNS_AT_ONCE = 50
_BEFORE_PROJECT = timedelta(days=2)
_TIMEOUT_MS = 60_000


@dataclass
class _Told:
    """The marks in runs and their feedback.

    Attributes:
        marks: with the time each was given, so that the last word stays.
        left_out: how many runs and feedbacks gave no mark, by reason.
        unknown_keys: how many feedbacks have a key that is none of ours, by key.
    """

    marks: list[tuple[float, str, Mark]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown_keys: Counter[str] = field(default_factory=Counter)


def record_traces(root: Path, project: str) -> dict[str, Any]:
    """Mark what people said of a workspace's runs in a project of LangSmith.

    The root runs of the workflows ``mara`` and ``retrieval`` count, where their metadata names this workspace.
    Feedback ``passage`` becomes a person's mark of that passage. A positive ``user_score`` marks the passages that the
    answer cites as cited; a negative one marks nothing, since it does not tell which passage failed. Anything else
    is counted, never guessed. Recorded again, the same feedback changes nothing. Not to be called from a running
    event loop.

    Args:
        root: the workspace.
        project: the project's name.

    Raises:
        BadInput: there is no such project.
        ServiceUnavailable: there is no key, or LangSmith does not answer as it should.
        WorkspaceMissing: there is no workspace, or it is empty.
    """
    with filled_record(root) as record:
        known = record.sources().keys()
        workspace_id = record.workspace_id
    with _client(project) as client:
        read, marked = asyncio.run(_marked_runs(client, project))
    tally = _Told()
    for run, feedbacks in marked:
        _take_run(tally, run, feedbacks, workspace_id)
    marks = [mark for _, _, mark in sorted(tally.marks, key=lambda each: each[:2])]
    kept = [mark for mark in marks if mark.passage_id in known]
    verdicts = {(mark.question, mark.passage_id, mark.kind): mark for mark in kept}
    report = report_of(
        root,
        verdicts.values(),
        add_marks(root, verdicts.values()),
        unknown_passages=len({mark.passage_id for mark in marks} - known),
    )
    return {
        **report,
        "project": project,
        "runs": {"read": read, "with_feedback": len(marked)},
        "contradicted": len(set(kept)) - len(verdicts),
        "left_out": dict(sorted(tally.left_out.items())),
        "unknown_keys": dict(sorted(tally.unknown_keys.items())),
    }


def _take_run(tally: _Told, run: Run, feedbacks: Sequence[Feedback], workspace_id: str) -> None:
    """Add what the feedback on one run says, or why it says nothing."""
    asked = _values(run.metadata).get(WORKSPACE_ID)
    if run.name not in WORKFLOWS:
        tally.left_out["runs of other programs"] += 1
    elif asked is None:
        tally.left_out["runs that name no workspace"] += 1
    elif asked != workspace_id:
        tally.left_out["runs on other workspaces"] += 1
    elif (question := _question_of(run)) is None:
        tally.left_out["runs without a question"] += 1
    else:
        for feedback in feedbacks:
            moment = (feedback.modified_at or feedback.created_at).timestamp()
            tally.marks.extend(
                (moment, str(feedback.id), mark) for mark in _marks_of_feedback(tally, feedback, question, run)
            )


def _question_of(run: Run) -> str | None:
    """Return the question that a run was asked; None where its inputs hold none.

    A question that came as an object, not as a mapping, stands in the trace under ``input``.
    """
    inputs = _values(run.inputs)
    question = inputs.get("question", _values(inputs.get("input")).get("question"))
    try:
        return check_question(question) if isinstance(question, str) else None
    except BadInput:
        return None


def _marks_of_feedback(tally: _Told, feedback: Feedback, question: str, run: Run) -> Iterator[Mark]:
    """Yield the marks that one feedback gives; where it gives none, count why."""
    source = feedback.feedback_source.type if feedback.feedback_source else ""
    if feedback.key not in (PASSAGE_KEY, ANSWER_KEY):
        tally.unknown_keys[feedback.key] += 1
    elif source not in _PEOPLE:
        tally.left_out["feedback that is not a person's"] += 1
    elif feedback.key == PASSAGE_KEY:
        if isinstance(feedback.value, str) and feedback.value and feedback.score in (0, 1):
            yield Mark(question, feedback.value, MarkKind.PERSON, served=bool(feedback.score))
        else:
            tally.left_out["passage feedback without an id and a score of 1 or 0"] += 1
    elif feedback.score is None or feedback.score not in (0, 1):
        tally.left_out["answer feedback without a score of 1 or 0"] += 1
    elif not feedback.score:
        tally.left_out["negative answers"] += 1
    else:
        cited = _cited_passages(_values(run.outputs))
        if not cited:
            tally.left_out["positive answers that cite nothing"] += 1
        yield from (Mark(question, passage, MarkKind.CITED) for passage in cited)


def _cited_passages(outputs: Mapping[str, Any]) -> list[str]:
    """Return the passages that an answer cites, each once; none where the outputs have another shape."""
    citations = outputs.get("citations")
    listed = citations if isinstance(citations, list) else []
    ids = [each.get("passage_id") for each in listed if isinstance(each, dict)]
    return list(dict.fromkeys(passage for passage in ids if isinstance(passage, str)))


def _values(value: object) -> Mapping[str, Any]:
    """Return a field of a run; nothing where it is no object."""
    return value if isinstance(value, dict) else {}


async def _marked_runs(client: Client, project: str) -> tuple[int, list[tuple[Run, list[Feedback]]]]:
    """Return how many root runs a project has, and those with feedback, each with all of it."""
    session = client.read_project(project_name=project)
    where: dict[str, Any] = {
        "project_ids": [str(session.id)],
        # Without it, runs of the last day alone are read. A project begins with its first batch of runs.
        "min_start_time": session.start_time - _BEFORE_PROJECT,
        "page_size": _RUNS_A_PAGE,
    }
    stats = client.runs.query(is_root=True, selects=["ID", "FEEDBACK_STATS"], **where)
    roots = [(run.id, bool(run.feedback_stats)) async for run in stats]
    marked: list[tuple[Run, list[Feedback]]] = []
    wanted = [key for key, has_feedback in roots if key and has_feedback]
    for start in range(0, len(wanted), _RUNS_AT_ONCE):
        ids = wanted[start : start + _RUNS_AT_ONCE]
        feedbacks = defaultdict(list)
        for feedback in client.list_feedback(run_ids=ids):
            feedbacks[str(feedback.run_id)].append(feedback)
        whole = client.runs.query(ids=ids, selects=["ID", "NAME", "METADATA", "INPUTS", "OUTPUTS"], **where)
        marked.extend([(run, feedbacks[run.id or ""]) async for run in whole])
    return len(roots), marked


@contextmanager
def _client(project: str) -> Iterator[Client]:
    """Lend a client made from the environment.

    Raises:
        BadInput: the block asks for a project that there is not, or the address cannot be read.
        ServiceUnavailable: there is no key, or a request of the block failed.
    """
    from langsmith import Client
    from langsmith.utils import LangSmithNotFoundError

    key = environment().langsmith_key
    if not key:
        raise ServiceUnavailable("LangSmith needs a key", "Set LANGSMITH_API_KEY to one that may read the project")
    fault_of = f"LangSmith's project {project!r} cannot be read"
    hint = "Check LANGSMITH_API_KEY and LANGSMITH_ENDPOINT; a LangSmith of one's own is to be 0.16 or later"
    settings = {"api_key": key, "auto_batch_tracing": False, "timeout_ms": _TIMEOUT_MS}
    with langsmith_client(Client, fault_of, hint, **settings) as client:
        try:
            yield client
        except LangSmithNotFoundError as fault:
            raise BadInput(f"LangSmith has no project {project!r}", "Name one as LangSmith lists it") from fault
