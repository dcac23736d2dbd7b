"""Tuning: learn from marks how strong each relation type should be, offline, and adopt it where it holds up.

The questions are retrieved once, up to their seeds and β; the search then walks alone, so that what is compared differs
in the strengths and in nothing else. One half of the questions is learned from, the other tells whether that holds up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.retrieve.modes import Mode, WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.search import factors_for, restart_of, walk_passages
from graph.schema import RelationType
from graph.storage.marks import Mark, MarkKind, read_marks, served_passages
from graph.storage.workspace import Workspace, resolve_workspace
from graph.walk.factors import EdgeFactors
from graph.walk.sparse import SparseVector
from graph.walk.strengths import (
    UNTUNED,
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

Strengths = tuple[float, ...]

GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The values that a strength is given."""

LEAST_GAIN = 0.002
"""The least average gain of a step."""

STEP_ERRORS = 2.0
"""The least gain of a step, in its standard errors: a fit tries dozens, and the best of dozens is lucky.

The change as a whole, on questions that had no part in it, has to gain one: there is one, and it was not picked.
"""

_MOST_ROUNDS = 3


def tune_workspace(
    context: Context, *, seed: int = 0, dry_run: bool = False, progress: Progress = no_progress
) -> dict[str, Any]:
    """Fit strengths to one half of a workspace's marked questions; adopt them if recall rises on the other half.

    The fit starts at the current version. Strengths that lower held-out recall, or raise it by no more than chance
    would, are refused: that is no error, and nothing is written.

    Args:
        context: the workspace, and the settings of mode ``mara``.
        seed: of the dealing into halves.
        dry_run: whether nothing is to be written in any case.
        progress: is told how far each stage has come.

    Returns:
        The result, and whether it was adopted, as plain values: ``version`` is the current one from now on,
        ``strengths`` are the fitted ones, which are that version's where they were adopted.

    Raises:
        BadInput: too few questions are marked, or the mode is another one.
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
    _check_enough(len(questions))
    asked, fallbacks = gather(questions, context, progress)
    _check_enough(len(asked))
    dealt = [asked[place] for place in np.random.default_rng(seed).permutation(len(asked))]
    half = len(asked) // 2
    held_out, learned_from = (Walks(index, part, context, progress) for part in (dealt[:half], dealt[half:]))
    relations = tuned_relations(index.graph.own.relation_types)
    start = tuple(current.strengths.get(relation, 1.0) for relation in relations)
    fitted = fit(learned_from, start, _present(index, relations))
    before, after = (held_out(strengths).recall for strengths in (start, fitted))
    gains = after - before
    kinds = Counter(mark.kind for mark in marks)
    made_from = {"questions": len(asked), "passages": sum(len(one.served) for one in asked)}
    proposal = Tuning(
        current.version,
        _kept(current, by_relation(fitted, relations)),
        parent=current.version,
        made_from={**made_from, **{kind.value: kinds[kind] for kind in MarkKind}},
        recall_before=float(before.mean()),
        recall_after=float(after.mean()),
        settings={
            "recall_at": DEPTH,
            "held_out": half,
            "seed": seed,
            "preset": context.preset.value,
            "chat": chat_model_name(context),
            "embedding": index.embedder.model_id,
            "generation": index.graph.generation,
        },
    )
    refusal = _refusal(current, proposal, gains)
    adopted = not refusal and not dry_run
    version = adopt(root, proposal).version if adopted else current.version
    served = served_passages(marks)
    return {
        "workspace": str(root),
        "adopted": adopted,
        "refusal": refusal,
        "dry_run": dry_run,
        "strengths_before": to_json(current)["strengths"],
        **{**to_json(proposal), "version": version},
        "difference": float(gains.mean()),
        "standard_error": standard_error(gains),
        "gained": int(np.count_nonzero(gains > 0)),
        "lost": int(np.count_nonzero(gains < 0)),
        "unknown_passages": unknown,
        "questions_without_passages": len(served) - len(questions),
        "questions_without_walk": len(questions) - len(asked),
        "fallbacks": fallbacks,
        "walks": learned_from.count + held_out.count,
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
    return {
        "workspace": str(root),
        "current": history.current,
        "versions": [*map(to_json, (UNTUNED, *history.versions))],
    }


def _check_enough(n_questions: int) -> None:
    if n_questions < FEWEST_QUESTIONS:
        raise BadInput(
            f"Passages that served are marked for {n_questions} questions; tuning needs {FEWEST_QUESTIONS}",
            "Mark more: `mara tune mark RUN`, or `mara tune mark --question ... --passage ...`",
        )


def _present(index: Index, relations: Sequence[RelationType]) -> list[int]:
    """Return the places of the relation types that the graph has edges of."""
    present = {index.graph.kinds[kind].relation for kind in np.unique(index.graph.edges.kind)}
    return [place for place, relation in enumerate(relations) if relation in present]


def _kept(current: Tuning, fitted: Mapping[RelationType, float]) -> dict[RelationType, float]:
    """Return fitted strengths beside those of own types that no fact has any more, for when one has them again."""
    strengths = {**current.strengths, **fitted}
    return {relation: s for relation, s in strengths.items() if s != 1 or not relation.is_own}


def _refusal(current: Tuning, proposal: Tuning, gains: Floats) -> str:
    """Return why fitted strengths are not adopted; empty where they are."""
    gain, error = float(gains.mean()), standard_error(gains)
    if gain < 0:
        fall = f"from {proposal.recall_before:.3f} to {proposal.recall_after:.3f}"
        return f"Recall on held-out questions would fall {fall}"
    if proposal.strengths == current.strengths:
        return "No other strength gains more on these questions than chance would"
    if gain == 0 or gain < error:
        rise = f"{gain:.3f} (standard error {error:.3f})"
        return f"Recall on held-out questions would rise by {rise}, no more than chance would have it"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A marked question as far as the walk: what served it, its words, its start and settings, its untuned factors."""

    served: tuple[int, ...]
    words: str
    restart: SparseVector
    settings: WalkSettings
    factors: EdgeFactors


