from __future__ import annotations

import math

import pytest

from agents.offline.judge import OfflineJudge
from agents.offline.predictor import OfflinePredictor
from agents.roles import JudgedBy
from tests.agents.offline.moor import ANSWERABLE, BRIDGE, FIRM, ORSA, UNANSWERABLE, WORLD, passage


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


def test_the_predictor_answers_each_part_of_a_question() -> None:
    predicted = OfflinePredictor().predict("When was Tavin & Loom founded and how many men had Tavin & Loom?", FIRM)
    assert predicted == "Tavin & Loom was a firm of bridge builders, set up in 1852 by Orsa Tavin. It had 90 men."


def test_a_prediction_stands_on_one_line() -> None:
    wrapped = passage(1, "Moor Mill", "The Moor Mill was\nbuilt by Ada Vale.")
    assert OfflinePredictor().predict("Who built the Moor Mill?", wrapped) == "The Moor Mill was built by Ada Vale."


def test_when_it_was_founded_does_not_tell_who_founded_it() -> None:
    nissan = passage(1, "Nissan", "Nissan (日産自動車) is a car maker. Nissan was founded in 1933.")
    assert OfflineJudge().judge("Who founded Nissan?", nissan, "").score < 0
    assert OfflineJudge().judge("When was Nissan founded?", nissan, "").score > 0
