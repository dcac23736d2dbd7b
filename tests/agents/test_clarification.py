from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.leaning import asks_nothing, chosen_reading, question_back, readings_in

ORLO, EMIL = "When was Orlo Sund born?", "When was Emil Tarn born?"
BACK = question_back([ORLO, EMIL])


def test_asking_back_quotes_every_reading() -> None:
    assert BACK == "Which do you mean: “When was Orlo Sund born?” or “When was Emil Tarn born?”"


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("1", ORLO),
        ("2.", EMIL),
        ("the second one", EMIL),
        ("The former", ORLO),
        ("Emil Tarn", EMIL),
        ("orlo?", ORLO),
        (ORLO, ORLO),
    ],
)
def test_a_reading_is_chosen_by_number_by_place_or_by_its_own_words(reply: str, chosen: str) -> None:
    assert chosen_reading(reply, readings_in(BACK)) == chosen


@pytest.mark.parametrize("reply", ["3", "0", "-5", "the third", "born", "Ida Brandt", "", "When was the port built?"])
def test_what_fits_no_reading_or_several_chooses_none(reply: str) -> None:
    assert chosen_reading(reply, readings_in(BACK)) is None


def test_nothing_is_chosen_where_nothing_was_asked_back() -> None:
    assert chosen_reading("1", readings_in("He said “yes” or “no”. [1]")) is None


@given(st.lists(st.text(min_size=1), min_size=2, max_size=4))
def test_the_number_of_any_reading_chooses_it(choices: list[str]) -> None:
    for number, choice in enumerate(choices, start=1):
        assert chosen_reading(str(number), choices) == choice


@pytest.mark.parametrize("text", ["thanks!", "Hello", "ok", "?", "...", "👍", "Thank you very much", "Danke schön"])
def test_greetings_thanks_and_signs_alone_ask_nothing(text: str) -> None:
    assert asks_nothing(text)


@pytest.mark.parametrize("text", ["why?", "no", "thanks, and when was Karv built?", "港", "Okra"])
def test_all_else_asks_something(text: str) -> None:
    assert not asks_nothing(text)
