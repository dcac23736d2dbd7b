"""Tuning: learn from marks how strong each relation type should be, offline, and adopt it where it holds up.

The questions are retrieved once, up to their seeds and β; the search then walks alone, so that what is compared differs
in the strengths and in nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from graph.retrieve.open_index import Index
from graph.retrieve.search import factors_for, restart_of, walk_passages
from graph.schema import RelationType
from graph.storage.marks import Mark, MarkKind, read_marks, served_passages
from graph.storage.workspace import Workspace, resolve_workspace
from graph.walk.factors import EdgeFactors
from graph.walk.sparse import SparseVector
from graph.walk.strengths import (
    Setting,
    Tuning,
    adopt,
    load_history,
    revert,
    strengthened,
    to_json,
    tuned_relations,
    workspace_tuning,
)
from workflows.context import Context, Question
from workflows.indexing import Progress, no_progress
from workflows.runtime.resources import OFFLINE, chat_model_name, open_workspace_index, selection_of
from workflows.states.conversion import beta_of, start_of

DEPTH = 5
"""Recall is measured among so many passages."""

FEWEST_QUESTIONS = 20
"""Marked questions under which nothing can be learned that holds up."""

_RANKED = 20
_TIE_BREAKER = 0.01
_CONCURRENCY = 8

Floats = NDArray[np.float64]

Rows = NDArray[np.intp]

Strengths = tuple[float, ...]

GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The values that a strength is given."""

LEAST_GAIN = 0.002
"""The least average gain of a step."""

STEP_ERRORS = 2.0
"""The least gain of a step, in its standard errors: a fit tries dozens, and the best of dozens is lucky."""

HELD_OUT_ERRORS = 1.0
"""The same for the change as a whole, on questions that had no part in it: there is one, and nobody picked it."""

_MOST_ROUNDS = 3


def tune_workspace(
    context: Context, *, folds: int = 5, seed: int = 0, dry_run: bool = False, progress: Progress = no_progress
) -> dict[str, Any]:
    """Fit strengths to the marks of a workspace; adopt them if recall rises on questions that had no part in the fit.

    The fit starts at the current version. Strengths that lower held-out recall, or raise it by no more than chance
    would, are refused: that is no error, and nothing is written.

    Args:
        context: the workspace, and the settings of mode ``mara``.
        folds: how many parts of the questions are held out in turn.
        seed: of the dealing into folds.
        dry_run: whether nothing is to be written in any case.
        progress: is told how far each stage has come.

    Returns:
        What was found and whether it was adopted, as plain values: ``version`` is the current one from now on,
        ``strengths`` are the fitted ones, which are that version's where they were adopted.

    Raises:
        BadInput: too few questions are marked, there are too few or too many folds, or the mode is another one.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it, its marks or its tuning cannot be read.
        WorkspaceLocked: another process tuned it meanwhile.
        ModelUnavailable: the chat or embedding model cannot be used.
    """
    if context.mode is not Mode.MARA:
        raise BadInput(f"Mode {context.mode} is not tuned", "Tune mode mara")
    root = resolve_workspace(context.workspace)
    index = open_workspace_index(context)
    current = workspace_tuning(root)
    marks = read_marks(root)
    questions, unknown = marked_questions(marks, index)
    _check_enough(sum(map(bool, questions.values())), folds)
    evidence = gather(questions, unknown, index, context, progress)
    _check_enough(len(evidence.asked), folds)
    walks, relations = Walks(index, evidence.asked, context, progress), tuned_relations(index.graph.own.relation_types)
    held_out, fitted = _search(walks, len(evidence.asked), current, index, folds, seed)
    settings: dict[str, Setting] = {
        "recall_at": DEPTH,
        "folds": folds,
        "seed": seed,
        "preset": context.preset.value,
        "chat": chat_model_name(context),
        "embedding": index.embedder.model_id,
        "generation": index.graph.generation,
    }
    kinds = Counter(mark.kind for mark in marks)
    proposal = Tuning(
        current.version,
        fitted,
        parent=current.version,
        made_from={"questions": len(evidence.asked), "passages": evidence.passages, **{k: kinds[k] for k in MarkKind}},
        recall_before=float(held_out.before.mean()),
        recall_after=float(held_out.after.mean()),
        settings=settings,
    )
    refusal = _refusal(current, proposal, held_out)
    adopted = not refusal and not dry_run
    version = adopt(root, proposal).version if adopted else current.version
    return {
        "workspace": str(root),
        "adopted": adopted,
        "refusal": refusal,
        "dry_run": dry_run,
        "strengths_before": _named(current.strengths),
        **{**to_json(proposal), "version": version},
        "difference": held_out.difference,
        "standard_error": held_out.error,
        "gained": held_out.gained,
        "lost": held_out.lost,
        "strengths_by_fold": [_named(by_relation(strengths, relations)) for strengths in held_out.strengths],
        "unknown_passages": evidence.unknown_passages,
        "questions_without_passages": evidence.without_passages,
        "questions_without_walk": evidence.without_walk,
        "fallbacks": evidence.fallbacks,
        "walks": walks.count,
    }


