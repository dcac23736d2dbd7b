from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.words import bare_stem, content_stems
from graph.text import tokens


def test_function_words_go_and_content_words_stay_in_order() -> None:
    assert content_stems("Who was the founder of the bank in Oslo?") == ["found", "bank", "oslo"]


def test_forms_and_spellings_of_one_word_meet() -> None:
    for one, other in [
        ("directed", "director"),
        ("founders", "founded"),
        ("countries", "country"),
        ("films", "film"),
        ("produce", "producer"),
        ("café", "cafe"),
    ]:
        assert bare_stem(one) == bare_stem(other)


def test_other_scripts_and_short_words_keep_their_letters() -> None:
    for word in ["नेहरू", "москва", "สวัสดี", "owner's"]:
        assert bare_stem(word) == word or word.isascii()


@given(st.text(max_size=60))
def test_every_stem_comes_from_a_token_and_none_is_empty(text: str) -> None:
    stems = content_stems(text)
    assert len(stems) <= len(tokens(text))
    assert all(stems)
