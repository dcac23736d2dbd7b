"""Comparing systems question by question: differences with intervals and tests, and the questions won and lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph.errors import BadInput
from workflows.evaluation import (
    ALL_GOLD_DEPTHS,
    DEPTHS,
    claim_support_rate,
    found_all_at_k,
    recall_at_k,
    reciprocal_rank,
)
from workflows.evaluation.systems import Control, is_control
from workflows.runs.run_folder import Run, differences, load_run, rounded

Row = Mapping[str, Any]
"""One line of ``results.jsonl``."""

_READ = ("id", "question", "type", "hops", "gold_ids", "retrieved_ids", "em", "f1", "relation_factors", "failed")

_TIE = 1e-9


def check_rows(rows: Sequence[Row], place: str) -> None:
    """Raise BadInput where a row lacks what a comparison reads."""
    for row in rows:
        missing = [key for key in _READ if key not in row]
        if missing:
            raise BadInput(f"{place}: the row of {row.get('id')!r} lacks {', '.join(missing)}", "Run it again")


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


def check_metrics(names: Sequence[str]) -> list[str]:
    """Return the metrics named, in the order of ``METRICS``; all for none. Raises BadInput for an unknown one."""
    for name in names:
        if name not in METRICS:
            raise BadInput(f"There is no metric {name!r}", f"Choose among {', '.join(METRICS)}")
    return [name for name in METRICS if name in names] or list(METRICS)


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


def question_type(row: Row) -> str:
    """Return the type that the question file gives."""
    return row["type"] or "untyped"


def question_hops(row: Row) -> str:
    """Return how many passages the question needs, as text."""
    return "unknown" if row["hops"] is None else str(row["hops"])


def dominant_relation(*rows: Row) -> str:
    """Return the relation type that β puts above all others, from the first row whose β does so.

    A β that stands in for the manager's is looked at last. "none" where no row has a preference: the highest share is
    shared, or there is no β.
    """
    return next(filter(None, map(_preferred, sorted(rows, key=_is_beta_control))), "none")


def _preferred(row: Row) -> str:
    """Return the type with the highest share of a row's β; nothing where several have it."""
    shares = row["relation_factors"]["entity_entity"] if row["relation_factors"] else {}
    ranked = sorted(shares, key=lambda relation: -shares[relation])
    if not ranked or (len(ranked) > 1 and shares[ranked[0]] - shares[ranked[1]] < _TIE):
        return ""
    return str(ranked[0])


def _is_beta_control(row: Row) -> bool:
    """Tell whether a row's β stands in for the manager's."""
    return any(control.weighs_relations and control in row["system"].split("+") for control in Control)


