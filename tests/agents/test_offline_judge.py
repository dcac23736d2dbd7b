from __future__ import annotations

from agents.judge import DROPPED, KEPT, JudgedBy, OfflineJudge
from agents.predictor import OfflinePredictor
from tests.agents.offline.moor import BRIDGE, FIRM, ORSA, WITH_EVIDENCE, WITHOUT_EVIDENCE, WORLD, passage


def test_the_passages_that_bear_on_a_question_are_kept_and_those_that_hold_nothing_of_it_dropped() -> None:
    for question, numbers in WITH_EVIDENCE:
        assert numbers <= {one.number for one in WORLD if OfflineJudge().judge(question, one, "").score == KEPT}
    for question in ("Why do glaciers calve?", "Who?", ""):
        assert {OfflineJudge().judge(question, one, "").score for one in WORLD} == {DROPPED}
    for question, one, score in (
        ("Where is Orsa Tavin buried?", ORSA, KEPT),
        ("What was built in 1863?", BRIDGE, KEPT),
        ("What did the Ister flood?", ORSA, DROPPED),
        ("When was Tavin & Loom set up?", FIRM, KEPT),
        ("When was Tavin & Loom set up?", ORSA, KEPT),
    ):
        assert OfflineJudge().judge(question, one, "").score == score, question


def test_scores_say_where_they_come_from_and_do_not_look_at_the_prediction() -> None:
    for question in (*WITHOUT_EVIDENCE, *(question for question, _ in WITH_EVIDENCE)):
        judgement = OfflineJudge().judge(question, BRIDGE, "Yes 1.0")
        assert judgement == OfflineJudge().judge(question, BRIDGE, "")
        assert judgement.judged_by is JudgedBy.WORDS


def test_the_predictor_quotes_the_sentence_that_holds_most_of_the_question_on_one_line_or_nothing() -> None:
    wrapped = passage(1, "Moor Mill", "The Moor Mill was\nbuilt by Ada Vale.")
    for question, one, prediction in (
        ("Who constructed the Moor Bridge?", BRIDGE, "It was built by Tavin & Loom in 1863."),
        ("Why do glaciers calve?", FIRM, ""),
        ("Who built the Moor Mill?", wrapped, "The Moor Mill was built by Ada Vale."),
    ):
        assert OfflinePredictor().predict(question, one) == prediction
