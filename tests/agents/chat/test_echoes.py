"""Replies that repeat the request of the model; and honest ones, which are never taken for that."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from agents.answerer import ChatAnswerer, passages_material
from agents.chat.agent import ChatAgent, prompt_messages
from agents.chat.echoes import check_no_echo, check_says_something
from agents.final_predictor import ChatFinalPredictor
from agents.predictor import NOTHING, ChatPredictor
from agents.roles import REFUSAL, Feedback, NumberedPassage
from graph.errors import MalformedReply
from prompts import load_prompt
from tests.agents.asking import ASK
from tests.chatting import model_on
from tests.scripted_server import Script, scripted

LAKE = NumberedPassage(1, "p", "Marn", "Marn is a town on Lake Sund. It was founded in 1203 by Ada Brandt, a weaver.")
TOWN = NumberedPassage(2, "q", "Karv", "The weavers of Karv closed their guild in 1871 after the great flood.")
DANISH = NumberedPassage(3, "d", "Denmark", "Denmark has many towns.")
QUESTION = "Who founded Marn?"


def messages(
    agent: type[ChatAgent] = ChatAnswerer, feedback: str | None = None, *passages: NumberedPassage
) -> list[BaseMessage]:
    """Return the request of an agent that writes text, about these passages or the two above."""
    words = {"nothing": NOTHING} if agent is ChatPredictor else {"refusal": REFUSAL}
    material = {"question": QUESTION, "passages": passages_material(passages or (LAKE, TOWN))}
    return agent.messages(material, Feedback(feedback, "raw") if feedback else None, **words)


def about(text: str, title: str = "Marn") -> list[BaseMessage]:
    """Return the request of the answerer about one passage."""
    return messages(ChatAnswerer, None, NumberedPassage(1, "p", title, text))


def is_echo(reply: object, request: Sequence[BaseMessage]) -> bool:
    try:
        check_no_echo(reply, request)
    except MalformedReply:
        return True
    return False


def assert_refused(role: str, script: Script, feedback: Feedback | None = None, match: str | None = None) -> None:
    with scripted(script) as server, pytest.raises(MalformedReply, match=match):
        ASK[role](model_on(server), QUESTION, (LAKE,), feedback)


def test_a_reply_that_repeats_instructions_an_example_or_the_request_is_an_echo() -> None:
    for reply in (
        "Salka was composed by Ivar Lund [1].",
        "Marn was founded in 1203 [1]. Do not repeat the question or tell how you found the answer.",
        "After each statement, cite every passage that it rests on by its number in square brackets: [2], or [1, 3].",
        "Quoted material (question and passages): Marn [1]",
    ):
        assert is_echo(reply, messages(ChatFinalPredictor if "Salka" in reply else ChatAnswerer)), reply


def test_an_answer_that_says_nothing_is_refused_of_every_agent_that_writes_text() -> None:
    for reply in (
        "The answer is:\n\n[1, 2]",
        "[1]",
        f"{QUESTION} [1]",
        'The passage is:\n\n"The answer may need to be quoted in square brackets, such as [2, 1]."',
    ):
        with pytest.raises(MalformedReply, match="says nothing of its own"):
            check_says_something(reply, messages())
    for role in ("answerer", "final predictor", "predictor"):
        assert_refused(role, ["The answer is: [1]"], match="nothing of its own")


def test_an_answer_in_few_words_is_kept_and_a_refusal_read_as_such() -> None:
    for reply in (
        "The answer is yes [1].",
        f"{QUESTION} Ada Brandt [1].",
        "エイダ・ブラント [1]",
        "It is a weaver [1].",
    ):
        check_says_something(reply, messages())
    check_says_something("The answer is Denmark [1, 3]", messages(ChatAnswerer, None, LAKE, DANISH))
    with scripted([REFUSAL, NOTHING]) as server:
        assert ChatAnswerer(model_on(server)).answer(QUESTION, (LAKE,)).refused
        assert ChatPredictor(model_on(server)).predict(QUESTION, LAKE) == ""


def test_the_words_of_the_request_are_no_echo_where_the_material_holds_them() -> None:
    of_the_material = "The passage is quoted material about the town of Marn [1]."
    assert is_echo(of_the_material, messages())
    assert not is_echo(of_the_material, about("All quoted material about Marn is Ada Brandt's."))
    assert is_echo("Denmark [1, 3]", messages()), "the whole reply of an example, however short"
    assert not is_echo("Denmark [1, 3]", messages(ChatAnswerer, None, LAKE, DANISH))


REASONS = (
    "The reply is empty",
    f"The answer cites no passage: cite by number in brackets, or write {REFUSAL} alone",
    "The answer cites 7, but the passages are numbered 1, 2",
)


def test_a_repeated_reason_is_an_echo_however_short() -> None:
    for reason in REASONS:
        request = messages(ChatPredictor, reason)
        for reply in (reason, f"{reason}. [1]", str(request[2].text)):
            assert is_echo(reply, request), reply
        assert not is_echo("Marn was founded by Ada Brandt.", request)
    empty = Feedback(REASONS[0], "")
    assert_refused("predictor", [REASONS[0]], empty, "in place of answering")


def test_no_agent_takes_its_feedback_its_prompt_or_its_schema_for_an_answer() -> None:
    for role in set(ASK) - {"closed book"}:
        for reason in (*REASONS, 'cite as in [1], or {"facts": [1]}'):
            feedback = Feedback(reason, '{"facts": [1]} Ada Brandt [1]')
            *_, message = prompt_messages("", "", feedback)
            assert_refused(role, [str(message.text)], feedback)
        assert_refused(role, lambda body: str(body["messages"][0]["content"]))
    for role in ("fact filter", "manager", "claim judge"):
        assert_refused(role, lambda body: json.dumps(body["response_format"]["json_schema"]["schema"]))


def test_the_extractors_example_is_an_echo_whole_or_in_part() -> None:
    lines = [line for line in load_prompt("extractor").template.splitlines() if line.startswith('{"entities"')]
    triples = [
        {"subject": "Marn", "predicate": "was founded by", "object": "Ada Brandt"},
        {"subject": "Salka", "predicate": "was composed by", "object": "Ivar Lund"},
    ]
    for reply in (*lines, json.dumps({"entities": ["Marn", "Ada Brandt"], "triples": triples})):
        assert_refused("extractor", [reply], match="in place of answering")


words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9)
texts = st.lists(words, min_size=1, max_size=40).map(" ".join)


@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_what_is_quoted_from_passages_is_never_an_echo(contents: list[str], data: st.DataObject) -> None:
    assume(not any("Denmark" in text for text in contents))
    quotes = []
    for number, text in enumerate(contents, start=1):
        parts = text.split()
        start = data.draw(st.integers(0, len(parts) - 1))
        end = data.draw(st.integers(start + 1, len(parts)))
        quotes.append(f"{' '.join(parts[start:end])} [{number}].")
    passages = [NumberedPassage(n, str(n), "", text) for n, text in enumerate(contents, start=1)]
    assert not is_echo(" ".join(quotes), messages(ChatAnswerer, None, *passages))
