"""The search for strengths: it takes clear gains alone, and what it finds is judged by questions it has not seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.tuning.tune import (
    GRID,
    Floats,
    HeldOut,
    Scorer,
    Scores,
    Strengths,
    cross_validate,
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
        assert fit(helped_by(best), EVERY, start, PLACES) == best

    def test_may_begin_beside_the_grid_and_stays_where_nothing_gains(self) -> None:
        start = (1.5, 0.3, 3.9)
        assert fit(scorer(lambda strengths: np.full(N, 0.5)), EVERY, start, PLACES) == start
        assert fit(helped_by((2.0, 2.0, 2.0)), EVERY, start, PLACES) == (2.0, 2.0, 2.0)

    def test_changes_no_strength_but_those_it_may(self) -> None:
        assert fit(helped_by((4.0, 4.0, 4.0)), EVERY, ONES, [1]) == (1.0, 4.0, 1.0)

    def test_looks_at_its_own_questions_alone(self) -> None:
        odd_against_even = scorer(lambda strengths: np.where(EVERY % 2, strengths[0], -strengths[0]) / 8)
        assert fit(odd_against_even, EVERY[EVERY % 2 == 1], ONES, PLACES)[0] == 4.0
        assert fit(odd_against_even, EVERY[EVERY % 2 == 0], ONES, PLACES)[0] == 0.25
        assert fit(odd_against_even, EVERY, ONES, PLACES) == ONES

    def test_of_equal_gains_it_takes_the_nearest(self) -> None:
        assert fit(scorer(lambda s: np.full(N, 0.5 + 0.1 * (s[0] > 1))), EVERY, ONES, PLACES) == (2.0, 1.0, 1.0)

    @pytest.mark.parametrize(("gaining", "taken"), [(3, False), (5, True)])
    def test_a_few_questions_are_chance_some_more_are_not(self, gaining: int, taken: bool) -> None:
        few = scorer(lambda strengths: np.where(gaining > EVERY, 0.5 * (strengths[1] == 2), 0.0))
        assert (fit(few, EVERY, ONES, PLACES) == (1.0, 2.0, 1.0)) == taken

    def test_a_gain_for_all_that_is_next_to_none_is_not_taken(self) -> None:
        assert fit(scorer(lambda strengths: np.full(N, 0.001 * strengths[0])), EVERY, (2.0, 1.0, 1.0), [0])[0] == 4.0
        assert fit(scorer(lambda strengths: np.full(N, 0.0005 * strengths[0])), EVERY, (2.0, 1.0, 1.0), [0])[0] == 2.0

    def test_noise_is_rarely_followed(self) -> None:
        def noise(seed: int) -> Scorer:
            def recall(strengths: Strengths) -> Floats:
                key = [seed, *(int(8 * strength) for strength in strengths)]
                return np.random.default_rng(key).choice([0.0, 0.5, 1.0], N)

            return scorer(recall)

        held = [cross_validate(noise(seed), N, ONES, PLACES, 5, 0) for seed in range(12)]
        assert sum(found.gains for found in held) <= 3


class TestCrossValidation:
    def test_what_helps_every_question_helps_those_held_out(self) -> None:
        found = cross_validate(helped_by((4.0, 0.5, 1.0)), N, ONES, PLACES, 5, 0)
        assert found.gains
        assert found.difference == pytest.approx(0.15)
        assert (found.gained, found.lost) == (30, 0)
        assert found.strengths == ((4.0, 0.5, 1.0),) * 5

    def test_every_question_is_measured_once_without_having_been_learned_from(self) -> None:
        def places(strengths: Strengths) -> Floats:
            return EVERY.astype(np.float64) + strengths[0] / 8

        found = cross_validate(scorer(places), N, ONES, PLACES, 7, 0)
        assert (found.after - found.before).tolist() == [3 / 8] * N
        assert len(found.strengths) == 7

    def test_what_is_learned_by_heart_falls_on_the_questions_held_out(self) -> None:
        folds = np.array_split(np.random.default_rng(3).permutation(N), 3)
        own = np.empty(N, dtype=int)
        for place, fold in enumerate(folds):
            own[fold] = place

        def recall(strengths: Strengths) -> Floats:
            raised = np.array(strengths) > 1
            return np.where(raised[own], 0.0, np.where(raised.any(), 1.0, 0.5))

        found = cross_validate(scorer(recall), N, ONES, PLACES, 3, 3)
        assert fit(scorer(recall), EVERY, ONES, PLACES) != ONES
        assert found.difference == -0.5
        assert (found.gained, found.lost) == (0, N)
        assert not found.gains
        assert cross_validate(scorer(recall), N, ONES, PLACES, 3, 4).difference > -0.5, "another seed deals otherwise"


class TestHeldOut:
    def test_a_standard_error_by_hand(self) -> None:
        assert standard_error(np.array([0.0, 1.0, 0.0, 1.0])) == pytest.approx((1 / 3) ** 0.5 / 2)

    @pytest.mark.parametrize(
        ("after", "gains"),
        [([0.5, 0.5, 0.5], False), ([0.6, 0.6, 0.6], True), ([1.0, 0.5, 0.4], False), ([0.4, 0.5, 0.5], False)],
    )
    def test_gains_are_more_than_chance(self, after: list[float], gains: bool) -> None:
        assert HeldOut(np.full(3, 0.5), np.array(after), ()).gains == gains
