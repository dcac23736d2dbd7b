"""The figures of a run: what ``metrics.json`` holds of each system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from statistics import median, pstdev
from typing import Literal

import numpy as np

from agents.answers.citations import strip_citations
from agents.chat.usage import Prices
from workflows.evaluation import (
    ALL_GOLD_DEPTHS,
    DEPTHS,
    FIRST_PAGE,
    averaged,
    f1_at_k,
    found_all_at_k,
    holds_gold,
    known,
    mean,
    mrr,
    precision_at_k,
    recall_at_k,
)
from workflows.evaluation.attribution import attribution_figures, checking_figures
from workflows.evaluation.compare import Difference, baseline_of, less_baseline
from workflows.runs.run_folder import Row, counted, rounded
from workflows.states.records import NO_USAGE, add_usage, usage_of

_DECIMALS = 6
ABOUT_RUN = ("questions", "workspace_id", "generation", "models", "versions", "retrieval_only", "top_k")
"""The settings of a run that its figures, and its experiments in LangSmith, repeat."""

_FALLBACK = "Fallback"
_TOTAL = "total"
_SPENT: tuple[Literal["calls", "prompt_tokens", "completion_tokens"], ...] = (
    "calls",
    "prompt_tokens",
    "completion_tokens",
)


def run_metrics(
    settings: Row,
    results: Mapping[str, Sequence[Row]],
    timings: Mapping[str, Sequence[Row]],
    prices: Prices | None = None,
    baseline: str | None = None,
) -> Row:
    """Return the figures of all systems of a run, beside the settings that they hold for.

    ``differences`` are those of the other systems to the ``baseline``, each with its 95 % bootstrap interval.

    Args:
        settings: what ``run.json`` holds.
        results: the rows of each system.
        timings: the same systems' timings.
        prices: of tokens; None where the user gives none.
        baseline: a system of the run, see `baseline_of`.
    """
    reference = baseline_of(settings["systems"], baseline)
    return {
        "systems": {name: system_metrics(rows, timings[name], prices) for name, rows in results.items()},
        "baseline": reference,
        "differences": {
            name: {each.metric: rounded(_told(each), _DECIMALS) for each in found}
            for name, found in less_baseline(results, reference).items()
        },
        "settings": settings["systems"],
        **{name: settings[name] for name in ABOUT_RUN},
    }


def system_metrics(rows: Sequence[Row], timings: Sequence[Row], prices: Prices | None = None) -> Row:
    """Return one system's figures; a figure that nothing was measured for is None.

    Questions that failed count: nothing was retrieved, and nothing answered right. Those without gold passages take no
    part in recall, precision, their F1 and MRR, those without gold answers none in EM and F1. The standard deviation is
    that of these questions, not an estimate for others.
    """
    rankings, golds = [row["retrieved_ids"] for row in rows], [row["gold_ids"] for row in rows]
    citations = [citation for row in rows for citation in row["citations"]]
    errors = [error for row in rows for error in row["errors"]]
    f1 = known(rows, "f1")
    usage = reduce(add_usage, (row["usage"] for row in timings), NO_USAGE)
    figures: Row = rounded(
        {
            "questions": len(rows),
            "with_gold": sum(bool(gold) for gold in golds),
            "failed": len(known(rows, "failed")),
            "recall": _by_depth(recall_at_k, DEPTHS, rankings, golds),
            "all_gold": _by_depth(found_all_at_k, ALL_GOLD_DEPTHS, rankings, golds),
            "precision": _by_depth(precision_at_k, DEPTHS, rankings, golds),
            "retrieval_f1": _by_depth(f1_at_k, DEPTHS, rankings, golds),
            "mrr": mrr(rankings, golds),
            "mrr_at_5": mrr(rankings, golds, FIRST_PAGE),
            "em": mean(known(rows, "em")),
            "f1": {"mean": mean(f1), "median": _of(median, f1), "std": _of(pstdev, f1)},
            "gold_in_answer": mean(float(_answer_holds_gold(row)) for row in rows if row["em"] is not None),
            "refusal_rate": mean(map(float, known(rows, "refused"))),
            "citation_support_rate": mean(float(citation["supported"]) for citation in citations),
            "citation_gold_rate": mean(float(citation["gold"]) for citation in citations),
            **attribution_figures(rows),
            **checking_figures(rows),
            "fallbacks": counted(error["node"] for error in errors if error["kind"] == _FALLBACK),
            "errors": counted(error["kind"] for error in errors),
            "failures": counted(failed["kind"] for failed in known(rows, "failed")),
            "fact_outcomes": counted(row["fact_outcome"] for row in rows),
            "ranked_by": counted(row["ranked_by"] for row in rows),
            "latency_ms": _latency(timings),
            "usage": usage,
            "usage_per_question": {name: usage[name] / len(rows) if rows else None for name in _SPENT},
            "cost": prices.cost_of(usage_of(usage)) if prices else None,
        },
        _DECIMALS,
    )
    return figures


def _by_depth(
    measure: Callable[[Sequence[str], Sequence[str], int], float],
    depths: Sequence[int],
    rankings: Sequence[Sequence[str]],
    golds: Sequence[Sequence[str]],
) -> Row:
    return {str(k): averaged(partial(measure, k=k), rankings, golds) for k in depths}


def _told(found: Difference) -> Row:
    return {"questions": found.n, "difference": found.difference, "low": found.low, "high": found.high}


def _answer_holds_gold(row: Row) -> bool:
    """Tell whether a row's answer holds a gold one; a question that failed or was refused has none."""
    said = row["answer"] if row["answer"] and not row["refused"] else ""
    return holds_gold(strip_citations(said), row["gold_answers"])


def _latency(timings: Sequence[Row]) -> Row:
    """Return p50 and p95 of the whole and of each node, over the questions that were answered."""
    answered = [row for row in timings if row["total_ms"] is not None]
    whole = latency_by_node({_TOTAL: row["total_ms"]} for row in answered)
    return {"total": whole.get(_TOTAL), "nodes": latency_by_node(row["timings_ms"] for row in answered)}


def latency_by_node(timings: Iterable[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the p50 and p95 of each node's milliseconds, over the questions on which it ran."""
    by_node: dict[str, list[float]] = {}
    for times in timings:
        for node, ms in times.items():
            by_node.setdefault(node, []).append(ms)
    return {node: {f"p{q}": float(np.percentile(ms, q)) for q in (50, 95)} for node, ms in sorted(by_node.items())}


def _of(figure: Callable[[list[float]], float], values: list[float]) -> float | None:
    return figure(values) if values else None
