"""Intervals, tests and their correction: by hand, against scipy, and by what must hold for any differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from tests.cases import refuse_warnings
from workflows.evaluation.compare import bootstrap_interval, holm, mcnemar_p, permutation_p

some_differences = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=40)
some_ps = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def no_warning_is_raised() -> None:
    refuse_warnings()


def bounds(differences: ArrayLike, **how: int) -> tuple[float, float, float]:
    interval = bootstrap_interval(differences, **how)
    assert interval is not None
    return interval.mean, interval.low, interval.high


def test_bootstrap_bounds_by_hand() -> None:
    assert bounds([0.0, 1.0]) == (0.5, 0.0, 1.0)
    assert bounds([0.1] * 30) == (0.1, 0.1, 0.1)
    # The sum of a resample of 20 ones and 20 zeros is binomial: 95 % of it lies in 14 .. 26.
    assert bounds([0.0] * 20 + [1.0] * 20)[1:] == (14 / 40, 26 / 40)
    assert bootstrap_interval([]) is bootstrap_interval([0.7]) is None


def test_bootstrap_agrees_with_scipy() -> None:
    from scipy.stats import bootstrap

    differences = np.random.default_rng(3).choice([-0.5, 0.0, 0.5, 1.0], 80)
    theirs = bootstrap((differences,), np.mean, method="percentile", rng=np.random.default_rng(1)).confidence_interval
    assert bounds(differences)[1:] == pytest.approx((theirs.low, theirs.high), abs=0.02)


@settings(max_examples=25, deadline=None)
@given(some_differences)
def test_exchanging_the_systems_mirrors_the_interval_and_keeps_p(differences: list[float]) -> None:
    mean, low, high = bounds(differences, resamples=500)
    opposite = [-each for each in differences]
    assert bounds(opposite, resamples=500) == pytest.approx((-mean, -high, -low))
    assert permutation_p(opposite, draws=500) == permutation_p(differences, draws=500)


def test_p_of_few_differences_is_counted_over_all_flips() -> None:
    cases = [
        ([1.0, 1.0, 1.0], 2 / 8),
        ([1.0, 1.0, 1.0, -1.0], 10 / 16),
        ([0.5, 0.0, 0.0, 0.5, 0.5], 2 / 8),
        ([0.1, 0.2, -0.3], 1.0),
        ([0.0, 0.0], 1.0),
        ([], 1.0),
    ]
    for differences, p in cases:
        assert permutation_p(differences) == p, differences


def test_exact_p_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test

    differences = np.random.default_rng(2).normal(0.4, 1, 9)
    theirs = permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert permutation_p(differences) == pytest.approx(theirs.pvalue)


def test_mcnemar_is_the_binomial_test() -> None:
    from scipy.stats import binomtest

    for won, lost, p in ((0, 0, 1.0), (5, 0, 2 / 32), (0, 5, 2 / 32), (1, 1, 1.0), (6, 2, 74 / 256)):
        assert mcnemar_p(won, lost) == p
    for won, lost in ((3, 11), (40, 25), (2900, 3100)):
        assert mcnemar_p(won, lost) == pytest.approx(binomtest(won, won + lost).pvalue)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.4, 0.3]) == pytest.approx([0.6, 0.6])
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@settings(max_examples=30)
@given(some_ps)
def test_holm_raises_p_keeps_its_order_and_does_not_ask_in_which_order_it_came(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, corrected, strict=True))
    ranked = sorted(zip(ps, corrected, strict=True))
    assert [q for _, q in ranked] == sorted(corrected)
    assert sorted(holm(ps[::-1])) == sorted(corrected)
    assert max(corrected, default=0) <= min(1.0, len(ps) * max(ps))
