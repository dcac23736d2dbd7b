from __future__ import annotations

import pytest

from agents.judge import DROPPED, KEPT, JudgedBy, OfflineJudge
from agents.predictor import OfflinePredictor
from tests.agents.offline.moor import BRIDGE, FIRM, ORSA, WITH_EVIDENCE, WITHOUT_EVIDENCE, WORLD, passage


@pytest.mark.parametrize(("question", "numbers"), WITH_EVIDENCE)
def test_the_passages_that_bear_on_a_question_are_kept(question: str, numbers: set[int]) -> None:
    kept = {one.number for one in WORLD if OfflineJudge().judge(question, one, "").score == KEPT}
    assert numbers <= kept


@pytest.mark.parametrize("question", ["Why do glaciers calve?", "Who?", ""])
def test_a_passage_that_holds_nothing_of_it_is_dropped(question: str) -> None:
    assert {OfflineJudge().judge(question, one, "").score for one in WORLD} == {DROPPED}


def test_one_name_or_date_is_enough() -> None:
    assert OfflineJudge().judge("Where is Orsa Tavin buried?", ORSA, "").score == KEPT
    assert OfflineJudge().judge("What was built in 1863?", BRIDGE, "").score == KEPT
    assert OfflineJudge().judge("What did the Ister flood?", ORSA, "").score == DROPPED


def test_passages_that_are_kept_keep_their_order() -> None:
    question = "When was Tavin & Loom set up?"
    assert OfflineJudge().judge(question, FIRM, "").score == OfflineJudge().judge(question, ORSA, "").score


@pytest.mark.parametrize("question", [*WITHOUT_EVIDENCE, *(question for question, _ in WITH_EVIDENCE)])
def test_scores_say_where_they_come_from_and_do_not_look_at_the_prediction(question: str) -> None:
    judgement = OfflineJudge().judge(question, BRIDGE, "Yes 1.0")
    assert judgement == OfflineJudge().judge(question, BRIDGE, "")
    assert judgement.judged_by is JudgedBy.WORDS


def test_the_predictor_quotes_the_sentence_that_holds_most_of_the_question() -> None:
    predicted = OfflinePredictor().predict("Who constructed the Moor Bridge?", BRIDGE)
    assert predicted == "It was built by Tavin & Loom in 1863."


def test_the_predictor_says_nothing_where_nothing_bears_on_the_question() -> None:
    assert OfflinePredictor().predict("Why do glaciers calve?", FIRM) == ""


def test_a_prediction_stands_on_one_line() -> None:
    wrapped = passage(1, "Moor Mill", "The Moor Mill was\nbuilt by Ada Vale.")
    assert OfflinePredictor().predict("Who built the Moor Mill?", wrapped) == "The Moor Mill was built by Ada Vale."
