"""Comparing systems question by question: differences with intervals and tests, and the questions won and lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from graph.errors import BadInput
from workflows.evaluation import (
    ALL_GOLD_DEPTHS,
    DEPTHS,
    claim_support_rate,
    found_all_at_k,
    recall_at_k,
    reciprocal_rank,
)
from workflows.evaluation.systems import is_control
from workflows.runs.run_folder import load_run, rounded

Row = Mapping[str, Any]
"""One line of ``results.jsonl``."""


def pair_rows(a: Sequence[Row], b: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the rows of two systems paired by question id, in the order of the first.

    Raises:
        BadInput: one id stands for two questions.
    """
    second = {row["id"]: row for row in b}
    pairs = [(row, second[row["id"]]) for row in a if row["id"] in second]
    for row, other in pairs:
        if row["question"] != other["question"]:
            raise BadInput(
                f"Id {row['id']!r} is another question in each run", "Compare runs of the same question file"
            )
    return pairs


def _of_ranking(measure: Callable[[Sequence[str], Sequence[str]], float]) -> Callable[[Row], float | None]:
    return lambda row: float(measure(row["retrieved_ids"], row["gold_ids"])) if row["gold_ids"] else None


def _written(key: str) -> Callable[[Row], float | None]:
    """Return a reader of one figure of a row; it gives None if an earlier version did not write the figure."""
    return lambda row: None if row.get(key) is None else float(row[key])


def _claim_support(row: Row) -> float | None:
    """Return the share of the answer's claims that were found supported."""
    return claim_support_rate([row["claims"]] if row.get("claims") else [])


METRICS: Mapping[str, Callable[[Row], float | None]] = {
    **{f"recall@{k}": _of_ranking(partial(recall_at_k, k=k)) for k in DEPTHS},
    **{f"all-gold@{k}": _of_ranking(partial(found_all_at_k, k=k)) for k in ALL_GOLD_DEPTHS},
    "mrr": _of_ranking(reciprocal_rank),
    "em": _written("em"),
    "f1": _written("f1"),
    "citation-recall": _written("citation_recall"),
    "citation-precision": _written("citation_precision"),
    "gold-cited": _written("gold_citation_recall"),
    "cited-are-gold": _written("gold_citation_precision"),
    "claim-support": _claim_support,
}
"""The metrics that two systems are compared by, in the order they are shown: each a value of a question's row.

None where the row has nothing to judge, as without gold or without an answer.
"""

_OF_0_AND_1 = {"em", *(f"all-gold@{k}" for k in ALL_GOLD_DEPTHS)}


BASELINE = "hybrid"
"""The system that all others of a run are compared with, unless the user names another."""

LESS_BASELINE = (*(f"recall@{k}" for k in ALL_GOLD_DEPTHS), *(f"all-gold@{k}" for k in ALL_GOLD_DEPTHS), "mrr")
"""The metrics whose difference to the baseline stands among the figures of a run."""


def baseline_of(systems: Mapping[str, Row], wanted: str | None = None) -> str:
    """Return the system of a run that the others are compared with.

    Args:
        systems: the run's, with their settings.
        wanted: None for `BASELINE`, else the first system that is no control, else the first.

    Raises:
        BadInput: the one wanted is not of the run.
    """
    if wanted is not None and wanted not in systems:
        raise BadInput(f"The baseline {wanted!r} is not of this run", f"Take one of {', '.join(systems)}")
    results = [name for name, settings in systems.items() if not is_control(settings)]
    return wanted or (BASELINE if BASELINE in systems else next(iter((*results, *systems))))


