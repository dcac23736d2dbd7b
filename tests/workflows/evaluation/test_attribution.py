"""The worth of citations and claims: ALCE's figures by hand, and those of a row and a run."""

from __future__ import annotations

from typing import Any

import pytest

from agents.answers.citations import MARK
from tests.workflows.evaluation.compared_rows import row
from workflows.evaluation.attribution import (
    attribution_figures,
    attribution_of,
    checking_figures,
    checking_of,
    citation_quality,
    unattributed,
)

NISSAN = "Nissan\nNissan Motor was founded in Yokohama in 1933."
LEAF = "Nissan Leaf\nThe Leaf is an electric car that Nissan has built since 2010."
BEES = "Bees\nBees make honey."
PASSAGES = {3: NISSAN, 1: LEAF, 12: BEES}


def test_citation_recall_and_precision_are_those_of_alce() -> None:
    cases = [
        ("Nissan was founded in 1933 [3].", 1.0, 1.0),
        ("Nissan was founded in 1933 [1].", 0.0, 0.0),
        ("Nissan was founded in 1933 [3]. It makes honey.", 0.5, 1.0),
        # The bees are not needed, and say nothing of it; the Leaf alone would not do either.
        ("Nissan was founded in 1933 [3][12].", 1.0, 0.5),
        # Both are needed: neither holds the sentence by itself.
        ("Nissan was founded in 1933 and has built the electric Leaf since 2010 [3, 1, 12].", 1.0, 2 / 3),
        # No citation of a sentence that is not supported is of use.
        ("Nissan was founded in 1999 [3][1]. Bees make honey [12].", 0.5, 1 / 3),
        (f"Nissan was founded in 1933 [3]. It was dear [3] {MARK}.", 0.5, 0.5),
    ]
    for answer, recall, precision in cases:
        quality = citation_quality(answer, PASSAGES)
        assert quality == pytest.approx((recall, precision)), answer
    twice = {1: NISSAN, 2: NISSAN}
    assert citation_quality("Nissan was founded in 1933 [1][2].", twice) == (1.0, 1.0)
    assert [citation_quality(answer, PASSAGES) for answer in ("", "[3]")] == [None, None]


def result(**changes: Any) -> dict[str, Any]:
    """A result in which passages 1 and 3 were kept of three, and 4 was found by a follow-up question."""
    passages = [
        {"number": 1, "id": "leaf", "title": "Nissan Leaf", "text": LEAF.split("\n")[1]},
        {"number": 2, "id": "bees", "title": "Bees", "text": "Bees make honey."},
        {"number": 3, "id": "nissan", "title": "Nissan", "text": NISSAN.split("\n")[1]},
        {"number": 4, "id": "honda", "title": "Honda", "text": "Honda was founded in 1948.", "follow_up": 1},
    ]
    marks = [{"number": number, "passage_id": passages[number - 1]["id"]} for number in (3, 4)]
    answered = {"answer": "Nissan was founded in 1933 [3]. Honda was founded in 1948 [4].", "refused": False}
    return {"passages": passages, "citations": marks, **answered, **changes}


class TestRow:
    def test_citations_are_held_against_the_sentences_and_against_the_gold(self) -> None:
        figures = attribution_of(result(), ["nissan", "leaf"])
        assert [*figures.values()] == [1.0, 1.0, 0.5, 0.5]

    def test_figures_that_cannot_be_measured_are_none(self) -> None:
        without_gold = attribution_of(result(), [])
        assert [*without_gold.values()] == [1.0, 1.0, None, None]
        refusal = result(answer="The passages do not hold the answer.", refused=True, citations=[])
        assert [*attribution_of(refusal, ["nissan"]).values()] == [None, None, 0.0, None]
        assert set(unattributed(["nissan"], failed=False).values()) == {None}
        assert unattributed(["nissan"], failed=True)["gold_citation_recall"] == 0.0
        assert unattributed([], failed=True)["gold_citation_recall"] is None
        assert unattributed([], failed=True).keys() == without_gold.keys()

    def test_judging_and_checking_are_counted(self) -> None:
        verdicts = ("supported", "supported", "quoted", "unsupported", "irrelevant")
        checked = result(
            **{"judge_outcome": "kept", "written_from": [3, 1, 4], "usage": {"calls": 43}},
            **{"claims": [{"verdict": verdict} for verdict in verdicts], "claims_checked_by": "offline"},
            **{"coverage": "PARTIALLY ANSWERED", "follow_ups": [{"outcome": "found"}, {"outcome": "nothing found"}]},
        )
        row = checking_of(checked)
        assert (row["written_from"], row["model_calls"]) == (["nissan", "leaf", "honda"], 43)
        counts = {"claims": 5, "supported": 2, "quoted": 1, "unsupported": 1, "irrelevant": 1}
        assert row["claims"] == {**counts, "checked_by": "offline"}
        assert row["follow_ups"] == ["found", "nothing found"]


class TestFigures:
    def test_citation_figures_are_means_over_the_questions_that_have_one(self) -> None:
        rows = [
            row("whole", "a", citation_recall=1.0, citation_precision=0.5, gold_citation_recall=1.0),
            row("half", "a", citation_recall=0.5, citation_precision=1.0, gold_citation_precision=0.25),
            row("refused", "a", gold_citation_recall=0.0),
        ]
        assert [*attribution_figures(rows).values()] == pytest.approx([0.75, 0.75, 0.5, 0.25])

    def test_claims_are_counted_over_all_answers_and_passages_question_by_question(self) -> None:
        def claims(supported: int, unsupported: int, irrelevant: int) -> dict[str, Any]:
            counts = {"supported": supported, "quoted": 0, "unsupported": unsupported, "irrelevant": irrelevant}
            return {"claims": sum(counts.values()), **counts, "checked_by": "model"}

        rows = [
            row("long", "a", "a b", claims=claims(5, 1, 0), coverage="FULLY ANSWERED", written_from=["a", "x"]),
            row("short", "a", "a", claims=claims(1, 0, 1), coverage="PARTIALLY ANSWERED", follow_ups=["found"] * 2),
            row("none", "a", "a b", judge_outcome="nothing supports", coverage="NOT ANSWERED", written_from=[]),
        ]
        rows[0] |= {"judge_outcome": "kept", "model_calls": 44}
        rows[1] |= {"judge_outcome": "kept", "model_calls": 40}
        figures = checking_figures(rows)
        assert figures["claim_support_rate"] == pytest.approx(6 / 8)
        assert figures["claims"] == {"claims": 8, "supported": 6, "quoted": 0, "unsupported": 1, "irrelevant": 1}
        assert figures["coverage"] == {"FULLY ANSWERED": 1, "NOT ANSWERED": 1, "PARTIALLY ANSWERED": 1}
        assert figures["judge_outcomes"] == {"kept": 2, "nothing supports": 1}
        assert figures["written_from"] == {"passages": 1.0, "precision": 0.5, "recall": 0.25}
        assert figures["follow_ups"] == {"found": 2}
        assert figures["model_calls"] == 42
