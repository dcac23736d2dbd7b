from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.words import bare_stem, content_stems, function_words, language_of, stem, word_spans
from graph.text import tokens


def test_codes_and_numbers_are_one_word_and_a_hyphen_that_does_not_break_is_a_hyphen() -> None:
    text = "The VX-210 costs 1,200.50 EUR; see 14/3, rev. 2b, at 12:30."
    words = [word for word, _, _ in word_spans(text)]
    assert words == ["the", "vx-210", "costs", "1,200.50", "eur", "see", "14/3", "rev", "2b", "at", "12:30"]
    assert word_spans("VX‑7")[0][0] == word_spans("VX-7")[0][0] == "vx-7"


@given(st.text(alphabet="aB9-‑.,/: é日", max_size=40))
def test_words_lie_in_order_where_they_say(text: str) -> None:
    spans = word_spans(text)
    assert all(0 <= start < end <= len(text) for _, start, end in spans)
    assert all(one[2] <= other[1] for one, other in itertools.pairwise(spans))
    assert all(word == text[start:end].casefold().replace("‑", "-") for word, start, end in spans)


def test_the_language_is_told_by_function_words_which_say_nothing_of_what_is_asked() -> None:
    for text, language in (
        ("Who runs the paint shop of the yard?", "english"),
        ("Wer leitet die Lackiererei der Werft?", "german"),
        ("Quel est le prix de la voile ?", "french"),
        ("¿Quién dirige el taller de la empresa?", "spanish"),
        ("DV-210", "english"),
        ("", "english"),
    ):
        assert language_of(text) == language
    for word, language in (("who", "english"), ("wer", "german"), ("der", "german"), ("le", "french")):
        assert word in function_words(language)
        assert "slipway" not in function_words(language)


def test_forms_and_spellings_of_one_word_meet_and_other_scripts_keep_their_letters() -> None:
    assert stem("leases", "english") == stem("leased", "english") == stem("lease", "english")
    assert stem("häuser", "german") == stem("häusern", "german")
    for one, other in (
        ("directed", "director"),
        ("founders", "founded"),
        ("countries", "country"),
        ("films", "film"),
        ("produce", "producer"),
        ("café", "cafe"),
    ):
        assert bare_stem(one) == bare_stem(other)
    for word in ("नेहरू", "москва", "สวัสดี"):
        assert bare_stem(word) == word
    assert content_stems("Who was the founder of the bank in Oslo?") == ["found", "bank", "oslo"]


@given(st.text(max_size=60))
def test_every_stem_comes_from_a_token_and_none_is_empty(text: str) -> None:
    stems = content_stems(text)
    assert len(stems) <= len(tokens(text))
    assert all(stems)
