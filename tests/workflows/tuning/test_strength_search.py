"""The search for strengths: it takes clear gains alone, judged by questions that it has not seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.tuning.tune import (
    GRID,
    Floats,
    Scorer,
    Scores,
    Strengths,
    fit,
    standard_error,
)

ONES: Strengths = (1.0, 1.0, 1.0)
PLACES = range(3)
N = 60
EVERY = np.arange(N)


def scorer(recall: Callable[[Strengths], Floats]) -> Scorer:
    """Return a scorer whose objective is recall itself."""

    def score(strengths: Strengths) -> Scores:
        return Scores(recall(strengths), recall(strengths))

    return score


def helped_by(best: Strengths) -> Scorer:
    """Every second question gains 0.1 for each strength, the nearer it is to a best one."""

    def recall(strengths: Strengths) -> Floats:
        distance = np.abs(np.log2(strengths) - np.log2(best)).sum()
        return np.where(EVERY % 2, 1 - 0.1 * distance, 0.5)

    return scorer(recall)


class TestFit:
    @given(st.tuples(*[st.sampled_from(GRID)] * 3), st.tuples(*[st.sampled_from(GRID)] * 3))
    @settings(max_examples=25)
    def test_climbs_to_the_best_strengths_wherever_it_begins(self, best: Strengths, start: Strengths) -> None:
        assert fit(helped_by(best), start, PLACES) == best

    def test_changes_no_strength_but_those_it_may(self) -> None:
        assert fit(helped_by((4.0, 4.0, 4.0)), ONES, [1]) == (1.0, 4.0, 1.0)

    def test_of_equal_gains_it_takes_the_nearest(self) -> None:
        assert fit(scorer(lambda s: np.full(N, 0.5 + 0.1 * (s[0] > 1))), ONES, PLACES) == (2.0, 1.0, 1.0)

    def test_a_few_questions_are_chance_some_more_are_not(self) -> None:
        def gaining(count: int) -> Scorer:
            return scorer(lambda strengths: np.where(count > EVERY, 0.5 * (strengths[1] == 2), 0.0))

        assert fit(gaining(3), ONES, PLACES) == ONES
        assert fit(gaining(5), ONES, PLACES) == (1.0, 2.0, 1.0)

    def test_a_gain_for_all_that_is_next_to_none_is_not_taken(self) -> None:
        assert fit(scorer(lambda strengths: np.full(N, 0.001 * strengths[0])), (2.0, 1.0, 1.0), [0])[0] == 4.0
        assert fit(scorer(lambda strengths: np.full(N, 0.0005 * strengths[0])), (2.0, 1.0, 1.0), [0])[0] == 2.0


def test_a_standard_error_by_hand() -> None:
    assert standard_error(np.array([0.0, 1.0, 0.0, 1.0])) == pytest.approx((1 / 3) ** 0.5 / 2)
