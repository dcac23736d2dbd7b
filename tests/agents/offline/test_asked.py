from __future__ import annotations

import pytest

from agents.offline.answer_type import AnswerType
from agents.offline.asked import Asked, read_question


def inner(asked: Asked) -> list[str]:
    return [word.text for word in asked.relation if word.is_inner]


def outer(asked: Asked) -> list[str]:
    return [word.text for word in asked.relation if not word.is_inner]


def test_names_numbers_and_what_is_asked_are_told_apart() -> None:
    asked = read_question("Which group acquired Vale Electric in 1971?")
    assert asked.names == (("vale", "electric"),)
    assert asked.numbers == ("1971",)
    assert outer(asked) == ["group", "acquired"]
    assert not asked.is_nested


@pytest.mark.parametrize(
    ("question", "described", "wanted"),
    [
        ("When was the firm that built the Moor Bridge in Hale established?", ["firm", "built"], ["established"]),
        ("In which year did the geologist whom Ada Vale married die?", ["geologist", "married"], ["die"]),
        ("How deep is the lake on which Ada Vale drowned?", ["lake", "drowned"], ["depth"]),
        ("Where was the designer of the Moor Bridge born?", ["designer"], ["born"]),
        ("When did Ada Vale's husband die?", ["husband"], ["die"]),
        ("How did the engineer in charge of the Moor Tunnel lose his life?", ["engineer", "led"], ["died"]),
    ],
)
def test_a_description_is_told_from_what_is_asked(question: str, described: list[str], wanted: list[str]) -> None:
    asked = read_question(question)
    assert (inner(asked), outer(asked)) == (described, wanted)


@pytest.mark.parametrize(
    "question", ["Who was the husband of Ada Vale?", "What is Ada Vale's profession?", "Who founded the Moor Works?"]
)
def test_a_property_of_a_name_is_no_description(question: str) -> None:
    assert not read_question(question).is_nested


def test_a_class_word_before_a_name_hardly_matters() -> None:
    weights = {word.text: word.weight for word in read_question("When did the painter Ada Vale die?").relation}
    assert weights["painter"] < weights["die"]


def test_titles_are_names_in_small_letters_too() -> None:
    assert read_question("who built the moor bridge").names == ()
    assert read_question("who built the moor bridge", ["Moor Bridge (Hale)"]).names == (("moor", "bridg"),)


@pytest.mark.parametrize("question", ["", "Who?", "?", "42", "What is it?"])
def test_a_question_of_nothing_asks_nothing(question: str) -> None:
    assert outer(read_question(question)) == []


def test_who_somebody_is_asks_for_no_kind_of_answer() -> None:
    assert read_question("Who is Ada Vale?").kind is AnswerType.ANY
    assert read_question("Who taught Ada Vale?").kind is AnswerType.PERSON
