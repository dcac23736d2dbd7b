"""The closed book: a question alone, and an answer without citations."""

from __future__ import annotations

import pytest

from agents.answerer import NOT_KNOWN, ClosedBookAnswerer
from agents.roles import Answer, NumberedPassage
from graph.errors import MalformedReply
from tests.chatting import model_on
from tests.scripted_server import scripted

QUESTION = "Into which lake does the Velm flow?"


def answered(reply: str) -> Answer:
    with scripted([reply]) as server:
        return ClosedBookAnswerer(model_on(server)).answer(QUESTION, [])


def test_the_model_is_shown_no_passage_whatever_is_given() -> None:
    with scripted(["Lake Sund"]) as server:
        ClosedBookAnswerer(model_on(server)).answer(QUESTION, [NumberedPassage(1, "velm", "Velm", "It flows there.")])
        (request,) = server.requests_of("closed book")
        assert "It flows there" not in str(request.body)
        assert QUESTION in request.text_of(1)


def test_a_citation_would_cite_nothing_and_is_removed() -> None:
    assert answered("Lake Sund [1].") == Answer("Lake Sund.", "Lake Sund.", ())


@pytest.mark.parametrize("reply", [NOT_KNOWN, "not known.", f"- **{NOT_KNOWN}**"])
def test_what_it_does_not_know_is_a_refusal(reply: str) -> None:
    assert answered(reply) == Answer(NOT_KNOWN, NOT_KNOWN, (), refused=True)


@pytest.mark.parametrize("reply", ["", "[1]", "<think>Which lake?</think>"])
def test_a_reply_without_words_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedReply):
        answered(reply)
