"""Intervals, tests and their correction: by hand, against scipy, and by what must hold for any differences."""

from __future__ import annotations

import pytest
from numpy.typing import ArrayLike

from tests.cases import refuse_warnings
from workflows.evaluation.compare import bootstrap_interval, holm, mcnemar_p, permutation_p


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