def marked_questions(marks: Sequence[Mark], index: Index) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return the passages of the graph that served each question, and how many passages it does not know.

    A question whose passages are all unknown is left out.
    """
    place = index.graph.passage_index
    served = served_passages(marks)
    known = {question: tuple(place[key] for key in keys if key in place) for question, keys in served.items()}
    unknown = {key for keys in served.values() for key in keys} - place.keys()
    return {question: places for question, places in known.items() if places}, len(unknown)


def gather(questions: Mapping[str, tuple[int, ...]], context: Context, progress: Progress) -> tuple[list[Asked], int]:
    """Retrieve for each question; several at once where a chat model is asked.

    Args:
        questions: the passages that served each.
        context: the settings of the walk.
        progress: is told how many questions are done.

    Returns:
        The questions that have a seed to walk from, in their order, and how often an agent's replies stayed malformed.

    Raises what the retrieval workflow raises.
    """
    from workflows.retrieval import graph

    index, settings = open_workspace_index(context), context.walk_settings()
    at_once = 1 if chat_model_name(context) == OFFLINE else _CONCURRENCY
    results: Any = graph.batch_as_completed(
        [Question(question=question) for question in questions], {"max_concurrency": at_once}, context=context
    )
    asked: dict[int, Asked] = {}
    fallbacks = 0
    for number, (place, result) in enumerate(results, start=1):
        start, _ = start_of(index, result, settings, selection_of(context, index))
        if restart := restart_of(index, start):
            factors = factors_for(beta_of(result), settings, index.graph.own.relation_types)
            asked[place] = Asked(list(questions.values())[place], start.words, restart, start.settings, factors)
        fallbacks += sum(record["kind"] == "Fallback" for record in result["errors"])
        progress("questions", number, len(questions))
    return [asked[place] for place in sorted(asked)], fallbacks


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
        self._engine = context.walk.engine
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
            recall = np.array([(ranks <= DEPTH).mean() for ranks in places])
            height = np.array([(1 / ranks).mean() for ranks in places])
            self._known[strengths] = Scores(recall, recall + _TIE_BREAKER * height)
        return self._known[strengths]

    def _places(self, asked: Asked, strengths: Mapping[RelationType, float]) -> NDArray[np.float64]:
        """Return where the passages that served stand, from 1; infinity for those below the first twenty."""
        self.count += 1
        self._progress("walks", self.count, (1 + (self.count - 1) // self._a_round) * self._a_round)
        factors = strengthened(asked.factors, strengths, self._own)
        ranking, _ = walk_passages(
            self._index, asked.words, asked.restart, factors, asked.settings, _RANKED, self._engine, self._selection
        )
        place = {passage: number for number, (passage, _) in enumerate(ranking, start=1)}
        return np.array([place.get(passage, np.inf) for passage in asked.served])


def by_relation(strengths: Strengths, relations: Sequence[RelationType]) -> dict[RelationType, float]:
    """Return strengths by relation type."""
    return dict(zip(relations, strengths, strict=True))


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


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of two values or more."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def fit(score: Scorer, start: Strengths, places: Sequence[int]) -> Strengths:
    """Return the strengths that coordinate ascent reaches.

    Each strength in turn takes the value of `GRID` that gains most with the others as they are, where that gain is
    clear: `LEAST_GAIN` on average, and `STEP_ERRORS` standard errors. Rounds end when one of them changes nothing.

    Args:
        score: tells how good strengths are for each question, of which there are two at least.
        start: where to begin.
        places: which strengths may change.
    """
    strengths = start
    for _ in range(_MOST_ROUNDS):
        before = strengths
        for place in places:
            strengths = _best_step(score, strengths, place)
        if strengths == before:
            break
    return strengths


def _best_step(score: Scorer, strengths: Strengths, place: int) -> Strengths:
    """Return the strengths with one of them changed to what clearly gains most; of equal gains, the nearest."""
    now = score(strengths).objective
    best, most = strengths, 0.0
    for value in sorted(GRID, key=lambda value: (abs(math.log(value / strengths[place])), value)):
        if value == strengths[place]:
            continue
        tried = (*strengths[:place], value, *strengths[place + 1 :])
        gains = score(tried).objective - now
        gain = float(gains.mean())
        if gain > most and gain >= max(LEAST_GAIN, STEP_ERRORS * standard_error(gains)):
            best, most = tried, gain
    return best
