"""The figures of a run: what ``metrics.json`` holds of each system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median, pstdev
from typing import Literal

from agents.answers.citations import strip_citations
from agents.chat.usage import Prices
from workflows.evaluation import (
    ALL_GOLD_DEPTHS,
    DEPTHS,
    FIRST_PAGE,
    citation_support_rate,
    fallback_counts,
    holds_gold,
    known,
    latency_by_node,
    mean,
    mean_all_gold,
    mean_f1,
    mean_precision,
    mean_recall,
    mrr,
    refusal_rate,
    total_usage,
)
from workflows.evaluation.attribution import attribution_figures, checking_figures
from workflows.evaluation.compare import Difference, baseline_of, less_baseline
from workflows.runs.run_folder import Row, counted, rounded
from workflows.states.records import usage_of

_DECIMALS = 6
ABOUT_RUN = ("questions", "workspace_id", "generation", "models", "versions", "retrieval_only", "top_k")
"""The settings of a run that its figures, and its experiments in LangSmith, repeat."""

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
    usage = total_usage(row["usage"] for row in timings)
    figures: Row = rounded(
        {
            "questions": len(rows),
            "with_gold": sum(bool(gold) for gold in golds),
            "failed": len(known(rows, "failed")),
            "recall": {str(k): mean_recall(rankings, golds, k) for k in DEPTHS},
            "all_gold": {str(k): mean_all_gold(rankings, golds, k) for k in ALL_GOLD_DEPTHS},
            "precision": {str(k): mean_precision(rankings, golds, k) for k in DEPTHS},
            "retrieval_f1": {str(k): mean_f1(rankings, golds, k) for k in DEPTHS},
            "mrr": mrr(rankings, golds),
            "mrr_at_5": mrr(rankings, golds, FIRST_PAGE),
            "em": mean(known(rows, "em")),
            "f1": {"mean": mean(f1), "median": _of(median, f1), "std": _of(pstdev, f1)},
            "gold_in_answer": mean(float(_answer_holds_gold(row)) for row in rows if row["em"] is not None),
            "refusal_rate": refusal_rate(known(rows, "refused")),
            "citation_support_rate": citation_support_rate(citation["supported"] for citation in citations),
            "citation_gold_rate": mean(float(citation["gold"]) for citation in citations),
            **attribution_figures(rows),
            **checking_figures(rows),
            "fallbacks": fallback_counts(errors),
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


def _of(figure: Callable[[list[float]], float], values: list[float]) -> float | None:
    return figure(values) if values else None