def less_baseline(
    results: Mapping[str, Sequence[Row]], baseline: str, metrics: Sequence[str] = LESS_BASELINE
) -> dict[str, tuple[Difference, ...]]:
    """Return the differences of each other system to the baseline, with their intervals and without tests."""
    return {
        system: tuple(_difference(name, pair_rows(results[baseline], rows)) for name in metrics)
        for system, rows in results.items()
        if system != baseline
    }


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric of two systems on the questions where both have a value; B - A, so positive is for B.

    Attributes:
        n: how many questions that are; with 0 there is no number.
        a: mean of the first system.
        b: mean of the second.
        difference: mean of b - a.
        low: lower bound of the 95 % bootstrap interval; None for fewer than two questions.
        high: its upper bound.
        better: questions on which the second system is better.
        worse: questions on which it is worse.
        p: two-sided, of this metric alone; None where nothing was tested.
        p_holm: corrected for all metrics that were tested beside it.
    """

    metric: str
    n: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    better: int = 0
    worse: int = 0
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems, question by question.

    Attributes:
        a: name of the first system, with its run.
        b: the same for the second; differences are B - A.
        paired: questions that both were asked.
        left_out: questions that only one of them was asked.
        failed_a: paired questions at which the first system failed; they count as nothing found.
        failed_b: the same for the second.
        metrics: the differences, tested.
        won: ids of the questions on which the second system ranks the gold passages better, clearest first.
        lost: those on which it ranks them worse.
        equal: how many are neither; questions without gold are not counted.
    """

    a: str
    b: str
    paired: int
    left_out: int
    failed_a: int
    failed_b: int
    metrics: tuple[Difference, ...]
    won: tuple[str, ...]
    lost: tuple[str, ...]
    equal: int

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as ``--json`` writes it, floats rounded to 9 decimals."""
        values: dict[str, Any] = rounded(asdict(self))
        return values


def compare_systems(
    a: Sequence[Row], b: Sequence[Row], *, names: tuple[str, str], metrics: Sequence[str] = tuple(METRICS)
) -> Comparison:
    """Compare two systems on the questions that both were asked.

    Raises:
        BadInput: there is no such question, or one id stands for two questions.
    """
    pairs = pair_rows(a, b)
    if not pairs:
        raise BadInput(
            f"{names[0]} and {names[1]} have no question in common", "Compare runs of the same question file"
        )
    won, lost, equal = decided(pairs)
    return Comparison(
        a=names[0],
        b=names[1],
        paired=len(pairs),
        left_out=len(a) + len(b) - 2 * len(pairs),
        failed_a=sum(bool(first["failed"]) for first, _ in pairs),
        failed_b=sum(bool(second["failed"]) for _, second in pairs),
        metrics=paired_differences(pairs, metrics),
        won=won,
        lost=lost,
        equal=equal,
    )


def paired_differences(pairs: Sequence[tuple[Row, Row]], metrics: Sequence[str]) -> tuple[Difference, ...]:
    """Return the difference of each metric with its p: exact McNemar of 0/1 metrics, else sign flips; Holm over all."""
    tested = [_difference(name, pairs, tested=True) for name in metrics]
    corrected = iter(holm([each.p for each in tested if each.p is not None]))
    return tuple(each if each.p is None else replace(each, p_holm=next(corrected)) for each in tested)


def _difference(metric: str, pairs: Sequence[tuple[Row, Row]], *, tested: bool = False) -> Difference:
    """Return the means of both systems and their difference with its interval, on the questions where both have one.

    Args:
        metric: name of it.
        pairs: a row of each system.
        tested: whether p is computed.
    """
    measure = METRICS[metric]
    scored = [(measure(a), measure(b)) for a, b in pairs]
    known = [(first, second) for first, second in scored if first is not None and second is not None]
    if not known:
        return Difference(metric, 0)
    a, b = np.array(known).T
    interval = bootstrap_interval(b - a)
    low, high = (interval.low, interval.high) if interval else (None, None)
    better, worse = int((b > a).sum()), int((b < a).sum())
    p = None
    if tested:
        p = mcnemar_p(better, worse) if metric in _OF_0_AND_1 else permutation_p(b - a)
    mean_a, mean_b, difference = (float(values.mean()) for values in (a, b, b - a))
    return Difference(metric, len(known), mean_a, mean_b, difference, low, high, better, worse, p)


def decided(pairs: Sequence[tuple[Row, Row]]) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Return the questions won and lost by the second system, clearest first, and how many are neither.

    Recall in the first five decides; where it is equal, the reciprocal rank of the first gold passage.
    """
    recall, rank = METRICS["recall@5"], METRICS["mrr"]
    gains = {
        b["id"]: ((recall(b) or 0) - (recall(a) or 0), (rank(b) or 0) - (rank(a) or 0))
        for a, b in pairs
        if a["gold_ids"] and b["gold_ids"]
    }
    clearest = sorted(gains, key=lambda key: tuple(-abs(gain) for gain in gains[key]))
    won = tuple(key for key in clearest if gains[key] > (0, 0))
    lost = tuple(key for key in clearest if gains[key] < (0, 0))
    return won, lost, len(gains) - len(won) - len(lost)


