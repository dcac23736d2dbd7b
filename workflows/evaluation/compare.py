"""Comparing two systems question by question: differences with intervals and tests, and who won which question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from graph.errors import BadInput
from workflows.evaluation.pairing import (
    METRICS,
    Pairs,
    Row,
    dominant_relation,
    pair_rows,
    question_hops,
    question_type,
    values,
)
from workflows.evaluation.statistics import bootstrap_interval, holm, mcnemar_p, permutation_p

PERMUTATION = "permutation"
MCNEMAR = "McNemar"

GROUPINGS: Mapping[str, Callable[[Row, Row], str]] = {
    "type": lambda a, b: question_type(b),
    "hops": lambda a, b: question_hops(b),
    "relation": lambda a, b: dominant_relation(b, a),
}
"""How questions are told apart: by the file's type, by hops, and by the relation that β puts first."""

_DECIMALS = 9


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
        test: what p is of; empty where nothing was tested.
        p: two-sided, of this metric alone.
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
    test: str = ""
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one system found for a question.

    Attributes:
        passages: ids, best first.
        gold: which of them are gold.
        missed: gold ids that are not among them.
        failed: whether the question could not be asked.
    """

    recall_at_5: float
    reciprocal_rank: float
    passages: tuple[str, ...]
    gold: tuple[bool, ...]
    missed: tuple[str, ...]
    failed: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """A question on which one system ranks the gold passages better than the other."""

    id: str
    question: str
    type: str
    hops: str
    relation: str
    a: Ranking
    b: Ranking


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems, question by question.

    Attributes:
        a: name of the first system, with its run.
        b: the same for the second; differences are B - A.
        paired: questions that both were asked.
        only_a: ids of those that only the first was asked, left out.
        only_b: the same for the second.
        other_gold: paired questions whose gold passages differ between the runs.
        failed_a: paired questions at which the first system failed; they count as nothing found.
        failed_b: the same for the second.
        settings: what was set otherwise: name, value of the first, value of the second.
        metrics: the differences, tested.
        groups: grouping -> group -> differences of its questions, not tested.
        won: questions on which the second system is better, clearest first.
        lost: those on which it is worse.
        equal: how many are neither; questions without gold are not counted.
    """

    a: str
    b: str
    paired: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    other_gold: int
    failed_a: int
    failed_b: int
    settings: tuple[tuple[str, Any, Any], ...]
    metrics: tuple[Difference, ...]
    groups: Mapping[str, Mapping[str, tuple[Difference, ...]]]
    won: tuple[Decided, ...]
    lost: tuple[Decided, ...]
    equal: int

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as ``--json`` writes it, floats rounded to 9 decimals."""
        return {str(key): _rounded(value) for key, value in asdict(self).items()}


def compare_systems(
    a: Sequence[Row],
    b: Sequence[Row],
    *,
    names: tuple[str, str],
    metrics: Sequence[str] = tuple(METRICS),
    settings: Sequence[tuple[str, Any, Any]] = (),
) -> Comparison:
    """Compare two systems on the questions that both were asked.

    Raises:
        BadInput: there is no such question, or one id stands for two questions.
    """
    pairs = pair_rows(a, b)
    if not pairs.both:
        raise BadInput(
            f"{names[0]} and {names[1]} have no question in common", "Compare runs of the same question file"
        )
    won, lost, equal = decided(pairs)
    return Comparison(
        a=names[0],
        b=names[1],
        paired=len(pairs.both),
        only_a=tuple(pairs.only_a),
        only_b=tuple(pairs.only_b),
        other_gold=pairs.other_gold,
        failed_a=sum(bool(first["failed"]) for first, _ in pairs.both),
        failed_b=sum(bool(second["failed"]) for _, second in pairs.both),
        settings=tuple(settings),
        metrics=paired_differences(pairs.both, metrics),
        groups=grouped_differences(pairs.both, metrics),
        won=won,
        lost=lost,
        equal=equal,
    )


def paired_differences(pairs: Sequence[tuple[Row, Row]], metrics: Sequence[str]) -> tuple[Difference, ...]:
    """Return the difference of each metric with its p: exact McNemar of 0/1 metrics, else sign flips; Holm over all."""
    found = [_tested(name, values(pairs, METRICS[name])) for name in metrics]
    corrected = iter(holm([each.p for each in found if each.p is not None]))
    return tuple(each if each.p is None else replace(each, p_holm=next(corrected)) for each in found)


def grouped_differences(
    pairs: Sequence[tuple[Row, Row]], metrics: Sequence[str]
) -> dict[str, dict[str, tuple[Difference, ...]]]:
    """Return the differences within each group of questions; groups are too many and too small to be tested."""
    found: dict[str, dict[str, tuple[Difference, ...]]] = {}
    for grouping, group_of in GROUPINGS.items():
        groups: dict[str, list[tuple[Row, Row]]] = {}
        for a, b in pairs:
            groups.setdefault(group_of(a, b), []).append((a, b))
        found[grouping] = {
            group: tuple(_difference(name, values(groups[group], METRICS[name])) for name in metrics)
            for group in sorted(groups, key=_natural)
        }
    return found


def _natural(group: str) -> tuple[bool, int, str]:
    """Order numbers of hops as numbers, before names."""
    return (not group.isdecimal(), int(group) if group.isdecimal() else 0, group)


def _difference(metric: str, scored: Sequence[tuple[float, float]]) -> Difference:
    """Return the means of both systems and their difference with its interval."""
    if not scored:
        return Difference(metric, 0)
    a, b = np.array(scored).T
    interval = bootstrap_interval(b - a)
    return Difference(
        metric,
        len(scored),
        float(a.mean()),
        float(b.mean()),
        float((b - a).mean()),
        interval.low if interval else None,
        interval.high if interval else None,
        int((b > a).sum()),
        int((b < a).sum()),
    )


def _tested(metric: str, scored: Sequence[tuple[float, float]]) -> Difference:
    """Return the same with its p, where there is a question."""
    found = _difference(metric, scored)
    if not scored:
        return found
    if METRICS[metric].binary:
        return replace(found, test=MCNEMAR, p=mcnemar_p(found.better, found.worse))
    return replace(found, test=PERMUTATION, p=permutation_p([b - a for a, b in scored]))


def decided(pairs: Pairs) -> tuple[tuple[Decided, ...], tuple[Decided, ...], int]:
    """Return the questions won and lost by the second system, clearest first, and how many are neither.

    Recall in the first five decides; where it is equal, the reciprocal rank of the first gold passage.
    """
    found: dict[int, list[tuple[float, float, Decided]]] = {1: [], 0: [], -1: []}
    for a, b in pairs.both:
        first, second = _ranking(a), _ranking(b)
        if first is None or second is None:
            continue
        recall = second.recall_at_5 - first.recall_at_5
        rank = second.reciprocal_rank - first.reciprocal_rank
        better = int(np.sign(recall) or np.sign(rank))
        names = (question_type(b), question_hops(b), dominant_relation(b, a))
        found[better].append((-abs(recall), -abs(rank), Decided(b["id"], b["question"], *names, first, second)))
    won, lost = (tuple(each for *_, each in sorted(found[sign], key=lambda item: item[:2])) for sign in (1, -1))
    return won, lost, len(found[0])


def _ranking(row: Row) -> Ranking | None:
    """Return what a system found for a question; None where the question has no gold passage."""
    recall, rank = METRICS["recall@5"].of(row), METRICS["mrr"].of(row)
    if recall is None or rank is None:
        return None
    ids, gold = tuple(row["retrieved_ids"]), row["gold_ids"]
    missed = tuple(id_ for id_ in gold if id_ not in ids)
    return Ranking(recall, rank, ids, tuple(id_ in gold for id_ in ids), missed, bool(row["failed"]))


def _rounded(value: Any) -> Any:
    """Return a value with its floats rounded, so that JSON holds no noise of the last digits."""
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {str(key): _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value