GROUPINGS: Mapping[str, Callable[[Row, Row], str]] = {
    "type": lambda a, b: question_type(b),
    "hops": lambda a, b: question_hops(b),
    "relation": lambda a, b: dominant_relation(b, a),
}
"""The groupings of questions: by the file's type, by hops, and by the relation that β puts first."""


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
    """The result of one system for a question.

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
        other_gold: paired questions whose gold passages differ between the runs: each row is judged by its own.
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
        values: dict[str, Any] = rounded(asdict(self))
        return values


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
    if not pairs:
        raise BadInput(
            f"{names[0]} and {names[1]} have no question in common", "Compare runs of the same question file"
        )
    won, lost, equal = decided(pairs)
    in_a, in_b = (dict.fromkeys(row["id"] for row in rows) for rows in (a, b))
    return Comparison(
        a=names[0],
        b=names[1],
        paired=len(pairs),
        only_a=tuple(key for key in in_a if key not in in_b),
        only_b=tuple(key for key in in_b if key not in in_a),
        other_gold=sum(set(row["gold_ids"]) != set(other["gold_ids"]) for row, other in pairs),
        failed_a=sum(bool(first["failed"]) for first, _ in pairs),
        failed_b=sum(bool(second["failed"]) for _, second in pairs),
        settings=tuple(settings),
        metrics=paired_differences(pairs, metrics),
        groups=grouped_differences(pairs, metrics),
        won=won,
        lost=lost,
        equal=equal,
    )


def paired_differences(pairs: Sequence[tuple[Row, Row]], metrics: Sequence[str]) -> tuple[Difference, ...]:
    """Return the difference of each metric with its p: exact McNemar of 0/1 metrics, else sign flips; Holm over all."""
    tested = [_difference(name, pairs, tested=True) for name in metrics]
    corrected = iter(holm([each.p for each in tested if each.p is not None]))
    return tuple(each if each.p is None else replace(each, p_holm=next(corrected)) for each in tested)


def grouped_differences(
    pairs: Sequence[tuple[Row, Row]], metrics: Sequence[str]
) -> dict[str, dict[str, tuple[Difference, ...]]]:
    """Return the differences within each group of questions; groups are too many and too small to be tested."""
    by_grouping: dict[str, dict[str, tuple[Difference, ...]]] = {}
    for grouping, group_of in GROUPINGS.items():
        groups: dict[str, list[tuple[Row, Row]]] = {}
        for a, b in pairs:
            groups.setdefault(group_of(a, b), []).append((a, b))
        by_grouping[grouping] = {
            group: tuple(_difference(name, groups[group]) for name in metrics) for group in sorted(groups, key=_natural)
        }
    return by_grouping


def _natural(group: str) -> tuple[bool, int, str]:
    """Order numbers of hops as numbers, before names."""
    return (not group.isdecimal(), int(group) if group.isdecimal() else 0, group)


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
    test, p = "", None
    if tested and metric in _OF_0_AND_1:
        test, p = "McNemar", mcnemar_p(better, worse)
    elif tested:
        test, p = "permutation", permutation_p(b - a)
    mean_a, mean_b, difference = (float(values.mean()) for values in (a, b, b - a))
    return Difference(metric, len(known), mean_a, mean_b, difference, low, high, better, worse, test, p)


def decided(pairs: Sequence[tuple[Row, Row]]) -> tuple[tuple[Decided, ...], tuple[Decided, ...], int]:
    """Return the questions won and lost by the second system, clearest first, and how many are neither.

    Recall in the first five decides; where it is equal, the reciprocal rank of the first gold passage.
    """
    by_sign: dict[int, list[tuple[float, float, Decided]]] = {1: [], 0: [], -1: []}
    for a, b in pairs:
        first, second = _ranking(a), _ranking(b)
        if first is None or second is None:
            continue
        recall = second.recall_at_5 - first.recall_at_5
        rank = second.reciprocal_rank - first.reciprocal_rank
        better = int(np.sign(recall) or np.sign(rank))
        kind, hops, relation = (group_of(a, b) for group_of in GROUPINGS.values())
        by_sign[better].append(
            (-abs(recall), -abs(rank), Decided(b["id"], b["question"], kind, hops, relation, first, second))
        )
    won, lost = (tuple(each for *_, each in sorted(by_sign[sign], key=lambda item: item[:2])) for sign in (1, -1))
    return won, lost, len(by_sign[0])


def _ranking(row: Row) -> Ranking | None:
    """Return the ranking of a system for a question; None where the question has no gold passage."""
    recall, rank = METRICS["recall@5"](row), METRICS["mrr"](row)
    if recall is None or rank is None:
        return None
    ids, gold = tuple(row["retrieved_ids"]), row["gold_ids"]
    missed = tuple(id_ for id_ in gold if id_ not in ids)
    return Ranking(recall, rank, ids, tuple(id_ in gold for id_ in ids), missed, bool(row["failed"]))


@dataclass(frozen=True, slots=True)
class _Side:
    """One system of a run."""

    run: Run
    system: str

    @property
    def name(self) -> str:
        return f"{self.run.folder}:{self.system}"

    def settings(self) -> dict[str, Any]:
        """Return what its rows depend on."""
        of_run = {key: value for key, value in self.run.settings.items() if key != "systems"}
        return {**of_run, "system": self.run.settings["systems"][self.system]}


def compare_runs(run_a: str, run_b: str, metrics: Sequence[str] = ()) -> list[Comparison]:
    """Compare two runs, each a folder or FOLDER:SYSTEM; of two folders, the systems of the same name.

    Raises:
        BadInput: a run, a system or a metric is unknown, or the runs have no system or no question in common.
    """
    names = check_metrics(metrics)
    sides = _sides(named_run(run_a), named_run(run_b))
    for side in (each for pair in sides for each in pair):
        check_rows(side.run.results[side.system], side.name)
    return [
        compare_systems(
            a.run.results[a.system],
            b.run.results[b.system],
            names=(a.name, b.name),
            metrics=names,
            settings=tuple(differences(a.settings(), b.settings())),
        )
        for a, b in sides
    ]


def named_run(text: str) -> tuple[Run, str | None]:
    """Return the run that an argument names, a folder or FOLDER:SYSTEM, and the system if it names one.

    Raises:
        BadInput: there is no such run or system.
    """
    if Path(text).exists() or ":" not in text:
        return load_run(Path(text)), None
    folder, _, system = text.rpartition(":")
    run = load_run(Path(folder))
    if system not in run.results:
        raise BadInput(f"The run at {folder} has no system {system!r}", f"It has {', '.join(run.results)}")
    return run, system


def _sides(a: tuple[Run, str | None], b: tuple[Run, str | None]) -> list[tuple[_Side, _Side]]:
    """Return which systems are compared."""
    (run_a, system_a), (run_b, system_b) = a, b
    if system_a is None and system_b is None:
        if run_a.folder.resolve() == run_b.folder.resolve():
            raise BadInput("A run is the same as itself", f"Name systems, as in {_example(run_a)}")
        both = [system for system in run_a.results if system in run_b.results]
        if both:
            return [(_Side(run_a, system), _Side(run_b, system)) for system in both]
    first = system_a or _counterpart(run_a, system_b)
    second = system_b or _counterpart(run_b, system_a)
    return [(_Side(run_a, first), _Side(run_b, second))]


def _counterpart(run: Run, other: str | None) -> str:
    """Return the system of a run to compare with one of another run: that of the same name, or its only one."""
    if other in run.results:
        return str(other)
    if len(run.results) == 1:
        return next(iter(run.results))
    raise BadInput(f"Which system of {run.folder} is meant is not clear", f"Name it, as in {_example(run)}")


def _example(run: Run) -> str:
    return " ".join(f"{run.folder}:{system}" for system in list(run.results)[-2:])


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


def bootstrap_interval(differences: ArrayLike, *, resamples: int = DRAWS, seed: int = 0) -> Interval | None:
    """Return the mean of paired differences with its percentile bootstrap interval (Efron 1979).

    Questions are drawn with replacement, a pair as a whole; one seed gives one interval.

    Args:
        differences: one finite number a question, shape (n,).
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
    low, high = bootstrap((values,), np.mean, confidence_level=LEVEL, method="percentile", **drawn).confidence_interval
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
