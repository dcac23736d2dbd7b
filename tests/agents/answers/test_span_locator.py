from __future__ import annotations

import pytest

from agents.answers.citations import MIN_OVERLAP, locate_quote


def test_a_quote_is_the_sentence_that_shares_most_words_the_earlier_on_a_tie() -> None:
    text = "Lund was a composer. Lund lived in Oslo. Lund lived in Oslo for long."
    span = locate_quote("He lived in Oslo [2].", text)
    assert span is not None
    assert text[slice(*span)] == "Lund lived in Oslo."


def test_the_question_breaks_ties_between_sentences_that_hold_a_short_answer() -> None:
    text = "A fire came in 1911. The opera was composed in 1911."
    span = locate_quote("1911", text, "When was the opera composed?")
    assert span is not None
    assert text[slice(*span)] == "The opera was composed in 1911."


def test_a_quote_below_the_least_overlap_is_none() -> None:
    claim = "The ferry Norda sank near Bergen during a winter storm"
    assert MIN_OVERLAP == 0.3
    assert locate_quote(claim, "Bergen is a town.") is None
    assert locate_quote(claim, "A storm hit the ferry near Bergen.") == (0, 34)


@pytest.mark.parametrize("claim", ["", "[1]", "it was the"])
def test_a_claim_without_content_is_found_nowhere(claim: str) -> None:
    assert locate_quote(claim, "It was the 1 opera.") is None


def test_quotes_are_found_in_scripts_without_spaces() -> None:
    text = "日产成立于1933年。总部在横滨。"
    span = locate_quote("成立于1933年", text)
    assert span is not None
    assert text[slice(*span)].startswith("日产成立于1933年")
