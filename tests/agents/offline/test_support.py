from __future__ import annotations

import pytest

from agents.claim_judge import is_supported

NISSAN = "Nissan\nNissan Motor was founded in Yokohama in 1933 and employs 130,000 people."


@pytest.mark.parametrize(
    "sentence",
    [
        "Nissan Motor was founded in Yokohama in 1933.",
        "The founding of Nissan in Yokohama was in 1933.",
        "It employs 130000 people.",
        "It was founded by people in Yokohama.",
    ],
)
def test_a_sentence_whose_words_the_source_holds_is_supported(sentence: str) -> None:
    assert is_supported(sentence, NISSAN)


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        ("Nissan Motor was founded in Yokohama in 1934.", "number"),
        ("Nissan Motor was founded in Yokohama in 1933 and employs 13,000 people.", "number"),
        ("Nissan Motor was founded in Osaka in 1933.", "name"),
        ("Toyota Motor was founded in Yokohama in 1933.", "name at the start"),
        ("Nissan sold nothing but small trucks abroad.", "most content words"),
        ("Yes.", "nothing to hold"),
        ("It is.", "nothing to hold"),
        ("", "nothing to hold"),
    ],
)
def test_a_sentence_with_something_else_is_not(sentence: str, what: str) -> None:
    assert not is_supported(sentence, NISSAN), what


def test_three_of_five_content_words_are_most() -> None:
    assert is_supported("alpha beta gamma delta epsilon", "gamma beta alpha")
    assert not is_supported("alpha beta gamma delta epsilon", "gamma beta")


def test_a_script_without_capitals_or_spaces_is_judged_by_its_words() -> None:
    assert is_supported("日産は横浜で設立された。", "日産自動車は1933年に横浜で設立された。")
    assert not is_supported("日産は大阪府で創業した。", "ホンダは浜松に本社を置く。")


def test_what_it_cannot_see_is_that_a_source_says_the_reverse() -> None:
    assert is_supported("Renault acquired Nissan.", "Nissan acquired Renault.")
