"""Two systems, question by question: what differs, on which questions, and the page that tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import BadInput
from tests.cases import refuse_warnings
from tests.workflows.evaluation.compared_rows import TEMPORAL, UNIFORM, beta, row
from workflows.evaluation.compare import (
    METRICS,
    Comparison,
    Difference,
    check_metrics,
    compare_systems,
    dominant_relation,
    pair_rows,
)
from workflows.evaluation.report import comparison_page, verdict
from workflows.output.markdown import code, plain

# Of gold a and b: the first system finds one in q1, both in q2, none in q3; the second both, one, and one at rank 6.
FIRST = [row("q1", "a x y"), row("q2", "x a b"), row("q3", "x y z")]
SECOND = [row("q1", "a b y"), row("q2", "x b y"), row("q3", "x y z u v a")]

rankings = st.lists(st.permutations(["a", "b", "x", "y", "z", "u", "v"]), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def no_warning_is_raised() -> None:
    refuse_warnings()


def compared(a: list[dict[str, Any]], b: list[dict[str, Any]], **options: Any) -> Comparison:
    return compare_systems(a, b, names=("run:a", "run:b"), **options)


def of(comparison: Comparison, metric: str) -> Difference:
    return next(each for each in comparison.metrics if each.metric == metric)


def test_differences_are_those_computed_by_hand() -> None:
    found = of(compared(FIRST, SECOND), "recall@5")
    assert (found.n, found.a, found.b, found.difference) == (3, 0.5, 0.5, 0.0)
    assert (found.low, found.high) == (-0.5, 0.5)
    assert (found.better, found.worse, found.p) == (1, 1, 1.0)
    deeper = of(compared(FIRST, SECOND), "recall@10")
    assert [deeper.a, deeper.b] == pytest.approx([0.5, 2 / 3])
    first_gold = of(compared(FIRST, SECOND), "mrr")
    assert [first_gold.a, first_gold.b] == pytest.approx([(1 + 1 / 2) / 3, (1 + 1 / 2 + 1 / 6) / 3])


def test_metrics_of_0_and_1_are_tested_by_mcnemar_and_the_others_by_exchange() -> None:
    first = [row(f"q{n}", "a x", em=0.0, f1=0.5) for n in range(6)]
    second = [row(f"q{n}", "a b", em=1.0, f1=1.0) for n in range(6)]
    found = compared(first, second)
    tests = {each.metric: each.test for each in found.metrics}
    assert {metric for metric, test in tests.items() if test == "McNemar"} == {
        "em",
        "all-gold@2",
        "all-gold@5",
        "all-gold@10",
    }
    assert of(found, "em").p == of(found, "all-gold@5").p == 2 / 64
    assert of(found, "f1").p == 2 / 64


def test_p_is_corrected_over_the_metrics_compared_alone() -> None:
    first = [row(f"q{n}", "a x") for n in range(6)]
    second = [row(f"q{n}", "a b") for n in range(6)]
    assert of(compared(first, second, metrics=["recall@5"]), "recall@5").p_holm == 2 / 64
    assert of(compared(first, second, metrics=["recall@2", "recall@5"]), "recall@5").p_holm == 4 / 64
    # recall@1 and MRR do not differ, EM and F1 have nothing to judge: of nine tests seven are this small.
    assert of(compared(first, second), "recall@5").p_holm == pytest.approx(9 * 2 / 64)


def test_what_has_nothing_to_judge_is_no_number_rather_than_0() -> None:
    found = of(compared(FIRST, SECOND), "em")
    assert (found.n, found.difference, found.low, found.p, found.p_holm, found.test) == (0, None, None, None, None, "")


def test_answers_are_compared_where_both_have_one() -> None:
    first = [row("q1", "a", f1=0.2), row("q2", "a", f1=None), row("q3", "a", f1=0.4)]
    second = [row("q1", "a", f1=0.6), row("q2", "a", f1=0.9), row("q3", "a", f1=0.4)]
    found = of(compared(first, second), "f1")
    assert found.n == 2
    assert found.difference == pytest.approx(0.2)


def test_questions_without_gold_take_no_part_in_retrieval() -> None:
    found = compared([*FIRST, row("q4", "x", gold="")], [*SECOND, row("q4", "y", gold="")])
    assert found.paired == 4
    assert of(found, "recall@5").n == 3
    assert len(found.won) + len(found.lost) + found.equal == 3


def test_a_question_that_failed_counts_as_nothing_found() -> None:
    failed = row("q1", "", failed={"kind": "MaraError", "message": "no"})
    found = compared([row("q1", "a b")], [failed])
    assert (of(found, "recall@5").difference, found.failed_a, found.failed_b) == (-1.0, 0, 1)
    assert found.lost[0].b.failed


def test_one_question_has_a_difference_but_no_interval() -> None:
    found = of(compared(FIRST[:1], SECOND[:1]), "recall@5")
    assert (found.difference, found.low, found.high, found.p) == (0.5, None, None, 1.0)


def test_the_same_rows_do_not_differ() -> None:
    found = compared(FIRST, FIRST)
    assert all(each.difference in (0.0, None) and each.p in (1.0, None) for each in found.metrics)
    assert (found.won, found.lost, found.equal) == ((), (), 3)


@settings(max_examples=25, deadline=None)
@given(rankings, st.randoms(use_true_random=False))
def test_exchanging_the_systems_turns_every_difference_around(orders: list[list[str]], random: Any) -> None:
    first = [row(f"q{n}", " ".join(order)) for n, order in enumerate(orders)]
    second = [row(f"q{n}", " ".join(random.sample(order, len(order)))) for n, order in enumerate(orders)]
    there = compared(first, second, metrics=["recall@2", "mrr"])
    back = compared(second, first, metrics=["recall@2", "mrr"])
    for one, other in zip(there.metrics, back.metrics, strict=True):
        assert one.difference == pytest.approx(-(other.difference or 0.0))
        assert (one.better, one.worse, one.p) == (other.worse, other.better, other.p)
        if one.low is not None and other.high is not None:
            assert one.low == pytest.approx(-other.high)
    assert [each.id for each in there.won] == [each.id for each in back.lost]
    assert there.equal == back.equal


def test_questions_are_paired_by_id_whatever_their_order_and_the_others_are_told() -> None:
    first, second = [*FIRST, row("q8", "a")], [row("q9", "a"), *SECOND[::-1]]
    assert [(a["id"], b["id"]) for a, b in pair_rows(first, second)] == [("q1", "q1"), ("q2", "q2"), ("q3", "q3")]
    found = compared(first, second)
    assert (found.only_a, found.only_b) == (("q8",), ("q9",))


def test_gold_that_differs_between_runs_is_counted_and_each_row_judged_by_its_own() -> None:
    found = compared([row("q1", "a b")], [row("q1", "c d", gold="c d")])
    assert (found.other_gold, of(found, "recall@5").difference) == (1, 0.0)


def test_runs_without_a_common_question_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match="no question in common"):
        compared(FIRST, [row("q7", "a")])


def test_an_id_that_is_another_question_is_refused() -> None:
    with pytest.raises(BadInput, match="'q1' is another question"):
        compared(FIRST, [row("q1", "a", question="Who else?")])


def test_citations_and_claims_are_compared_where_both_systems_have_them() -> None:
    claims = {"claims": 4, "supported": 3, "quoted": 0, "unsupported": 1, "irrelevant": 0, "checked_by": "model"}
    checked: dict[str, Any] = {
        "citation_recall": 1.0,
        "citation_precision": 0.5,
        "gold_citation_recall": 0.5,
        "claims": claims,
    }
    second = [row("q1", "a b", **checked), row("q2", "a b", citation_recall=0.0)]
    first = [row("q1", "a b", citation_recall=0.5, gold_citation_recall=1.0), row("q2", "a b")]
    found = compared(first, second)
    assert (of(found, "citation-recall").n, of(found, "citation-recall").difference) == (1, 0.5)
    assert of(found, "gold-cited").difference == -0.5
    assert of(found, "cited-are-gold").n == of(found, "claim-support").n == 0
    assert of(compared(second, second), "claim-support").b == 0.75


def test_rows_of_an_earlier_version_have_no_such_figures() -> None:
    later = {"citation_recall", "citation_precision", "gold_citation_recall", "gold_citation_precision", "claims"}
    old = [{key: value for key, value in row("q1", "a b").items() if key not in later}]
    assert of(compared(old, [row("q1", "a b", citation_recall=1.0)]), "citation-recall").n == 0


def test_metrics_are_named_or_all() -> None:
    assert check_metrics([]) == list(METRICS)
    assert check_metrics(["mrr", "recall@5"]) == ["recall@5", "mrr"]
    with pytest.raises(BadInput, match=r"no metric 'recall@3'.*recall@20"):
        check_metrics(["recall@3"])


@pytest.mark.parametrize(
    ("rows", "relation"),
    [
        ([row("q", "a", relation_factors=beta(TEMPORAL))], "TEMPORAL"),
        ([row("q", "a"), row("q", "a", relation_factors=beta(TEMPORAL))], "TEMPORAL"),
        ([row("q", "a", relation_factors=beta(UNIFORM)), row("q", "a", relation_factors=beta(TEMPORAL))], "TEMPORAL"),
        (
            [
                row("q", "a", system="mara+random-beta", relation_factors=beta({"SPATIAL": 0.7, "TEMPORAL": 0.3})),
                row("q", "a", relation_factors=beta(TEMPORAL)),
            ],
            "TEMPORAL",
        ),
        ([row("q", "a", relation_factors=beta({"SPATIAL": 0.4, "TEMPORAL": 0.4, "CAUSALITY": 0.2}))], "none"),
        ([row("q", "a")], "none"),
    ],
)
def test_the_dominant_relation_is_above_all_others_in_the_first_beta_that_prefers_one(
    rows: list[dict[str, Any]], relation: str
) -> None:
    assert dominant_relation(*rows) == relation


def test_differences_are_told_by_type_hops_and_dominant_relation() -> None:
    kinds: list[dict[str, Any]] = [
        {"type": "bridge", "hops": 2},
        {"type": "comparison", "hops": 10},
        {"type": "", "hops": None},
    ]
    first = [each | kind for each, kind in zip(FIRST, kinds, strict=True)]
    second = [each | kind for each, kind in zip(SECOND, kinds, strict=True)]
    second[0]["relation_factors"] = beta(TEMPORAL)
    found = compared(first, second, metrics=["recall@5"]).groups
    assert list(found["type"]) == ["bridge", "comparison", "untyped"]
    assert list(found["hops"]) == ["2", "10", "unknown"]
    assert {group: each[0].n for group, each in found["relation"].items()} == {"TEMPORAL": 1, "none": 2}
    assert found["type"]["comparison"][0].difference == -0.5
    assert found["type"]["comparison"][0].p is None


def test_won_and_lost_are_by_recall_then_by_the_first_gold_rank_clearest_first() -> None:
    first = [row("rank", "x a b"), row("half", "a x"), row("whole", "x y"), row("lost", "a b"), row("even", "a b")]
    second = [row("rank", "a x b"), row("half", "a b"), row("whole", "a b"), row("lost", "a x"), row("even", "b a")]
    found = compared(first, second)
    assert [each.id for each in found.won] == ["whole", "half", "rank"]
    assert [each.id for each in found.lost] == ["lost"]
    assert found.equal == 1
    assert found.won[1].a.passages == ("a", "x")
    assert (found.won[1].a.gold, found.won[1].a.missed) == ((True, False), ("b",))


def test_json_is_strict_and_rounded() -> None:
    body = json.dumps(compared(FIRST, SECOND).to_json(), allow_nan=False)
    assert "0.333333333" in body or "0.666666667" in body
    assert "0.66666666666" not in body


# The page.


def test_the_page_shows_rankings_side_by_side_with_gold_marked() -> None:
    page = comparison_page([compared(FIRST, SECOND)])
    assert "| 1 | `a` \\* | `a` \\* |" in page
    assert "| 2 | `x` | `b` \\* |" in page
    assert "- A has gold at 1; not among its 3: `b`" in page
    assert "## Questions lost by B: 1" in page


def test_the_page_shows_some_questions_and_counts_the_rest() -> None:
    first = [row(f"q{n}", "x") for n in range(7)]
    second = [row(f"q{n}", "a") for n in range(7)]
    page = comparison_page([compared(first, second)], shown=2)
    assert page.count("What is q") == 2
    assert "And 5 more" in page


def test_the_page_tells_what_was_left_out_or_set_otherwise() -> None:
    found = compared(
        [*FIRST, row("q8", "a")],
        [row("q1", "", failed={"kind": "X", "message": "y"}), *SECOND[1:]],
        settings=[("walk.damping", 0.5, 0.7)],
    )
    page = comparison_page([found])
    assert "left out, since A alone was asked: 1" in page
    assert "B failed on 1 questions" in page
    assert "| `walk.damping` | `0.5` | `0.7` |" in page
    assert "By question type: all questions are `bridge`." in page


def test_groups_of_few_questions_are_given_without_an_interval() -> None:
    first = [row(f"q{n}", "x", type="many" if n else "one") for n in range(11)]
    second = [row(f"q{n}", "a", type="many" if n else "one") for n in range(11)]
    page = comparison_page([compared(first, second)])
    assert "| many | 10 | 0.000, 0.500, +0.500 [+0.500, +0.500] |" in page
    assert "| one | 1 | 0.000, 0.500, +0.500 |" in page


def test_text_of_questions_and_passages_stays_in_its_place() -> None:
    wild = row("q|1`", "", question="# Is *this* | a\n\n| table `x` <b>?</b>\u202e", type="a|b")
    found = compared([wild], [{**wild, "retrieved_ids": ["a", "p`|`q"]}])
    page = comparison_page([found])
    assert "\u202e" not in page
    assert r"### `` q\|1` ``: \# Is \*this\* \| a \| table \`x\` \<b\>?\</b\>" in page
    assert r"| 2 | – | `` p`\|`q `` |" in page


def test_code_and_text_are_cut_and_never_empty() -> None:
    assert code("") == "–"
    assert code("a``b") == "``` a``b ```"
    assert plain("x" * 400).endswith("x…")
    assert len(code("x" * 400)) == 82


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("x", "a b", "B is better on recall@5: +1.000"),
        ("a b", "x", "B is worse on recall@5: -1.000"),
        ("a", "b", "12 questions cannot tell A and B apart on recall@5: +0.000"),
    ],
)
def test_the_verdict_says_no_more_than_the_interval_and_p(first: str, second: str, says: str) -> None:
    found = compared([row(f"q{n}", first) for n in range(12)], [row(f"q{n}", second) for n in range(12)])
    assert verdict(found).startswith(says)


def test_the_verdict_says_where_a_difference_does_not_stand_after_correction() -> None:
    found = compared([row(f"q{n}", "x") for n in range(6)], [row(f"q{n}", "a b") for n in range(6)])
    assert verdict(found).startswith("6 questions hint at a difference on recall@5 that does not stand: +1.000")


def test_the_verdict_on_too_few_questions_is_that_they_are_too_few() -> None:
    assert "1 questions are too few" in verdict(compared([row("q", "x")], [row("q", "a b")], metrics=["recall@5"]))
