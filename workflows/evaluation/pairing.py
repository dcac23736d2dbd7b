"""Two systems' answers to the same questions, side by side, and what each scores on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph.errors import BadInput
from workflows.evaluation.controls import Control
from workflows.evaluation.metrics import DEPTHS, claim_support_rate, found_all_at_k, recall_at_k, reciprocal_rank

Row = Mapping[str, Any]
"""One line of ``results.jsonl``."""

_READ = ("id", "question", "type", "hops", "gold_ids", "retrieved_ids", "em", "f1", "relation_factors", "failed")

UNTYPED = "untyped"
UNKNOWN_HOPS = "unknown"
NO_RELATION = "none"
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of one question.

    Attributes:
        of: its value for a row; None where the row has nothing to judge, as without gold or without an answer.
        binary: whether its values are 0 and 1 alone.
    """

    of: Callable[[Row], float | None]
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """The questions of both systems, and those of one alone.

    Attributes:
        both: a row of the first system and one of the second, in the first one's order.
        only_a: ids of the questions that the first system alone was asked.
        only_b: the same for the second.
        other_gold: paired questions whose gold passages differ: each row is judged by its own.
    """

    both: Sequence[tuple[Row, Row]]
    only_a: Sequence[str] = ()
    only_b: Sequence[str] = ()
    other_gold: int = 0


def check_rows(rows: Sequence[Row], place: str) -> None:
    """Raise BadInput where a row lacks what a comparison reads."""
    for row in rows:
        missing = [key for key in _READ if key not in row]
        if missing:
            raise BadInput(f"{place}: the row of {row.get('id')!r} lacks {', '.join(missing)}", "Run it again")


def pair_rows(a: Sequence[Row], b: Sequence[Row]) -> Pairs:
    """Return the rows of two systems paired by question id.

    Raises:
        BadInput: one id stands for two questions.
    """
    second = {row["id"]: row for row in b}
    both = [(row, second[row["id"]]) for row in a if row["id"] in second]
    for row, other in both:
        if row["question"] != other["question"]:
            raise BadInput(
                f"Id {row['id']!r} is another question in each run", "Compare runs of the same question file"
            )
    first = {row["id"] for row in a}
    return Pairs(
        both,
        [row["id"] for row in a if row["id"] not in second],
        [row["id"] for row in b if row["id"] not in first],
        sum(set(row["gold_ids"]) != set(other["gold_ids"]) for row, other in both),
    )


def _recall(depth: int) -> Callable[[Row], float | None]:
    return lambda row: recall_at_k(row["retrieved_ids"], row["gold_ids"], depth) if row["gold_ids"] else None


def _reciprocal_rank(row: Row) -> float | None:
    return reciprocal_rank(row["retrieved_ids"], row["gold_ids"]) if row["gold_ids"] else None


def _all_gold(row: Row) -> float | None:
    """Return whether every gold passage is among the first five."""
    return float(found_all_at_k(row["retrieved_ids"], row["gold_ids"], 5)) if row["gold_ids"] else None


def _written(key: str) -> Callable[[Row], float | None]:
    """Return what reads a figure from a row; one that runs of an earlier version lack is None."""
    return lambda row: None if row.get(key) is None else float(row[key])


def _claim_support(row: Row) -> float | None:
    """Return the share of the answer's claims that were found supported."""
    return claim_support_rate([row["claims"]] if row.get("claims") else [])


METRICS = {
    **{f"recall@{depth}": Metric(_recall(depth)) for depth in DEPTHS},
    "all-gold@5": Metric(_all_gold, binary=True),
    "mrr": Metric(_reciprocal_rank),
    "em": Metric(_written("em"), binary=True),
    "f1": Metric(_written("f1")),
    "citation-recall": Metric(_written("citation_recall")),
    "citation-precision": Metric(_written("citation_precision")),
    "gold-cited": Metric(_written("gold_citation_recall")),
    "cited-are-gold": Metric(_written("gold_citation_precision")),
    "claim-support": Metric(_claim_support),
}
"""The metrics that two systems are compared by, in the order they are shown."""


def check_metrics(names: Sequence[str]) -> list[str]:
    """Return the metrics named, in the order of ``METRICS``; all for none. Raises BadInput for an unknown one."""
    for name in names:
        if name not in METRICS:
            raise BadInput(f"There is no metric {name!r}", f"Choose among {', '.join(METRICS)}")
    return [name for name in METRICS if name in names] or list(METRICS)


def values(pairs: Sequence[tuple[Row, Row]], metric: Metric) -> list[tuple[float, float]]:
    """Return both systems' values of a metric on the questions where both have one."""
    scored = ((metric.of(a), metric.of(b)) for a, b in pairs)
    return [(a, b) for a, b in scored if a is not None and b is not None]


def question_type(row: Row) -> str:
    """Return the type that the question file gives."""
    return row["type"] or UNTYPED


def question_hops(row: Row) -> str:
    """Return how many passages the question needs, as text."""
    return UNKNOWN_HOPS if row["hops"] is None else str(row["hops"])


def dominant_relation(*rows: Row) -> str:
    """Return the relation type that β puts above all others, from the first row whose β does so.

    A β that stands in for the manager's is looked at last. "none" where no row has a preference: the highest share is
    shared, or there is no β.
    """
    return next(filter(None, map(_preferred, sorted(rows, key=_is_beta_control))), NO_RELATION)


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
