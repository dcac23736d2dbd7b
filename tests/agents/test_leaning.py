from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.leaning import leaning_of

STAND_ALONE = (
    "When was the port of Velmora built?",
    "Who was Ida Brandt and when did she die?",
    "If a lender goes bankrupt, who pays its debts?",
    "What is an escrow account? It sounds like a savings account.",
    "Is it possible to export a report as CSV?",
    "What was it that the council decided in March?",
    "Is there a discount for students in Denmark?",
    "Why does the Velmora ferry stop in winter?",
    "So, who built the lighthouse of Karv?",
    "Which port is older, Velmora or Karv?",
    "How many sailors lost their lives off Karv?",
    "What about the history of the Velmora ferry?",
    "What is it like to live in Karv?",
    "And who was Hypatia?",
    "In which year was Karv founded?",
    "velmora ferry history",
    "Velmora Ferry Company",
    "In Karv, list harbours",
    "Quand La Scala a-t-elle ouvert ?",
    "Which tax forms does a sole proprietor with two employees in Denmark file every year?",
    "Wie viele Sprachen gibt es in der Schweiz?",
    "Können Sie den Hafen von Velmora beschreiben?",
    "Combien de langues y a-t-il en Suisse?",
)
LEAN = (
    ("And who built it?", "And"),
    ("How long is it?", "it"),
    ("Where was she born", "she"),
    ("What do they charge?", "they"),
    ("Does this apply to tenants?", "this"),
    ("Who lived in that house?", "in that house"),
    ("Which rivers meet there?", "there"),
    ("Who owns the second one?", "the second"),
    ("Which one is cheaper?", "Which one"),
    ("Can you give an example?", "an example"),
    ("What else did the council decide?", "What else"),
    ("Is insurance more expensive?", "more"),
    ("what about Karv?", "what about"),
    ("What about Ida Brandt?", "What about"),
    ("How about Anna Maria Brandt?", "How about"),
    ("No, I meant the river", "No"),
    ("Are you sure?", "Are you sure"),
    ("Wo wurde er geboren?", "er"),
    ("Und wer hat es gebaut?", "Und"),
    ("And World War II?", "And"),
    ("Où est-elle née?", "elle"),
    ("¿Y dónde nació?", "Y"),
)
FRAGMENTS = (
    *("Karv?", "in 1952?", "If I rent?", "prices", "港"),
    *("of Ida Brandt?", "In the old port?", "since the port of 1911?", "Anna Maria Brandt?", "The Port of Velmora?"),
)
ASKED_ON = ("why?", "And when?", "in what year?", "since when", "Warum nicht?", "pourquoi ?", "How much?")


@pytest.mark.parametrize("question", STAND_ALONE)
def test_a_question_that_names_what_it_is_about_stands_alone(question: str) -> None:
    assert leaning_of(question) == ""


@pytest.mark.parametrize(("question", "word"), LEAN)
def test_a_question_that_refers_to_what_was_said_leans_and_the_word_is_told(question: str, word: str) -> None:
    assert f"“{word}”" in leaning_of(question)


@pytest.mark.parametrize("question", FRAGMENTS)
def test_a_fragment_leans(question: str) -> None:
    assert leaning_of(question) == "it is a fragment"


@pytest.mark.parametrize("question", ASKED_ON)
def test_a_question_word_alone_asks_on(question: str) -> None:
    assert leaning_of(question) == "it asks on"


def test_a_definite_noun_leans_where_the_conversation_spoke_of_it() -> None:
    question = "How long does the migration take?"
    assert leaning_of(question) == ""
    assert leaning_of(question, "You have to do a migration to version 2.") == "“the migration” was spoken of before"


def test_a_definite_noun_that_is_all_a_question_names_leans() -> None:
    assert leaning_of("Who was the founder?") == "“the founder” names something said before"
    assert leaning_of("Who discovered the electron near the coast of Denmark?") == ""


def test_a_definite_noun_with_a_name_beside_it_stands_alone() -> None:
    assert leaning_of("Who paid for the port of Velmora?", "The port was built in 1911.") == ""


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_read_alike_twice(question: str, earlier: str) -> None:
    assert leaning_of(question, earlier) == leaning_of(question, earlier)
