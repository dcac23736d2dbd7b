from __future__ import annotations

from typing import Any

from benchmarks.folders.scoring import Outcome, outcome_of

RIGHT, WRONG, REFUSED = Outcome.RIGHT, Outcome.WRONG, Outcome.REFUSED


def outcome(answer: str, *, refused: bool = False, **question: object) -> Outcome:
    return outcome_of(question, answer, refused=refused)


def test_right_is_an_answer_that_holds_the_string_as_whole_words() -> None:
    for answer, expected in [
        ("The rent is EUR 2,150.", RIGHT),
        ("eur 2,150 a month", RIGHT),
        ("The rent is EUR 2,150.50.", WRONG),
        ("The rent is EUR 12,150.", WRONG),
        ("", WRONG),
    ]:
        assert outcome(answer, answers=["EUR 2,150"]) is expected, answer


def test_a_rival_before_the_answer_makes_it_wrong_and_behind_it_does_not() -> None:
    question: dict[str, Any] = {"answers": ["EUR 66"], "rivals": ["EUR 58"]}
    assert outcome("EUR 66; in 2023 EUR 58", **question) is RIGHT
    assert outcome("In 2023 EUR 58, now EUR 66", **question) is WRONG
    assert outcome("EUR 58", **question) is WRONG


def test_a_refusal_is_right_where_nothing_is_to_be_found_alone() -> None:
    assert outcome("", refused=True, answers=[]) is RIGHT
    assert outcome("Something", answers=[]) is WRONG
    assert outcome("", refused=True, answers=["EUR 66"]) is REFUSED
