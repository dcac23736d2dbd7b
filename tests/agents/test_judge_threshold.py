"""The adaptive bar: relative to a question's own scores, never below the floor, between a least and a most."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.judge import adaptive_threshold, passing_places
from agents.roles import DEFAULT_N

SCORES = st.lists(st.floats(-20, 20), min_size=1, max_size=30)
N = st.floats(-5, 5)
FLOOR = st.one_of(st.just(-math.inf), st.floats(-20, 20))
COUNT = st.integers(0, 12)


class TestTheBar:
    @given(SCORES, N)
    def test_it_lies_n_standard_deviations_below_the_mean(self, scores: list[float], n: float) -> None:
        bar = adaptive_threshold(scores, n)
        assert bar.tau == pytest.approx(np.mean(scores), abs=1e-9)
        assert bar.sigma == pytest.approx(np.std(scores), abs=1e-9)
        assert bar.value == pytest.approx(np.mean(scores) - n * np.std(scores), abs=1e-8)

    @given(st.floats(-20, 20), st.integers(1, 30), N)
    def test_equal_scores_lie_on_it_and_are_all_kept(self, score: float, count: int, n: float) -> None:
        scores = [score] * count
        assert adaptive_threshold(scores, n).value == score
        assert passing_places(scores, n) == list(range(count))


class TestWhatPasses:
    @given(st.lists(st.floats(-20, 20), min_size=2, max_size=2, unique=True), st.integers(1, 8))
    def test_a_score_exactly_on_the_bar_passes_whatever_rounding_does(self, scores: list[float], copies: int) -> None:
        """Of two scores, as often each, the lower one lies one standard deviation below the mean."""
        assert len(passing_places(scores * copies, 1.0)) == 2 * copies

    def test_by_example(self) -> None:
        """The mean is 1 and the standard deviation about 2.2, so the bar lies at about -0.1 unless said otherwise."""
        cases: list[tuple[dict[str, Any], list[int]]] = [
            ({}, [2, 0, 3]),
            ({"n": 2.0}, [2, 0, 3, 1]),
            ({"n": 2.0, "floor": 0.0}, [2, 0, 3]),
            ({"n": -1.5}, []),
            ({"n": -1.5, "least": 2}, [2, 0]),
            ({"n": -1.5, "least": 9, "floor": 0.0}, [2, 0, 3]),
            ({"n": 2.0, "most": 1}, [2]),
            ({"n": 0.0}, [2, 0]),
            ({"least": 3, "most": 2}, [2, 0]),
            ({"floor": 5.0, "least": 2}, []),
        ]
        scores = [2.0, -2.0, 4.0, 0.0]
        assert adaptive_threshold(scores).value == pytest.approx(1 - DEFAULT_N * math.sqrt(5))
        for limits, kept in cases:
            assert passing_places(scores, **limits) == kept, limits
        assert passing_places([], least=2) == []

    @given(SCORES, N, FLOOR, COUNT, st.one_of(st.none(), st.integers(1, 12)))
    def test_the_best_come_first_and_ties_as_they_stood(
        self, scores: list[float], n: float, floor: float, least: int, most: int | None
    ) -> None:
        kept = passing_places(scores, n, floor=floor, least=least, most=most)
        assert kept == sorted(kept, key=lambda place: (-scores[place], place))
        assert len(set(kept)) == len(kept)
        outside = [score for place, score in enumerate(scores) if place not in kept]
        assert not kept or max(outside, default=-math.inf) <= scores[kept[-1]]

    @given(SCORES, N, FLOOR, COUNT, st.integers(1, 12))
    def test_the_counts_are_kept_to_as_far_as_the_floor_lets(
        self, scores: list[float], n: float, floor: float, least: int, most: int
    ) -> None:
        kept = passing_places(scores, n, floor=floor, least=least, most=most)
        reaching = sum(score >= floor for score in scores)
        assert min(least, most, reaching) <= len(kept) <= min(most, reaching)
        assert all(scores[place] >= floor for place in kept)
        assert passing_places(scores, n, floor=max(scores) + 0.1, least=least) == []

    @given(SCORES, N, N, FLOOR, COUNT)
    def test_a_larger_n_keeps_all_that_a_smaller_one_keeps(
        self, scores: list[float], one: float, other: float, floor: float, least: int
    ) -> None:
        few, many = (passing_places(scores, n, floor=floor, least=least) for n in sorted((one, other)))
        assert many[: len(few)] == few

    @given(st.lists(st.floats(-20, 20), min_size=2, max_size=30))
    def test_the_bar_by_itself_says_nothing_of_how_good_the_scores_are(self, scores: list[float]) -> None:
        """Hence the floor: scores that are all bad are kept as scores that are all good are."""
        assert passing_places(scores)
