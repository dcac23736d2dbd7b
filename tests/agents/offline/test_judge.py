from __future__ import annotations

import math

import pytest

from agents.offline.judge import OfflineJudge
from agents.offline.predictor import OfflinePredictor
from agents.roles import JudgedBy
from tests.agents.offline.moor import ANSWERABLE, BRIDGE, FIRM, ORSA, UNANSWERABLE, WORLD


@pytest.mark.parametrize(("question", "numbers"), ANSWERABLE)
def test_the_passages_that_answer_are_over_the_floor(question: str, numbers: set[int]) -> None:
    scores = {one.number: OfflineJudge().judge(question, one, "").score for one in WORLD}
    assert min(scores[number] for number in numbers) > 0


@pytest.mark.parametrize("question", [one for one in UNANSWERABLE if "whom" not in one])
def test_no_passage_is_over_the_floor_where_none_answers(question: str) -> None:
    assert max(OfflineJudge().judge(question, one, "").score for one in WORLD) < 0


def test_another_passage_scores_less() -> None:
    question = "When was Tavin & Loom established?"
    assert OfflineJudge().judge(question, FIRM, "").score > OfflineJudge().judge(question, ORSA, "").score


@pytest.mark.parametrize("question", [*UNANSWERABLE, *(question for question, _ in ANSWERABLE)])
def test_scores_are_finite_and_say_where_they_come_from(question: str) -> None:
    judgement = OfflineJudge().judge(question, BRIDGE, "Yes 1.0")
    assert math.isfinite(judgement.score)
    assert judgement.judged_by is JudgedBy.WORDS


def test_the_predictor_quotes_the_sentence_that_answers() -> None:
    predicted = OfflinePredictor().predict("Who constructed the Moor Bridge?", BRIDGE)
    assert predicted == "It was built by Tavin & Loom in 1863."


def test_the_predictor_says_nothing_where_nothing_answers() -> None:
    assert OfflinePredictor().predict("Who painted the Moor Bridge?", FIRM) == ""
