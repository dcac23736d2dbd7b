"""The judge's scores, and the adaptive bar: relative to a question's own scores, and never below the floor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.judge import (
    DROPPED,
    KEPT,
    LEAST_LOGPROB,
    ChatJudge,
    Judge,
    JudgedBy,
    Judgement,
    OfflineJudge,
    adaptive_threshold,
    log_odds_of,
    passing_places,
)
from agents.predictor import OfflinePredictor
from agents.roles import DEFAULT_N, NumberedPassage
from graph.errors import MalformedReply, ModelUnavailable
from tests.agents.offline.moor import BRIDGE, FIRM, ORSA, WITH_EVIDENCE, WORLD, passage
from tests.chatting import model_on, served
from tests.scripted_server import Reply, ReplyLike, scripted

QUESTION = "In which country was the composer of Salka born?"
LUND = NumberedPassage(7, "p-lund", "Ivar Lund", "Lund was born in Aalborg, Denmark.")
SURE = {"Yes": math.log(0.8), "No": math.log(0.1), "The": math.log(0.05)}
NUMBER = (" 0.9", {" 0.9": -0.5, " 0.8": -1.5})


def judge(reply: ReplyLike) -> Judgement:
    with served(reply) as model:
        agent: Judge = ChatJudge(model)
        return agent.judge(QUESTION, LUND, "Ivar Lund was born in Denmark.")


def score_of(top: Mapping[str, float], chosen: str = "Yes") -> float:
    judgement = judge(Reply.spelt((chosen, top), NUMBER))
    assert judgement.judged_by is JudgedBy.LOGPROBS
    return judgement.score


def test_the_score_is_the_log_odds_of_yes_with_the_spellings_of_a_word_summed() -> None:
    spellings = {"Yes": math.log(0.3), " yes": math.log(0.2), "YES": math.log(0.1), "no": math.log(0.2), " No": -30.0}
    for top, chosen, score in (
        (SURE, "Yes", math.log(8)),
        ({"No": math.log(0.9), "Yes": math.log(0.1)}, "No", -math.log(9)),
        ({"Yes": math.log(0.4), "No": math.log(0.4)}, "Yes", 0.0),
        (spellings, "Yes", math.log(0.6 / 0.2)),
    ):
        assert score_of(top, chosen) == pytest.approx(score)


def test_a_word_that_is_not_listed_is_bounded_by_the_least_likely_that_is_and_a_score_is_finite() -> None:
    assert score_of({"Yes": -0.01, "The": -6.0, "It": -8.0}) == pytest.approx(8.0 - 0.01)
    assert score_of({"No": -0.01, "The": -6.0, "It": -8.0}, "No") == pytest.approx(0.01 - 8.0)
    for nothing in (-math.inf, -9999.0, -1e300):
        assert score_of({"Yes": 0.0, "No": nothing}) == -LEAST_LOGPROB
        assert score_of({"No": 0.0, "Yes": nothing}, "No") == LEAST_LOGPROB


def test_the_word_is_the_one_after_the_thinking_and_known_by_its_first_piece() -> None:
    no: tuple[str, dict[str, float]] = ("No", {"No": 0.0, "Yes": -9.0})
    before: list[list[tuple[str, dict[str, float]]]] = [
        [],
        [("<think>", {}), no, (" 0.9</", {}), ("think>", {}), ("\n\n", {})],
        [("Yes? No</think>", no[1]), (" ", {})],
    ]
    for thinking in before:
        reply = Reply.spelt(*thinking, ("Yes", SURE), NUMBER)
        assert astuple(judge(reply)) == (pytest.approx(math.log(8)), JudgedBy.LOGPROBS)
    taken_out = [("I", {}), (" say", {}), (" No", no[1]), ("\n", {}), ("Yes", SURE), NUMBER]
    reply = Reply("Yes 0.9", tokens=[*taken_out, ("<|im_end|>", {}), ("\n", {})])
    assert astuple(judge(reply)) == (pytest.approx(math.log(8)), JudgedBy.LOGPROBS)
    pieces = Reply.spelt(("Y", {"Y": math.log(0.6), "N": math.log(0.3)}), ("ES", {"ES": -0.1}), NUMBER)
    assert astuple(judge(pieces)) == (pytest.approx(math.log(2)), JudgedBy.LOGPROBS)
    assert judge(Reply.spelt(("Yes", SURE))).judged_by is JudgedBy.LOGPROBS, "the confidence may be missing"


def test_tokens_that_tell_nothing_of_the_word_leave_it_to_the_confidence() -> None:
    spelt: list[list[tuple[str, dict[str, float]]]] = [
        [("token_id:1", SURE), ("token_id:2", {})],
        [("Yes", {"Yes": -0.1}), NUMBER],
        [("Yes", {"Yes": math.nan, "No": -0.1}), NUMBER],
        [("Yes", {"Yes": -0.1, "No": math.nan}), NUMBER],
        [("\u2581Yes", {"\u2581Yes": -0.1, "\u2581No": -2.0}), NUMBER],
        [],
    ]
    for tokens in spelt:
        judgement = judge(Reply("Yes 0.9", tokens=tokens))
        assert astuple(judgement) == (pytest.approx(math.log(9)), JudgedBy.CONFIDENCE), tokens
    assert log_odds_of([("The", -0.1), ("It", -2.0)]) is None


def test_without_log_probabilities_the_stated_confidence_counts_unless_it_speaks_against_its_word() -> None:
    for reply, score in (
        ("Yes 0.9", math.log(9)),
        ("yes .75", math.log(3)),
        ("Yes 0.5", math.log(0.51 / 0.49)),
        ("No, 0.5", -math.log(0.51 / 0.49)),
        ("Yes 1", math.log(99)),
    ):
        assert astuple(judge(reply)) == (pytest.approx(score), JudgedBy.CONFIDENCE)
    for reply in ("No 0", "Yes 0.25", "No 0.49"):
        with pytest.raises(MalformedReply, match=r"below 0\.5"):
            judge(reply)


def test_anything_else_is_malformed_whatever_its_log_probabilities() -> None:
    replies: list[tuple[ReplyLike, str]] = [
        (" \n ", "empty"),
        ("<think>Yes 0.9</think>", "not Yes or No"),
        (Reply("Yes 0", finish_reason="length"), "cut at the token limit"),
        ("Yes", "no confidence"),
        ("Yes, because Lund was born there. 0.9", "not Yes or No"),
        ("Yes 1.5", "not Yes or No"),
        ("Yes 0.٩", "not Yes or No"),
        ("Yes 0.9\ud800", "broken Unicode"),
    ]
    for reply, reason in replies:
        with pytest.raises(MalformedReply, match=reason):
            judge(reply)
    for text in ("The passage", "Yes, because", "Yes 1.5", ""):
        with pytest.raises(MalformedReply):
            judge(Reply(text, tokens=[(text, SURE)]))


def test_one_passage_takes_one_request_and_another_refusal_is_final() -> None:
    with scripted({"judge": [Reply.spelt(("Yes", SURE), NUMBER)]}) as server:
        ChatJudge(model_on(server)).judge(QUESTION, LUND, "Denmark.")
    (request,) = server.requests
    assert (request.body["logprobs"], request.body["top_logprobs"], request.body["stream"]) == (True, 5, True)
    assert request.body["max_tokens"] == ChatJudge.reply_tokens
    with scripted([Reply("no", status=403)]) as server, pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        ChatJudge(model_on(server)).judge(QUESTION, LUND, "")
    assert len(server.requests) == 1


class TestWhatPasses:
    @given(st.lists(st.floats(-20, 20), min_size=2, max_size=2, unique=True), st.integers(1, 8))
    def test_a_score_exactly_on_the_bar_passes_whatever_rounding_does(self, scores: list[float], copies: int) -> None:
        """Of two scores, as often each, the lower one lies one standard deviation below the mean."""
        assert len(passing_places(scores * copies, 1.0)) == 2 * copies

    def test_by_example(self) -> None:
        """The mean is 1 and the standard deviation about 2.2, so the bar lies at about -0.1 unless said otherwise."""
        cases: list[tuple[dict[str, Any], list[int]]] = [
            ({}, [2, 0, 3]),
            ({"n": 2.0, "floor": 0.0}, [2, 0, 3]),
            ({"n": -1.5}, []),
            ({"n": -1.5, "least": 2}, [2, 0]),
            ({"n": -1.5, "least": 9, "floor": 0.0}, [2, 0, 3]),
            ({"n": 2.0, "most": 1}, [2]),
            ({"least": 3, "most": 2}, [2, 0]),
        ]
        scores = [2.0, -2.0, 4.0, 0.0]
        assert adaptive_threshold(scores).value == pytest.approx(1 - DEFAULT_N * math.sqrt(5))
        for limits, places in cases:
            assert passing_places(scores, **limits) == places, limits
        assert passing_places([], least=2) == []

    @given(st.lists(st.floats(-20, 20), min_size=1, max_size=30), st.floats(-5, 5), st.integers(0, 12))
    def test_the_best_come_first_and_ties_as_they_stood(self, scores: list[float], n: float, least: int) -> None:
        bar = adaptive_threshold(scores, n)
        assert (bar.tau, bar.sigma) == pytest.approx((np.mean(scores), np.std(scores)), abs=1e-9)
        assert bar.value == pytest.approx(np.mean(scores) - n * np.std(scores), abs=1e-8)
        places = passing_places(scores, n, least=least)
        assert places == sorted(places, key=lambda place: (-scores[place], place))
        outside = [score for place, score in enumerate(scores) if place not in places]
        assert not places or max(outside, default=-math.inf) <= scores[places[-1]]


def test_the_passages_that_bear_on_a_question_are_kept_and_those_that_hold_nothing_of_it_dropped() -> None:
    for question, numbers in WITH_EVIDENCE:
        assert numbers <= {one.number for one in WORLD if OfflineJudge().judge(question, one, "").score == KEPT}
    for question in ("Why do glaciers calve?", "Who?", ""):
        judged = {astuple(OfflineJudge().judge(question, one, "Yes 1.0")) for one in WORLD}
        assert judged == {(DROPPED, JudgedBy.WORDS)}
    for question, one, score in (
        ("Where is Orsa Tavin buried?", ORSA, KEPT),
        ("What did the Ister flood?", ORSA, DROPPED),
        ("When was Tavin & Loom set up?", FIRM, KEPT),
    ):
        assert OfflineJudge().judge(question, one, "").score == score, question


def test_the_predictor_quotes_the_sentence_that_holds_most_of_the_question_on_one_line_or_nothing() -> None:
    wrapped = passage(1, "Moor Mill", "The Moor Mill was\nbuilt by Ada Vale.")
    for question, one, prediction in (
        ("Who constructed the Moor Bridge?", BRIDGE, "It was built by Tavin & Loom in 1863."),
        ("Why do glaciers calve?", FIRM, ""),
        ("Who built the Moor Mill?", wrapped, "The Moor Mill was built by Ada Vale."),
    ):
        assert OfflinePredictor().predict(question, one) == prediction
