"""Tuning: learn from marks how strong each relation type should be, offline, and adopt it where it holds up.

The questions are retrieved once, up to their seeds and β; the search then walks alone, so that what is compared differs
in the strengths and in nothing else. One half of the questions is learned from, the other tells whether that holds up.
Marks are what runs of ``mara eval`` and people say of the passages that served a question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.relationships.history import rate_views
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.retrieve.open_index import Index
from graph.retrieve.search import factors_for, restart_of, walk_passages
from graph.schema import RelationType
from graph.storage.marks import Mark, MarkKind, add_marks, forget_marks, read_marks, served_passages
from graph.storage.workspace import Workspace, resolve_workspace
from graph.walk.strengths import adopt, revert, tuned, tuned_relations, workspace_tuning
from workflows.context import Context, Question, check_question
from workflows.indexing import Progress, no_progress
from workflows.runtime.resources import open_workspace_index, selection_of
from workflows.states.conversion import beta_of, start_of

DEPTH = 5
"""Recall is measured among so many passages."""

FEWEST_QUESTIONS = 20
"""Marked questions under which nothing can be learned that holds up."""

GRID = (1.0, 0.5, 2.0, 0.25, 4.0)
"""The values that a strength is given; of those that gain the same, the first is taken."""

LEAST_GAIN = 0.002
"""The least average gain of a step."""

STEP_ERRORS = 2.0
"""The least gain of a step, in its standard errors: a fit tries dozens, and the best of dozens is lucky.

The change as a whole, on questions that had no part in it, has to gain one: there is one, and it was not picked.
"""

Floats = NDArray[np.float64]
Strengths = Mapping[RelationType, float]

Recall = Callable[[Strengths], float]
"""A function that walks for a question, and returns the share of the passages that served among the first `DEPTH`."""


def tune_workspace(context: Context, progress: Progress = no_progress) -> dict[str, Any]:
    """Fit strengths to one half of a workspace's marked questions; adopt them if recall rises on the other half.

    The fit starts at the current strengths. Those that do not raise held-out recall by more than chance would are
    refused: that is no error, and nothing is written.

    Args:
        context: the workspace, and the settings of mode ``mara``.
        progress: is told how far each stage has come.

    Returns:
        The fitted strengths, and whether they were adopted, as plain values; ``version`` is current from now on.

    Raises:
        BadInput: too few questions are marked.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it, its marks or its tuning cannot be read.
        ModelUnavailable: the chat or embedding model cannot be used.
    """
    root = resolve_workspace(context.workspace)
    index = open_workspace_index(context)
    current = workspace_tuning(root)
    recalls = []
    questions = _marked_questions(root, index)
    for number, (question, served) in enumerate(questions.items(), start=1):
        recalls.append(_retrieved(context, index, question, served))
        progress("questions", number, len(questions))
    asked = [recall for recall in recalls if recall is not None]
    dealt = [asked[place] for place in np.random.default_rng(0).permutation(len(asked))]
    held_out, learned_from = dealt[: len(asked) // 2], dealt[len(asked) // 2 :]
    relations = tuned_relations(index.graph.own.relation_types)
    start = {relation: current.strengths.get(relation, 1.0) for relation in relations}
    present = {index.graph.kinds[kind].relation for kind in np.unique(index.graph.edges.kind)}
    fitted = fit(learned_from, start, [relation for relation in relations if relation in present], progress)
    before, after = (_measured(held_out, strengths) for strengths in (start, fitted))
    gain, error = _gain(before, after)
    recall_before, recall_after = float(before.mean()), float(after.mean())
    refusal = ""
    if fitted == start:
        refusal = "No other strength gains more on these questions than chance would"
    elif gain <= 0 or gain < error:
        change = f"goes from {recall_before:.3f} to {recall_after:.3f} (standard error {error:.3f})"
        refusal = f"Recall on held-out questions {change}, no more than chance would have it"
    else:
        current = adopt(root, {**current.strengths, **fitted}, recall_before, recall_after)
    return {
        "workspace": str(root),
        "adopted": not refusal,
        "refusal": refusal,
        "version": current.version,
        "strengths": {relation.value: strength for relation, strength in fitted.items()},
        "questions": len(asked),
        "held_out": len(held_out),
        "recall_before": recall_before,
        "recall_after": recall_after,
        "standard_error": error,
    }


def revert_tuning(root: Path) -> dict[str, Any]:
    """Let a workspace be untuned again.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: its tuning cannot be read.
    """
    Workspace(root).open_record().close()
    revert(root)
    return {"workspace": str(root), "version": 0}


def _marked_questions(root: Path, index: Index) -> dict[str, tuple[int, ...]]:
    """Return the passages of the graph that served each question. Raises BadInput where too few are marked."""
    place = index.graph.passage_index
    served = served_passages(read_marks(root))
    known = {question: tuple(place[key] for key in keys if key in place) for question, keys in served.items()}
    questions = {question: places for question, places in known.items() if places}
    if len(questions) < FEWEST_QUESTIONS:
        raise BadInput(
            f"Passages that served are marked for {len(questions)} questions; tuning needs {FEWEST_QUESTIONS}",
            "Mark more: `mara tune mark RUN`, or `mara tune mark --question ... --passage ...`",
        )
    return questions


def _retrieved(context: Context, index: Index, question: str, served: Sequence[int]) -> Recall | None:
    """Retrieve for a question up to its walk; return what walks with given strengths, None where no seed is left."""
    from workflows.retrieval import graph

    result: Any = graph.invoke(Question(question=question), context=context)
    selection, own = selection_of(context, index), index.graph.own.relation_types
    start, _ = start_of(index, result, context.walk_settings(), selection)
    restart, factors = restart_of(index, start), factors_for(beta_of(result), start.settings, own)

    def recall(strengths: Strengths) -> float:
        by_strength = tuned(factors, strengths, own)
        ranking, _ = walk_passages(
            index, start.words, restart, by_strength, start.settings, DEPTH, context.walk.engine, selection
        )
        return len({passage for passage, _ in ranking}.intersection(served)) / len(served)

    return recall if restart else None


def _gain(before: Floats, after: Floats) -> tuple[float, float]:
    """Return the mean difference of two questions or more, and its standard error."""
    gains = after - before
    return float(gains.mean()), float(np.std(gains, ddof=1) / math.sqrt(len(gains)))


def _measured(questions: Sequence[Recall], strengths: Strengths) -> Floats:
    return np.array([recall(strengths) for recall in questions])


def fit(
    questions: Sequence[Recall],
    start: Strengths,
    relations: Sequence[RelationType],
    progress: Progress = no_progress,
) -> Strengths:
    """Return strengths of which each in turn took the value of `GRID` that gains most, where that gain is clear.

    It is clear from `LEAST_GAIN` on average, and `STEP_ERRORS` standard errors.

    Args:
        questions: two at least, by which strengths are judged.
        start: where to begin.
        relations: whose strengths may change.
        progress: is told how many relation types are done.
    """
    best, now = start, _measured(questions, start)
    for number, relation in enumerate(relations, start=1):
        most, begin, before = 0.0, best, now
        for value in GRID:
            tried = {**begin, relation: value}
            measured = _measured(questions, tried)
            gain, error = _gain(before, measured)
            if gain > most and gain >= max(LEAST_GAIN, STEP_ERRORS * error):
                best, now, most = tried, measured, gain
        progress("relation types", number, len(relations))
    return best


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
