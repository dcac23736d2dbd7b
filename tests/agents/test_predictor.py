from __future__ import annotations

import json

import pytest

from agents.predictor import NOTHING, ChatPredictor, Predictor
from agents.roles import NumberedPassage
from graph.errors import MalformedReply, TransportFault
from tests.chatting import model_on, served
from tests.scripted_server import Fault, Reply, ReplyLike, scripted

QUESTION = "In which country was the composer of Salka born?"
LUND = NumberedPassage(7, "p-lund", "Ivar Lund", "Lund was born in Aalborg, Denmark.")


def predict(reply: ReplyLike) -> str:
    with served(reply) as model:
        predictor: Predictor = ChatPredictor(model)
        return predictor.predict(QUESTION, LUND)


def test_a_prediction_is_the_reply_without_its_thinking_and_empty_where_a_line_says_so() -> None:
    for reply, prediction in (
        ("Ivar Lund was born in Denmark.", "Ivar Lund was born in Denmark."),
        ("<think>NOT IN THE PASSAGE?</think>\nDenmark.", "Denmark."),
        ("It is not in the passage who composed it.", "It is not in the passage who composed it."),
        ("not in the passage.", ""),
        (f"{NOTHING} [7].", ""),
        (f"{NOTHING}\n\nThe passage is about another composer.", ""),
        (f"The passage is about another composer.\n{NOTHING}", ""),
    ):
        assert predict(reply) == prediction


def test_a_reply_of_no_use_is_malformed_and_a_broken_connection_is_not() -> None:
    replies: list[tuple[ReplyLike, str]] = [
        (" \n", "empty"),
        ("<think>Denmark", "never ends"),
        (Reply("Ivar Lund was", finish_reason="length"), "cut at the token limit"),
    ]
    for reply, reason in replies:
        with pytest.raises(MalformedReply, match=reason):
            predict(reply)
    with pytest.raises(TransportFault):
        predict(Reply("Denmark", fault=Fault.RESET))


def test_the_request_holds_one_passage_without_the_end_of_an_endless_one() -> None:
    with scripted([NOTHING]) as server:
        for text in (LUND.text, "word " * 10_000):
            ChatPredictor(model_on(server)).predict(QUESTION, NumberedPassage(7, "p", "Lund", text))
    short, long = (json.loads(request.text_of(1).splitlines()[2]) for request in server.requests)
    assert short == {"question": QUESTION, "title": "Lund", "text": LUND.text}
    assert len(long["title"] + long["text"]) == 12_000
    assert NOTHING in server.requests[0].text_of(0)
