from __future__ import annotations

import pytest

from graph.errors import BadInput
from workflows.evaluation import (
    exact_match,
    f1_at_k,
    found_all_at_k,
    mrr,
    normalise_answer,
    passage_overlap,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    token_f1,
)

# Worked by hand: gold a and d stand at places 2 and 5 of b a c e d, gold x and y nowhere.
RANKING = ["b", "a", "c", "e", "d"]


def test_the_measures_of_one_ranking_at_each_depth() -> None:
    depths = {1: (0.0, 0.0, 0.0), 2: (1 / 2, 1 / 2, 1 / 2), 4: (1 / 2, 1 / 4, 1 / 3), 5: (1.0, 2 / 5, 4 / 7)}
    for k, (recall, precision, f1) in {**depths, 10: (1.0, 2 / 10, 1 / 3)}.items():
        assert recall_at_k(RANKING, {"a", "d"}, k) == recall
        assert precision_at_k(RANKING, {"a", "d"}, k) == precision
        assert f1_at_k(RANKING, {"a", "d"}, k) == pytest.approx(f1)
        assert found_all_at_k(RANKING, ["a", "d"], k) == (k >= 5)


def test_the_reciprocal_rank_is_that_of_the_first_gold_passage_among_the_first_places() -> None:
    for k, rank in ((1, 0.0), (2, 1 / 2), (None, 1 / 2)):
        assert reciprocal_rank(RANKING, ["d", "a"], k) == rank
        assert mrr([RANKING, ["a"]], [["a"], ["a"]], k) == pytest.approx((rank + 1) / 2)
    assert reciprocal_rank(RANKING, ["d"]) == 1 / 5
    assert reciprocal_rank(RANKING, ["x"]) == reciprocal_rank([], ["x"]) == 0.0


def test_passages_that_are_named_without_order_have_precision_and_recall() -> None:
    assert passage_overlap(["a", "x", "b"], ["a", "b", "c", "d"]) == (2 / 3, 1 / 2)
    assert passage_overlap(["a", "a"], ["a"]) == (1.0, 1.0)
    assert passage_overlap([], ["a"]) == (None, 0.0)
    assert passage_overlap(["a"], []) == (None, None)


def test_an_id_retrieved_twice_takes_both_places_and_counts_once() -> None:
    assert recall_at_k(["a", "a"], ["a", "b"], 2) == 0.5
    assert precision_at_k(["a", "a"], ["a", "b"], 2) == 0.5
    assert recall_at_k(["a", "a", "b"], ["a", "b"], 2) == 0.5
    assert recall_at_k(["a"], ["a", "a"], 1) == 1.0


def test_measures_without_gold_are_refused() -> None:
    for measure in (recall_at_k, precision_at_k, f1_at_k, found_all_at_k, reciprocal_rank):
        with pytest.raises(BadInput, match="gold"):
            measure(["a"], [], 5)
    for match in (exact_match, token_f1):
        with pytest.raises(BadInput, match="gold answer"):
            match("Paris", [])


def test_answers_are_normalised_as_squad_does() -> None:
    texts = {
        "The Eiffel Tower!": "eiffel tower",
        "  A   man, an ape;\tthe end ": "man ape end",
        "U.S.A.": "usa",
        "Theatre and anthem": "theatre and anthem",
        "Curaçao’s «Öl»": "curaçao’s «öl»",
    }
    for text, normal in texts.items():
        assert normalise_answer(text) == normal


def test_matches_worked_by_hand() -> None:
    cases: list[tuple[str, list[str], float, object]] = [
        ("the Eiffel Tower.", ["Eiffel tower"], 1.0, 1.0),
        # answer: in paris france (3), wanted: paris (1), shared 1: precision 1/3, recall 1
        ("in Paris, France", ["Paris"], 0.0, 0.5),
        ("in Paris, France", ["London", "Paris France"], 0.0, 0.8),
        # a word that stands twice is shared as often as both have it
        ("paris paris", ["Paris"], 0.0, pytest.approx(2 / 3)),
        ("", ["Paris"], 0.0, 0.0),
        ("", [""], 1.0, 1.0),
    ]
    for answer, golds, match, f1 in cases:
        assert (exact_match(answer, golds), token_f1(answer, golds)) == (match, f1), (answer, golds)
    assert exact_match("Paris", "Paris") == token_f1("Paris", "Paris") == 1.0
    assert exact_match("P", "Paris") == 0.0
