"""The figures of a run, by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.chat.usage import Prices
from tests.workflows.evaluation import compared_rows
from workflows.evaluation.runner import system_metrics
from workflows.runs.run_folder import Row

GONE = {"kind": "ModelUnavailable", "message": "gone"}


def row(key: str, **changes: Any) -> Row:
    return compared_rows.row(key, "", **{"gold_answers": ["Karv"], "fact_outcome": "", **changes})


def timing(total: float | None, tokens: tuple[int, int, int, int] = (0, 0, 0, 0), **nodes: float) -> Row:
    names = ("calls", "prompt_tokens", "completion_tokens", "unknown")
    return {"total_ms": total, "timings_ms": nodes, "usage": dict(zip(names, tokens, strict=True))}


def test_recall_is_that_of_all_questions_and_a_failed_one_found_nothing() -> None:
    rows = [
        row("found", retrieved_ids=["a", "x", "b"]),
        row("half", retrieved_ids=["x", "b", "y"]),
        row("failed", failed=GONE, ranked_by=""),
        row("without gold", gold_ids=[], retrieved_ids=["a"]),
    ]
    figures = system_metrics(rows, [timing(1.0)] * 4)
    assert (figures["questions"], figures["with_gold"], figures["failed"]) == (4, 3, 1)
    assert figures["recall"] == pytest.approx({"1": 1 / 6, "2": 1 / 3, "5": 1 / 2, "10": 1 / 2, "20": 1 / 2}, abs=1e-6)
    assert figures["all_gold"] == pytest.approx({"2": 0, "5": 1 / 3, "10": 1 / 3}, abs=1e-6)
    assert figures["precision"]["2"] == pytest.approx(1 / 3, abs=1e-6)
    assert figures["precision"]["5"] == pytest.approx((2 / 5 + 1 / 5) / 3, abs=1e-6)
    assert figures["retrieval_f1"]["5"] == pytest.approx((4 / 7 + 2 / 7) / 3, abs=1e-6)
    assert figures["mrr"] == figures["mrr_at_5"] == pytest.approx((1 + 1 / 2) / 3, abs=1e-6)
    assert figures["failures"] == {"ModelUnavailable": 1}
    assert figures["ranked_by"] == {"walk": 3}


def test_answers_are_those_that_can_be_judged() -> None:
    rows = [
        row("right", em=1.0, f1=1.0, refused=False),
        row("refused", em=0.0, f1=0.0, refused=True),
        row("half", em=0.0, f1=0.5, refused=False),
        row("no gold answer", refused=False),
        row("failed", em=0.0, f1=0.0, failed=GONE),
    ]
    figures = system_metrics(rows, [timing(1.0)] * 5)
    assert figures["em"] == pytest.approx(1 / 4)
    assert figures["f1"] == pytest.approx({"mean": 0.375, "median": 0.25, "std": 0.414578}, abs=1e-6)
    assert figures["refusal_rate"] == pytest.approx(1 / 4)


def test_an_answer_holds_the_gold_where_it_says_it_without_citations_and_does_not_refuse() -> None:
    rows = [
        row("held", em=0.0, f1=0.5, answer="It lies at KARV [1].", refused=False),
        row("held too", em=1.0, f1=1.0, answer="Karv", refused=False),
        row("cited alone", gold_answers=["1"], em=0.0, f1=0.0, answer="It lies at Lake Sund [1].", refused=False),
        row("refused", em=0.0, f1=0.0, answer="Karv is NOT IN THE PASSAGES", refused=True),
        row("failed", em=0.0, f1=0.0, failed=GONE),
        row("no gold answer", gold_answers=[], answer="Karv", refused=False),
    ]
    assert system_metrics(rows, [timing(1.0)] * 6)["gold_in_answer"] == pytest.approx(2 / 5)
    assert system_metrics([row("retrieval alone")], [timing(1.0)])["gold_in_answer"] is None


def test_a_gold_passage_beyond_the_fifth_counts_for_mrr_and_not_for_mrr_at_5() -> None:
    figures = system_metrics([row("late", retrieved_ids=[*"uvwxy", "a"])], [timing(1.0)])
    assert (figures["mrr"], figures["mrr_at_5"]) == (pytest.approx(1 / 6, abs=1e-6), 0.0)


def test_errors_are_counted_by_kind_and_by_node() -> None:
    malformed, fallback = (
        {"node": "filter_facts", "kind": "MalformedReply"},
        {"node": "keep_top_facts", "kind": "Fallback"},
    )
    errors = [malformed, malformed, fallback]
    rows = [row("one", errors=errors, fact_outcome="failed"), row("two", fact_outcome="kept")]
    figures = system_metrics(rows, [timing(1.0)] * 2)
    assert figures["fallbacks"] == {"keep_top_facts": 1}
    assert figures["errors"] == {"Fallback": 1, "MalformedReply": 2}
    assert figures["fact_outcomes"] == {"failed": 1, "kept": 1}


def test_latency_is_that_of_the_questions_that_were_answered() -> None:
    timings = [timing(10.0, walk_graph=1.0), timing(30.0, walk_graph=3.0, write_answer=9.0), timing(None)]
    latency = system_metrics([row(key) for key in "abc"], timings)["latency_ms"]
    assert latency["total"] == {"p50": 20.0, "p95": 29.0}
    assert latency["nodes"]["walk_graph"] == {"p50": 2.0, "p95": 2.9}
    assert latency["nodes"]["write_answer"] == {"p50": 9.0, "p95": 9.0}


def test_tokens_cost_what_they_cost_where_prices_are_given_and_all_are_known() -> None:
    rows, prices = [row("a"), row("b")], Prices(2.0, 10.0)
    known = [timing(1.0, (3, 1_000_000, 100_000, 0)), timing(1.0, (1, 500_000, 0, 0))]
    figures = system_metrics(rows, known, prices)
    assert figures["usage"] == {"calls": 4, "prompt_tokens": 1_500_000, "completion_tokens": 100_000, "unknown": 0}
    assert figures["usage_per_question"] == {"calls": 2, "prompt_tokens": 750_000, "completion_tokens": 50_000}
    assert figures["cost"] == pytest.approx(4.0)
    assert system_metrics(rows, known)["cost"] is None
    assert system_metrics(rows, [known[0], timing(1.0, (1, 0, 0, 1))], prices)["cost"] is None


def test_nothing_measured_is_none_and_not_nought() -> None:
    figures = system_metrics([row("one", gold_ids=[], failed=GONE)], [timing(None)])
    assert {*figures["recall"].values(), *figures["f1"].values(), *figures["written_from"].values()} == {None}
    for name in ("mrr", "em", "refusal_rate", "citation_support_rate", "claim_support_rate", "model_calls"):
        assert figures[name] is None
    assert figures["latency_ms"] == {"total": None, "nodes": {}}
    json.dumps(figures, allow_nan=False)
