"""Two systems, question by question: their differences, and the questions that differ."""

from __future__ import annotations

from typing import Any

import pytest

from graph.errors import BadInput
from tests.cases import refuse_warnings
from tests.workflows.evaluation.compared_rows import row
from workflows.evaluation.compare import (
    Comparison,
    Difference,
    compare_systems,
    pair_rows,
)

# Of gold a and b: the first system finds one in q1, both in q2, none in q3; the second both, one, and one at rank 6.
FIRST = [row("q1", "a x y"), row("q2", "x a b"), row("q3", "x y z")]
SECOND = [row("q1", "a b y"), row("q2", "x b y"), row("q3", "x y z u v a")]


@pytest.fixture(autouse=True)
def no_warning_is_raised() -> None:
    refuse_warnings()


def compared(a: list[dict[str, Any]], b: list[dict[str, Any]], **options: Any) -> Comparison:
    return compare_systems(a, b, names=("run:a", "run:b"), **options)


def of(comparison: Comparison, metric: str) -> Difference:
    return next(each for each in comparison.metrics if each.metric == metric)


def test_differences_are_those_computed_by_hand() -> None:
    recall = of(compared(FIRST, SECOND), "recall@5")
    assert (recall.n, recall.a, recall.b, recall.difference) == (3, 0.5, 0.5, 0.0)
    assert (recall.low, recall.high) == (-0.5, 0.5)
    assert (recall.better, recall.worse, recall.p) == (1, 1, 1.0)
    deeper = of(compared(FIRST, SECOND), "recall@10")
    assert [deeper.a, deeper.b] == pytest.approx([0.5, 2 / 3])
    first_gold = of(compared(FIRST, SECOND), "mrr")
    assert [first_gold.a, first_gold.b] == pytest.approx([(1 + 1 / 2) / 3, (1 + 1 / 2 + 1 / 6) / 3])
    single = of(compared(FIRST[:1], SECOND[:1]), "recall@5")
    assert (single.difference, single.low, single.high, single.p) == (0.5, None, None, 1.0)
    same = compared(FIRST, FIRST)
    assert (same.won, same.lost, same.equal) == ((), (), 3)


def test_metrics_of_0_and_1_are_tested_by_mcnemar_and_the_others_by_exchange() -> None:
    first = [row(f"q{n}", "a x", em=0.0, f1=0.5) for n in range(6)]
    second = [row(f"q{n}", "a b", em=1.0, f1=1.0) for n in range(6)]
    both = compared(first, second)
    of_0_and_1 = {"em", "all-gold@2", "all-gold@5", "all-gold@10"}
    exact = {each.metric for each in both.metrics if each.p == 2 / 64}
    assert exact >= of_0_and_1 | {"f1", "recall@5"}


def test_questions_without_an_answer_or_gold_in_both_take_no_part() -> None:
    em = of(compared(FIRST, SECOND), "em")
    assert (em.n, em.difference, em.low, em.p, em.p_holm) == (0, None, None, None, None)
    first = [row("q1", "a", f1=0.2), row("q2", "a", f1=None), row("q3", "a", f1=0.4)]
    second = [row("q1", "a", f1=0.6), row("q2", "a", f1=0.9), row("q3", "a", f1=0.4)]
    f1 = of(compared(first, second), "f1")
    assert f1.n == 2
    assert f1.difference == pytest.approx(0.2)
    both = compared([*FIRST, row("q4", "x", gold="")], [*SECOND, row("q4", "y", gold="")])
    assert (both.paired, of(both, "recall@5").n) == (4, 3)
    assert len(both.won) + len(both.lost) + both.equal == 3


def test_a_question_that_failed_counts_as_nothing_found() -> None:
    failed = row("q1", "", failed={"kind": "MaraError", "message": "no"})
    both = compared([row("q1", "a b")], [failed])
    assert (of(both, "recall@5").difference, both.failed_a, both.failed_b) == (-1.0, 0, 1)
    assert both.lost == ("q1",)


def test_questions_are_paired_by_id_in_any_order_and_the_others_are_counted() -> None:
    first, second = [*FIRST, row("q8", "a")], [row("q9", "a"), *SECOND[::-1]]
    assert [(a["id"], b["id"]) for a, b in pair_rows(first, second)] == [("q1", "q1"), ("q2", "q2"), ("q3", "q3")]
    both = compared(first, second)
    assert (both.paired, both.left_out) == (3, 2)
    with pytest.raises(BadInput, match="no question in common"):
        compared(FIRST, [row("q7", "a")])
    with pytest.raises(BadInput, match="'q1' is another question"):
        compared(FIRST, [row("q1", "a", question="Who else?")])


def test_won_and_lost_are_by_recall_then_by_the_first_gold_rank_clearest_first() -> None:
    first = [row("rank", "x a b"), row("half", "a x"), row("whole", "x y"), row("lost", "a b"), row("even", "a b")]
    second = [row("rank", "a x b"), row("half", "a b"), row("whole", "a b"), row("lost", "a x"), row("even", "b a")]
    both = compared(first, second)
    assert (both.won, both.lost, both.equal) == (("whole", "half", "rank"), ("lost",), 1)