def revert_tuning(root: Path, version: int) -> dict[str, Any]:
    """Make a version of the strengths the current one again; 0 is untuned. No version is lost by it.

    Raises:
        BadInput: there is no such version.
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: the history cannot be read.
        WorkspaceLocked: another process tunes the workspace.
    """
    Workspace(root).open_record().close()
    before = load_history(root).current
    return {"workspace": str(root), "before": before, **to_json(revert(root, version))}


def tuning_history(root: Path) -> dict[str, Any]:
    """Return all versions of a workspace's strengths, the untuned one first. Raises as `revert_tuning` does."""
    Workspace(root).open_record().close()
    history = load_history(root)
    return {"workspace": str(root), "current": history.current, "versions": [*map(to_json, history.versions)]}


def _check_enough(n_questions: int, folds: int) -> None:
    """Raise BadInput where so many marked questions cannot be dealt into folds, or nothing be learned from them."""
    if n_questions < FEWEST_QUESTIONS:
        raise BadInput(
            f"Passages that served are marked for {n_questions} questions; tuning needs {FEWEST_QUESTIONS}",
            "Mark more: `mara feedback RUN`, or `mara feedback --question ... --passage ...`",
        )
    if not 2 <= folds <= n_questions // 2:
        raise BadInput(f"{n_questions} questions cannot be dealt into {folds} folds", "Choose 2 folds or a few more")


def _search(
    walks: Walks, n_questions: int, current: Tuning, index: Index, folds: int, seed: int
) -> tuple[HeldOut, dict[RelationType, float]]:
    """Return what cross-validation finds, and the strengths fitted to all questions."""
    relations = tuned_relations(index.graph.own.relation_types)
    start = tuple(current.strengths.get(relation, 1.0) for relation in relations)
    present = {index.graph.kinds[kind].relation for kind in np.unique(index.graph.edges.kind)}
    places = [place for place, relation in enumerate(relations) if relation in present]
    held_out = cross_validate(walks, n_questions, start, places, folds, seed)
    fitted = by_relation(fit(walks, np.arange(n_questions), start, places), relations)
    # Own types that no fact has any more keep their strength, for when one has them again; without one they have 1.
    strengths = {**current.strengths, **fitted}
    return held_out, {relation: s for relation, s in strengths.items() if s != 1 or not relation.is_own}


def _refusal(current: Tuning, proposal: Tuning, held_out: HeldOut) -> str:
    """Return why fitted strengths are not adopted; empty where they are."""
    if held_out.difference < 0:
        fall = f"from {proposal.recall_before:.3f} to {proposal.recall_after:.3f}"
        return f"Recall on held-out questions would fall {fall}"
    if proposal.strengths == current.strengths:
        return "No other strength gains more on these questions than chance would"
    if not held_out.gains:
        gain = f"{held_out.difference:.3f} (standard error {held_out.error:.3f})"
        return f"Recall on held-out questions would rise by {gain}, no more than chance would have it"
    return ""


