"""Statistics of paired differences between two systems: intervals, tests, and the correction for many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""Share of the bootstrap means that an interval holds."""

SIGNIFICANT = 0.05
"""A corrected p up to which a difference is called one."""

DRAWS = 10_000
"""Resamples of a bootstrap, and sign flips of a permutation test; where there are fewer flips, each is tried."""

_CELLS_AT_ONCE = 200_000
"""Draws that are held in memory at once."""


class Interval(NamedTuple):
    """A mean and the bounds of its bootstrap interval, lower first."""

    mean: float
    low: float
    high: float


def bootstrap_interval(
    differences: ArrayLike, *, level: float = LEVEL, resamples: int = DRAWS, seed: int = 0
) -> Interval | None:
    """Return the mean of paired differences with its percentile bootstrap interval (Efron 1979).

    Questions are drawn with replacement, a pair as a whole; one seed gives one interval.

    Args:
        differences: one finite number a question, shape (n,).
        level: share of the resampled means between the bounds, in (0, 1).
        resamples: how often questions are drawn.
        seed: of the generator.

    Returns:
        None for fewer than two questions: one alone says nothing about the spread.
    """
    from scipy.stats import bootstrap

    values = _finite(differences)
    if len(values) < 2:
        return None
    if (values == values[0]).all():
        return Interval(*[float(values[0])] * 3)
    drawn = _drawn(values, resamples, seed)
    low, high = bootstrap((values,), np.mean, confidence_level=level, method="percentile", **drawn).confidence_interval
    return Interval(float(values.mean()), float(low), float(high))


def permutation_p(differences: ArrayLike, *, draws: int = DRAWS, seed: int = 0) -> float:
    """Return the two-sided p of a mean paired difference under random exchange of the two systems.

    Pairs without a difference say nothing and take no part. p is never 0 (Phipson and Smyth 2010), and 1 where
    fewer than two pairs differ.
    """
    from scipy.stats import permutation_test

    values = _finite(differences)
    values = values[values != 0]
    if len(values) < 2:
        return 1.0
    drawn = _drawn(values, draws, seed)
    return float(permutation_test((values,), np.mean, permutation_type="samples", vectorized=True, **drawn).pvalue)


def mcnemar_p(won: int, lost: int) -> float:
    """Return the exact two-sided p of McNemar's test: a fair coin for each question that only one system gets right.

    Args:
        won: questions that only the second system gets right.
        lost: questions that only the first one does.

    Returns:
        A number in (0, 1]; 1 where the systems are never of two minds.
    """
    from scipy.stats import binomtest

    return float(binomtest(won, won + lost).pvalue) if won + lost else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, in the order given (Holm 1979).

    Rejecting those at most α keeps the chance of any wrong rejection at most α, whatever their dependence.
    """
    corrected = [1.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def _drawn(values: NDArray[np.float64], times: int, seed: int) -> dict[str, Any]:
    """Return how scipy is to draw."""
    batch = max(1, _CELLS_AT_ONCE // len(values))
    return {"n_resamples": times, "batch": batch, "rng": np.random.default_rng(seed)}


def _finite(differences: ArrayLike) -> NDArray[np.float64]:
    """Return the differences as an array. Raises ValueError for another shape, or what is no number."""
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("Differences are one finite number a question")
    return values
