"""Replies that repeat what the model was told; and honest ones, which are never taken for that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from agents.answerer import ChatAnswerer, passages_material
from agents.answers.claims import Claim
from agents.chat.agent import ChatAgent, prompt_messages
from agents.chat.echoes import RUN, check_no_echo, check_says_something
from agents.chat.model import ChatModel
from agents.claim_judge import ChatClaimJudge
from agents.extractor import ChatExtractor
from agents.fact_filter import ChatFactFilter
from agents.final_predictor import ChatFinalPredictor
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.predictor import NOTHING, ChatPredictor
from agents.roles import REFUSAL, Feedback, NumberedPassage
from graph.errors import MalformedReply
from graph.schema import Fact, Passage, RelationType, ScoredFact
from graph.sentences import sentence_spans
from graph.text import tokens
from prompts import load_prompt
from tests.chatting import model_on
from tests.scripted_server import scripted

LAKE = NumberedPassage(1, "p", "Marn", "Marn is a town on Lake Sund. It was founded in 1203 by Ada Brandt, a weaver.")
TOWN = NumberedPassage(2, "q", "Karv", "The weavers of Karv closed their guild in 1871 after the great flood.")
QUESTION = "Who founded Marn?"


def messages(
    agent: type[ChatAgent] = ChatAnswerer, feedback: str | None = None, *passages: NumberedPassage
) -> list[BaseMessage]:
    """Return the request of an agent that writes text, about two passages or those given."""
    words = {"nothing": NOTHING} if agent is ChatPredictor else {"refusal": REFUSAL}
    material = {"question": QUESTION, "passages": passages_material(passages or (LAKE, TOWN))}
    return agent.messages(material, Feedback(feedback, "raw") if feedback else None, **words)


def is_echo(said: object, request: Sequence[BaseMessage]) -> bool:
    try:
        check_no_echo(said, request)
    except MalformedReply:
        return True
    return False


@pytest.mark.parametrize(
    "said",
    [
        "Marn was founded by Ada Brandt [1].",
        "Ada Brandt [1]",
        "It was founded in 1203 by Ada Brandt, a weaver [1]. The weavers of Karv closed their guild in 1871 [2].",
        "Yes [1]",
        REFUSAL,
        "The passages name Ada Brandt as the founder [1].",
        "He was born in Denmark [1].",
        "Who founded Marn? Ada Brandt [1].",
        "",
    ],
)
def test_an_honest_answer_is_no_echo(said: str) -> None:
    assert not is_echo(said, messages())


@pytest.mark.parametrize(
    "said",
    [
        "Salka was composed by Ivar Lund [1]. He was born in Denmark [4].",
        "Salka was composed by Ivar Lund [1].",
        "Use square brackets for nothing else [1].",
        "Marn was founded in 1203 [1]. Do not repeat the question or tell how you found the answer.",
        "After each statement, cite every passage that it rests on by its number in square brackets: [2], or [1, 3].",
        '{"question": "Who founded Marn?"} [1]',
        "Quoted material (question and passages): Marn [1]",
        "You answer a question from numbered passages, and from nothing else. [1]",
    ],
)
def test_a_reply_that_repeats_instructions_an_example_or_the_request_is_an_echo(said: str) -> None:
    agent = ChatFinalPredictor if "Salka" in said else ChatAnswerer
    assert is_echo(said, messages(agent))


class TestAnswersThatSayNothing:
    """What a small model answered in place of an answer, each with a citation; and short answers that say something."""

    @pytest.mark.parametrize(
        "said",
        [
            "The answer is:\n\n[1, 2]",
            "[1]",
            "The answer to the question is:\n\nDenmark [1, 3]",
            "The answer is:\n\nDenmark [1, 3]",
            f"The question is: {QUESTION} [1]",
            f"{QUESTION} [1]",
            'The passage is:\n\n"The answer may need to be quoted in square brackets, such as [2, 1]."',
        ],
    )
    def test_they_are_refused(self, said: str) -> None:
        with pytest.raises(MalformedReply, match="says nothing of its own"):
            check_says_something(said, messages())

    @pytest.mark.parametrize(
        "said",
        [
            "Yes [1]",
            "No [1].",
            "The answer is yes [1].",
            f"{QUESTION} Ada Brandt [1].",
            "The answer is: 1203 [1]",
            "Three [1]",
            "Eine Weberin [1]",
            "エイダ・ブラント [1]",
            "Denmark [1]",
            "It is a weaver [1].",
        ],
    )
    def test_an_answer_in_few_words_is_kept(self, said: str) -> None:
        check_says_something(said, messages())

    def test_a_word_of_the_task_is_an_answer_where_the_material_holds_it(self) -> None:
        law = NumberedPassage(1, "p", "Law", "The title of the text is a number.")
        check_says_something("The title [1]", messages(ChatAnswerer, None, law))

    def test_the_words_of_an_example_are_an_answer_where_the_material_is_about_them(self) -> None:
        danish = NumberedPassage(3, "d", "Denmark", "Denmark has many towns.")
        check_says_something("The answer is Denmark [1, 3]", messages(ChatAnswerer, None, LAKE, danish))

    def test_a_refusal_is_read_as_such(self) -> None:
        with scripted([REFUSAL]) as server:
            assert ChatAnswerer(model_on(server)).answer(QUESTION, (LAKE,)).refused
        with scripted([NOTHING]) as server:
            assert ChatPredictor(model_on(server)).predict(QUESTION, LAKE) == ""

    @pytest.mark.parametrize("role", ["answerer", "final predictor", "predictor"])
    def test_every_agent_that_writes_text_refuses_them(self, role: str) -> None:
        with scripted(["The answer is: [1]"]) as server, pytest.raises(MalformedReply, match="nothing of its own"):
            ASKED[role](model_on(server), None)

    def test_speech_about_the_quoted_material_is_an_echo_unless_a_passage_speaks_of_it(self) -> None:
        said = "The passage is quoted material about the town of Marn [1]."
        assert is_echo(said, messages())
        note = NumberedPassage(1, "p", "Marn", "All quoted material about Marn is Ada Brandt's.")
        assert not is_echo(said, messages(ChatAnswerer, None, note))


def test_the_whole_reply_of_an_example_is_an_echo_however_short_unless_the_material_is_about_it() -> None:
    assert is_echo("Denmark [1, 3]", messages())
    danish = NumberedPassage(3, "d", "Denmark", "Denmark has many towns.")
    assert not is_echo("Denmark [1, 3]", messages(ChatAnswerer, None, LAKE, danish))
    assert not is_echo("Denmark [1]", messages())


def test_an_example_is_an_answer_where_the_material_is_about_the_same() -> None:
    salka = NumberedPassage(1, "s", "Salka", "Salka is an opera in two acts by Ivar Lund.")
    assert not is_echo("Salka was composed by Ivar Lund [1].", messages(ChatFinalPredictor, None, salka))


def test_a_passage_may_hold_the_instructions_themselves_and_be_quoted() -> None:
    rules = NumberedPassage(1, "r", "Rules", "Use square brackets for nothing else. Be brief.")
    assert not is_echo("Use square brackets for nothing else [1].", messages(ChatAnswerer, None, rules))


REASONS = (
    "The reply is empty",
    "The reply was cut at the token limit",
    f"The answer cites no passage: cite by number in brackets, or write {REFUSAL} alone",
    "The answer cites 7, but the passages are numbered 1, 2",
)


@pytest.mark.parametrize("reason", REASONS)
def test_a_repeated_reason_is_an_echo_however_short(reason: str) -> None:
    request = messages(ChatPredictor, reason)
    assert is_echo(reason, request)
    assert is_echo(f"{reason}. [1]", request)
    assert is_echo(str(request[2].text), request)
    assert not is_echo("Marn was founded by Ada Brandt.", request)


def test_the_predictor_which_takes_any_text_refuses_the_reason_that_it_is_fed() -> None:
    with scripted(["The reply is empty"]) as server, pytest.raises(MalformedReply, match="in place of answering"):
        ChatPredictor(model_on(server)).predict(QUESTION, LAKE, Feedback("The reply is empty", ""))


FACT = ScoredFact(Fact("Marn", "founded by", "Ada Brandt", RelationType.ATTRIBUTION), 1.0)
CLAIM = Claim(1, "Marn.", (1,), 0, 5)
ASKED: dict[str, Callable[[ChatModel, Feedback | None], object]] = {
    "answerer": lambda model, feedback: ChatAnswerer(model).answer(QUESTION, (LAKE,), feedback),
    "final predictor": lambda model, feedback: ChatFinalPredictor(model).answer(QUESTION, (LAKE,), None, feedback),
    "predictor": lambda model, feedback: ChatPredictor(model).predict(QUESTION, LAKE, feedback),
    "judge": lambda model, feedback: ChatJudge(model).judge(QUESTION, LAKE, "", feedback),
    "fact filter": lambda model, feedback: ChatFactFilter(model).choose(QUESTION, [FACT], 1, feedback),
    "manager": lambda model, feedback: ChatManager(model).weigh(QUESTION, feedback),
    "claim judge": lambda model, feedback: ChatClaimJudge(model).assess(QUESTION, [CLAIM], (LAKE,), 1, feedback),
    "extractor": lambda model, feedback: ChatExtractor(model).extract(Passage("p", LAKE.title, LAKE.text), feedback),
}


@pytest.mark.parametrize("role", ASKED)
@pytest.mark.parametrize("reason", [*REASONS, 'cite as in [1], or {"facts": [1]}'])
def test_no_feedback_holds_anything_that_an_agent_takes_for_an_answer(role: str, reason: str) -> None:
    feedback = Feedback(reason, '{"facts": [1]} Ada Brandt [1]')
    *_, message = prompt_messages("", "", feedback)
    with scripted([str(message.text)]) as server, pytest.raises(MalformedReply):
        ASKED[role](model_on(server), feedback)


@pytest.mark.parametrize("role", ASKED)
def test_no_agent_takes_its_own_prompt_for_an_answer(role: str) -> None:
    with scripted(lambda body: str(body["messages"][0]["content"])) as server, pytest.raises(MalformedReply):
        ASKED[role](model_on(server), None)


@pytest.mark.parametrize("role", ["fact filter", "manager", "claim judge"])
def test_no_agent_takes_the_schema_for_an_object(role: str) -> None:
    with (
        scripted(lambda body: json.dumps(body["response_format"]["json_schema"]["schema"])) as server,
        pytest.raises(MalformedReply),
    ):
        ASKED[role](model_on(server), None)


class TestObjects:
    def test_the_extractors_example_is_an_echo_whole_or_in_part(self) -> None:
        lines = [line for line in load_prompt("extractor").template.splitlines() if line.startswith('{"entities"')]
        passage = Passage("p", LAKE.title, LAKE.text)
        partly = {
            "entities": ["Marn", "Ada Brandt"],
            "triples": [
                {"subject": "Marn", "predicate": "was founded by", "object": "Ada Brandt"},
                {"subject": "Salka", "predicate": "was composed by", "object": "Ivar Lund"},
            ],
        }
        for reply in (*lines, json.dumps(partly)):
            with scripted([reply]) as server, pytest.raises(MalformedReply, match="in place of answering"):
                ChatExtractor(model_on(server)).extract(passage)

    def test_a_choice_of_numbers_is_nobodys_words(self) -> None:
        facts = [ScoredFact(Fact(f"Marn {n}", "lies", "here", RelationType.SPATIAL), 1.0) for n in range(4)]
        with scripted(['{"facts": [1, 3]}']) as server:
            assert len(ChatFactFilter(model_on(server)).choose(QUESTION, facts, 4).kept) == 2


RULES = str(messages()[0].text).partition("## Examples")[0]
SENTENCES = [RULES[start:end] for start, end in sentence_spans(RULES)]
LONG = [sentence for sentence in SENTENCES if len(tokens(re.sub(r"\[[0-9, ]+\]", "", sentence))) >= RUN]

words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9)
texts = st.lists(words, min_size=1, max_size=40).map(" ".join)


@given(st.sampled_from(LONG), texts, texts)
def test_a_sentence_of_the_instructions_is_an_echo_whatever_is_written_around_it(
    sentence: str, before: str, passage: str
) -> None:
    request = messages(ChatAnswerer, None, NumberedPassage(1, "p", "", passage))
    assert is_echo(sentence, request)
    assert is_echo(f"{before} [1]. {sentence} [1]", request)


@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_what_is_quoted_from_passages_is_never_an_echo(passages: list[str], data: st.DataObject) -> None:
    quoted = []
    for number, text in enumerate(passages, start=1):
        held = text.split()
        start = data.draw(st.integers(0, len(held) - 1))
        end = data.draw(st.integers(start + 1, len(held)))
        quoted.append(f"{' '.join(held[start:end])} [{number}].")
    request = messages(
        ChatAnswerer, None, *(NumberedPassage(n, str(n), "", text) for n, text in enumerate(passages, start=1))
    )
    assume(not any("Denmark" in text for text in passages))
    assert not is_echo(" ".join(quoted), request)


@given(st.sampled_from(LONG), texts)
def test_even_the_instructions_are_no_echo_where_a_passage_holds_them(sentence: str, rest: str) -> None:
    passage = NumberedPassage(1, "p", "", f"{rest} . {sentence} . {rest}")
    assert not is_echo(f"{sentence} [1]", messages(ChatAnswerer, None, passage))
