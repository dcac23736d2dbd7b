from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.text import date_spans, is_date, year_in


@pytest.mark.parametrize(
    "text",
    [
        "1933",
        "in 1933",
        "5 May 1933",
        "May 5, 1933",
        "August 31st",
        "January",
        "the 1980s",
        "1933–1950",
        "from 23 to 25 July 1900",
        "early 19th century",
        "the twentieth century",
        "44 BC",
        "c. 1650",
        "1933年5月3日",
        "1990-05-12",
        "12.05.1990",
        "March 2 and 3, 2012",
        "१९४७",
        "١٩٤٧",
    ],
)
def test_a_phrase_of_nothing_but_date_words_is_a_date(text: str) -> None:
    assert is_date(text)


@pytest.mark.parametrize(
    "text",
    ["", "of the", "12", "first", "1,045 stations", "1993 film", "Nissan", "1963 monthly issue", "5.5 million", "春"],
)
def test_a_phrase_with_anything_else_or_without_a_calendar_word_is_none(text: str) -> None:
    assert not is_date(text)


def test_dates_are_found_in_a_sentence_at_full_length() -> None:
    sentence = "Born on 5 May 1933, she worked from 1950–1972, in the 1980s and until March 3, 1990; he died in 44 BC."
    found = [sentence[start:end] for start, end in date_spans(sentence)]
    assert found == ["5 May 1933", "1950–1972", "1980s", "March 3, 1990", "44 BC"]


def test_an_east_asian_date_is_found_between_characters_without_spaces() -> None:
    sentence = "同社は1933年12月26日に設立された"
    assert [sentence[start:end] for start, end in date_spans(sentence)] == ["1933年12月26日"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 12 May 1990, in May 1990, on 12 May, 1990", ["12 May 1990", "May 1990", "12 May, 1990"]),
        ("1990-05-12 or 12.05.1990 or 12/5/1990", ["1990-05-12", "12.05.1990", "12/5/1990"]),
        ("March 2–3, 2012; March 2 and 3, 2012", ["March 2–3, 2012", "March 2 and 3, 2012"]),
        ("12–15 May 1990, 7 to 14 August 1936", ["12–15 May 1990", "7 to 14 August 1936"]),
        ("born (1731 – 17 November 1798)", ["1731", "17 November 1798"]),
        ("1914–18, 1914 - 1985, 2004–05", ["1914–18", "1914 - 1985", "2004–05"]),
        ("on May 5 and 6 men came", ["May 5"]),
        ("सन १९४७ में, عام ١٩٤٧", ["१९४७", "١٩٤٧"]),
        ("version 1.2.1990.3 at 10.0.0.1", []),
    ],
)
def test_dates_are_found_in_every_order(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in date_spans(text)] == expected


@pytest.mark.parametrize("text", ["they may march on", "2,000 men", "flight 17", "ISBN 1234-5678", "version 1.1999"])
def test_months_that_are_verbs_and_plain_numbers_are_no_dates(text: str) -> None:
    assert date_spans(text) == []


@given(st.text(max_size=80))
def test_spans_lie_inside_the_text_in_order_and_never_overlap(text: str) -> None:
    position = 0
    for start, end in date_spans(text):
        assert position <= start < end <= len(text)
        position = end


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("5 May 1933", "1933"),
        ("1990-05-12", "1990"),
        ("May 1933", "1933"),
        ("1933", ""),
        ("1933–1950", ""),
        ("the 1980s", ""),
        ("5 May", ""),
    ],
)
def test_a_longer_date_has_a_year(date: str, year: str) -> None:
    assert year_in(date) == year
