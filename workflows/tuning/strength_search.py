"""The search for strengths of relation types: coordinate ascent over a coarse grid, judged by cross-validation.

Strengths are tuples in the order of `tuned_relations`. A function scores them with one number a question, so that every
comparison is paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