def compare_runs(run_a: str, run_b: str, metrics: Sequence[str] = ()) -> list[Comparison]:
    """Compare two runs, each a folder or FOLDER:SYSTEM; of two folders, the systems of the same name.

    Raises:
        BadInput: a run, a system or a metric is unknown, or the runs have no system or no question in common.
    """
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise BadInput(f"There is no metric {unknown[0]!r}", f"Choose among {', '.join(METRICS)}")
    names = [name for name in METRICS if name in metrics] or list(METRICS)
    a, b = named_systems(run_a), named_systems(run_b)
    pairs = [(name, name) for name in a if name in b]
    if len(a) == len(b) == 1:
        pairs = [(next(iter(a)), next(iter(b)))]
    if not pairs:
        raise BadInput(
            f"Which system of {run_a} is compared with which of {run_b} is not clear",
            f"Name both, as in {run_b.partition(':')[0]}:{[*b][-1]}",
        )
    return [
        compare_systems(a[first].rows, b[second].rows, names=(a[first].name, b[second].name), metrics=names)
        for first, second in pairs
    ]


class NamedRows(NamedTuple):
    """The rows of a system, with its name and its run's."""

    name: str
    rows: Sequence[Row]


def named_systems(text: str) -> dict[str, NamedRows]:
    """Return the systems of the run that an argument names: all of a folder, or the one of FOLDER:SYSTEM.

    Raises:
        BadInput: there is no such run or system.
    """
    folder, colon, system = text.rpartition(":")
    if Path(text).exists() or not colon:
        folder, system = text, ""
    results = load_run(Path(folder)).results
    if system and system not in results:
        raise BadInput(f"The run at {folder} has no system {system!r}", f"It has {', '.join(results)}")
    return {name: NamedRows(f"{folder}:{name}", rows) for name, rows in results.items() if system in ("", name)}


LEVEL = 0.95
"""Share of the bootstrap means that an interval holds."""

DRAWS = 10_000
"""Resamples of a bootstrap, and sign flips of a permutation test; where there are fewer flips, each is tried."""

_DRAWN_AT_ONCE = 1_000
"""Draws that are held in memory at once."""


class Interval(NamedTuple):
    """A mean and the bounds of its bootstrap interval, lower first."""

    mean: float
    low: float
    high: float


def bootstrap_interval(differences: ArrayLike) -> Interval | None:
    """Return the mean of paired differences with its percentile bootstrap interval (Efron 1979).

    Questions are drawn with replacement, a pair as a whole, always by one seed.

    Args:
        differences: one finite number a question, shape (n,).

    Returns:
        None for fewer than two questions: one alone says nothing about the spread.
    """
    from scipy.stats import bootstrap

    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return None
    if (values == values[0]).all():
        return Interval(*[float(values[0])] * 3)
    drawn = bootstrap((values,), np.mean, confidence_level=LEVEL, method="percentile", **_drawing())
    low, high = drawn.confidence_interval
    return Interval(float(values.mean()), float(low), float(high))


def permutation_p(differences: ArrayLike) -> float:
    """Return the two-sided p of a mean paired difference under random exchange of the two systems.

    Pairs without a difference say nothing and take no part. p is never 0 (Phipson and Smyth 2010), and 1 where
    fewer than two pairs differ.
    """
    from scipy.stats import permutation_test

    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0]
    if len(values) < 2:
        return 1.0
    drawn = permutation_test((values,), np.mean, permutation_type="samples", vectorized=True, **_drawing())
    return float(drawn.pvalue)


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


def _drawing() -> dict[str, Any]:
    """Return how scipy is to draw."""
    return {"n_resamples": DRAWS, "batch": _DRAWN_AT_ONCE, "rng": np.random.default_rng(0)}