def _named(strengths: Mapping[RelationType, float]) -> dict[str, float]:
    return {relation.value: strengths[relation] for relation in tuned_relations(strengths)}


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A marked question as far as the walk: the passages that served it, where it starts, and its factors untuned."""

    served: tuple[int, ...]
    restart: SparseVector
    factors: EdgeFactors


@dataclass(frozen=True, slots=True)
class Evidence:
    """The marked questions that strengths can be learned from, and how much was left out.

    Attributes:
        asked: one for each question, in their order.
        unknown_passages: marked passages that the workspace does not hold (any more).
        without_passages: questions that this leaves without a passage.
        without_walk: questions that have no seed to walk from.
        fallbacks: how often an agent's replies stayed malformed.
    """

    asked: tuple[Asked, ...]
    unknown_passages: int
    without_passages: int
    without_walk: int
    fallbacks: int

    @property
    def passages(self) -> int:
        """How many passages served, over all questions."""
        return sum(len(one.served) for one in self.asked)


def marked_questions(marks: Sequence[Mark], index: Index) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return {question: the passages of the graph that served it}, and how many passages it does not know."""
    place = index.graph.passage_index
    served = served_passages(marks)
    known = {question: tuple(place[key] for key in keys if key in place) for question, keys in served.items()}
    return known, len({key for keys in served.values() for key in keys} - place.keys())


def gather(
    questions: Mapping[str, tuple[int, ...]], unknown: int, index: Index, context: Context, progress: Progress
) -> Evidence:
    """Retrieve for each question that has a passage; several at once where a chat model is asked.

    Args:
        questions: {question: the passages that served it}.
        unknown: how many marked passages the graph does not know.
        index: what is asked.
        context: the settings of the walk.
        progress: is told how many questions are done.

    Raises what the retrieval workflow raises.
    """
    settings, own = context.walk_settings(), index.graph.own.relation_types
    with_passages = {question: served for question, served in questions.items() if served}
    found: list[Asked] = []
    fallbacks = 0
    for number, (question, result) in enumerate(_retrieve(list(with_passages), context), start=1):
        start, _ = start_of(index, result, settings, selection_of(context, index))
        if restart := restart_of(index, start):
            found.append(Asked(with_passages[question], restart, factors_for(beta_of(result), settings, own)))
        fallbacks += sum(record["kind"] == "Fallback" for record in result["errors"])
        progress("questions", number, len(with_passages))
    n = len(with_passages)
    return Evidence(tuple(found), unknown, len(questions) - n, n - len(found), fallbacks)


