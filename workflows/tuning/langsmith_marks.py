"""Feedback from traces: what people said of runs in LangSmith becomes marks."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.environment import environment
from graph.errors import BadInput, ServiceUnavailable
from graph.storage.marks import Mark, MarkKind, add_marks
from workflows.context import check_question
from workflows.runtime.trace_delivery import langsmith_client
from workflows.tuning.marks_of_runs import filled_record, report_of

if TYPE_CHECKING:
    from langsmith import Client
    from langsmith.schemas import Feedback
    from langsmith.types import Run

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
    answer cites as cited; a negative one marks nothing, since it does not tell which passage failed. What is anything
    else is counted, never guessed. Recorded again, the same feedback changes nothing. Not to be called from a running
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
    told = _Told()
    for run, feedbacks in marked:
        _take_run(told, run, feedbacks, workspace_id)
    marks = [mark for _, _, mark in sorted(told.marks, key=lambda each: each[:2])]
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
        "left_out": dict(sorted(told.left_out.items())),
        "unknown_keys": dict(sorted(told.unknown_keys.items())),
    }


def _take_run(told: _Told, run: Run, feedbacks: Sequence[Feedback], workspace_id: str) -> None:
    """Add what the feedback on one run says, or why it says nothing."""
    asked = _values(run.metadata).get(WORKSPACE_ID)
    if run.name not in WORKFLOWS:
        told.left_out["runs of other programs"] += 1
    elif asked is None:
        told.left_out["runs that name no workspace"] += 1
    elif asked != workspace_id:
        told.left_out["runs on other workspaces"] += 1
    elif (question := _question_of(run)) is None:
        told.left_out["runs without a question"] += 1
    else:
        for feedback in feedbacks:
            given = (feedback.modified_at or feedback.created_at).timestamp()
            told.marks.extend((given, str(feedback.id), mark) for mark in _marks_of(told, feedback, question, run))


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


def _marks_of(told: _Told, feedback: Feedback, question: str, run: Run) -> Iterator[Mark]:
    """Yield the marks that one feedback gives; where it gives none, count why."""
    source = feedback.feedback_source.type if feedback.feedback_source else ""
    if feedback.key not in (PASSAGE_KEY, ANSWER_KEY):
        told.unknown_keys[feedback.key] += 1
    elif source not in _PEOPLE:
        told.left_out["feedback that is not a person's"] += 1
    elif feedback.key == PASSAGE_KEY:
        if isinstance(feedback.value, str) and feedback.value and feedback.score in (0, 1):
            yield Mark(question, feedback.value, MarkKind.PERSON, served=bool(feedback.score))
        else:
            told.left_out["passage feedback without an id and a score of 1 or 0"] += 1
    elif feedback.score is None or feedback.score not in (0, 1):
        told.left_out["answer feedback without a score of 1 or 0"] += 1
    elif not feedback.score:
        told.left_out["negative answers"] += 1
    else:
        cited = _cited_passages(_values(run.outputs))
        if not cited:
            told.left_out["positive answers that cite nothing"] += 1
        yield from (Mark(question, passage, MarkKind.CITED) for passage in cited)


def _cited_passages(outputs: Mapping[str, Any]) -> list[str]:
    """Return the passages that an answer cites, each once; none where the outputs have another shape."""
    citations = outputs.get("citations")
    listed = citations if isinstance(citations, list) else []
    found = [each.get("passage_id") for each in listed if isinstance(each, dict)]
    return list(dict.fromkeys(passage for passage in found if isinstance(passage, str)))


def _values(given: object) -> Mapping[str, Any]:
    """Return a field of a run; nothing where it is no object."""
    return given if isinstance(given, dict) else {}


async def _marked_runs(client: Client, project: str) -> tuple[int, list[tuple[Run, list[Feedback]]]]:
    """Return how many root runs a project has, and those with feedback, each with all of it."""
    found = client.read_project(project_name=project)
    where: dict[str, Any] = {
        "project_ids": [str(found.id)],
        # Without it, runs of the last day alone are read. A project begins with its first batch of runs.
        "min_start_time": found.start_time - _BEFORE_PROJECT,
        "page_size": _RUNS_A_PAGE,
    }
    stats = client.runs.query(is_root=True, selects=["ID", "FEEDBACK_STATS"], **where)
    roots = [(run.id, bool(run.feedback_stats)) async for run in stats]
    marked: list[tuple[Run, list[Feedback]]] = []
    wanted = [key for key, has_feedback in roots if key and has_feedback]
    for start in range(0, len(wanted), _RUNS_AT_ONCE):
        ids = wanted[start : start + _RUNS_AT_ONCE]
        given = defaultdict(list)
        for feedback in client.list_feedback(run_ids=ids):
            given[str(feedback.run_id)].append(feedback)
        whole = client.runs.query(ids=ids, selects=["ID", "NAME", "METADATA", "INPUTS", "OUTPUTS"], **where)
        marked.extend([(run, given[run.id or ""]) async for run in whole])
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