class Walks:
    """Tells how good strengths are for each question, by walking; with the same strengths it walks once.

    Attributes:
        count: how many walks that took so far.
    """

    def __init__(self, index: Index, asked: Sequence[Asked], context: Context, progress: Progress) -> None:
        self.count = 0
        self._progress = progress
        self._index = index
        self._asked = asked
        self._engine = context.engine
        self._settings = context.walk_settings()
        self._selection = selection_of(context, index)
        self._own = index.graph.own.relation_types
        self._relations = tuned_relations(self._own)
        self._a_round = len(GRID) * len(self._relations) * max(1, len(asked))
        self._known: dict[Strengths, Scores] = {}

    def __call__(self, strengths: Strengths) -> Scores:
        """Return recall among the first `DEPTH` of each question, and with a little for each place higher up."""
        if strengths not in self._known:
            by_type = by_relation(strengths, self._relations)
            places = [self._places(asked, by_type) for asked in self._asked]
            recall = np.array([(found <= DEPTH).mean() for found in places])
            height = np.array([(1 / found).mean() for found in places])
            self._known[strengths] = Scores(recall, recall + _TIE_BREAKER * height)
        return self._known[strengths]

    def _places(self, asked: Asked, strengths: Mapping[RelationType, float]) -> NDArray[np.float64]:
        """Return where the passages that served stand, from 1; infinity for those below the first twenty."""
        self.count += 1
        self._progress("walks", self.count, (1 + (self.count - 1) // self._a_round) * self._a_round)
        factors = strengthened(asked.factors, strengths, self._own)
        ranking, _ = walk_passages(
            self._index, asked.restart, factors, self._settings, _RANKED, self._engine, self._selection
        )
        place = {passage: number for number, (passage, _) in enumerate(ranking, start=1)}
        return np.array([place.get(passage, np.inf) for passage in asked.served])


def by_relation(strengths: Strengths, relations: Sequence[RelationType]) -> dict[RelationType, float]:
    """Return strengths by relation type."""
    return dict(zip(relations, strengths, strict=True))


def _retrieve(questions: Sequence[str], context: Context) -> Iterator[tuple[str, Any]]:
    """Yield each question with what the retrieval workflow gives for it, in order."""
    from workflows.retrieval import graph

    def retrieve(question: str) -> Any:
        return graph.invoke(Question(question=question), context=context)

    pool = ThreadPoolExecutor(1 if chat_model_name(context) == OFFLINE else _CONCURRENCY)
    try:
        yield from zip(questions, pool.map(retrieve, questions), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


class Scores(NamedTuple):
    """The quality of strengths for each question.

    Attributes:
        recall: share of the passages that served which are among the first few.
        objective: what a fit raises: recall, and a little for how high up they are.
    """

    recall: Floats
    objective: Floats


Scorer = Callable[[Strengths], Scores]
"""A function that measures strengths on every question, always the same for the same strengths."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The result of cross-validation: every question is measured with strengths that were fitted without it.

    Attributes:
        before: recall of each question with the strengths as they are.
        after: recall of each question with those fitted on the other folds.
        strengths: what was fitted without each of the folds.
    """

    before: Floats
    after: Floats
    strengths: tuple[Strengths, ...]

    @property
    def difference(self) -> float:
        """Mean difference of recall."""
        return float(np.mean(self.after - self.before))

    @property
    def error(self) -> float:
        """Standard error of the difference, paired by question."""
        return standard_error(self.after - self.before)

    @property
    def gained(self) -> int:
        """How many questions have a higher recall."""
        return int(np.count_nonzero(self.after > self.before))

    @property
    def lost(self) -> int:
        """How many questions have a lower recall."""
        return int(np.count_nonzero(self.after < self.before))

    @property
    def gains(self) -> bool:
        """Whether recall rises by more than chance would have it."""
        return self.difference > 0 and self.difference >= HELD_OUT_ERRORS * self.error


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of two values or more."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def fit(score: Scorer, rows: Rows, start: Strengths, places: Sequence[int]) -> Strengths:
    """Return the strengths that coordinate ascent reaches.

    Each strength in turn takes the value of `GRID` that gains most with the others as they are, where that gain is
    clear: `LEAST_GAIN` on average, and `STEP_ERRORS` standard errors. Rounds end when one of them changes nothing.

    Args:
        score: tells how good strengths are.
        rows: the questions that count, two at least.
        start: where to begin.
        places: which strengths may change.
    """
    held = start
    for _ in range(_MOST_ROUNDS):
        before = held
        for place in places:
            held = _best_step(score, rows, held, place)
        if held == before:
            break
    return held


def cross_validate(
    score: Scorer, n_questions: int, start: Strengths, places: Sequence[int], folds: int, seed: int
) -> HeldOut:
    """Fit once without each fold, and measure the questions of the fold with the strengths found.

    Args:
        score: tells how good strengths are.
        n_questions: how many questions there are.
        start: the strengths as they are.
        places: which strengths may change.
        folds: how many parts the questions are dealt into, 2 to ``n_questions`` / 2.
        seed: of the dealing.
    """
    before = score(start).recall
    after = np.empty_like(before)
    fitted = []
    for fold in np.array_split(np.random.default_rng(seed).permutation(n_questions), folds):
        rest = np.setdiff1d(np.arange(n_questions), fold)
        strengths = fit(score, rest, start, places)
        after[fold] = score(strengths).recall[fold]
        fitted.append(strengths)
    return HeldOut(before, after, tuple(fitted))


def _best_step(score: Scorer, rows: Rows, held: Strengths, place: int) -> Strengths:
    """Return the strengths with one of them changed to what clearly gains most; of equal gains, the nearest."""
    now = score(held).objective[rows]
    best, most = held, 0.0
    for value in sorted(GRID, key=lambda value: (abs(math.log(value / held[place])), value)):
        if value == held[place]:
            continue
        tried = (*held[:place], value, *held[place + 1 :])
        gains = score(tried).objective[rows] - now
        gain = float(gains.mean())
        if gain > most and gain >= max(LEAST_GAIN, STEP_ERRORS * standard_error(gains)):
            best, most = tried, gain
    return best
