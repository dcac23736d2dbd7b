from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.words import (
    Day,
    bare_stem,
    content_stems,
    date_spans,
    days_in,
    function_words,
    language_of,
    stem,
    word_spans,
)


def test_codes_and_numbers_are_one_word_and_a_hyphen_that_does_not_break_is_a_hyphen() -> None:
    text = "The VX-210 costs 1,200.50 EUR; see 14/3, rev. 2b, at 12:30."
    words = [word for word, _, _ in word_spans(text)]
    assert words == ["the", "vx-210", "costs", "1,200.50", "eur", "see", "14/3", "rev", "2b", "at", "12:30"]
    assert word_spans("VX‑7")[0][0] == word_spans("VX-7")[0][0] == "vx-7"


def test_the_language_is_told_by_function_words_which_say_nothing_of_what_is_asked() -> None:
    for text, language in (
        ("Who runs the paint shop of the yard?", "english"),
        ("Wer leitet die Lackiererei der Werft?", "german"),
        ("Quel est le prix de la voile ?", "french"),
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
    for one, other in (("directed", "director"), ("founders", "founded"), ("produce", "producer"), ("café", "cafe")):
        assert bare_stem(one) == bare_stem(other)
    for word in ("नेहरू", "москва", "สวัสดี"):
        assert bare_stem(word) == word
    assert content_stems("Who was the founder of the bank in Oslo?") == ["found", "bank", "oslo"]


MONTHS = (
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
)

NOTATIONS = (
    "{d} {english} {y}",
    "{english} {d}, {y}",
    "{y}-{m:02}-{d:02}",
    "{d}.{m}.{y}",
    "{d}/{m}/{y}",
    "{d}. {german} {y}",
    "{d} {french} {y}",
)
days = st.dates(date(1500, 1, 1), date(2099, 12, 31))


@given(days, st.sampled_from(NOTATIONS), st.sampled_from(["", "signed on ", "(", "Kiel, "]))
def test_a_date_is_the_same_in_every_notation(day: date, notation: str, before: str) -> None:
    names = [months.split()[day.month - 1] for months in MONTHS]
    written = notation.format(
        d=day.day, m=day.month, y=day.year, **dict(zip(("english", "german", "french"), names, strict=True))
    )
    text = f"{before}{written}, as agreed"
    assert days_in(text) == [Day(day.year, day.month, day.day)]
    ((start, end),) = date_spans(text)
    assert text[start:end] == written


def test_days_are_read_in_order_and_what_is_not_told_of_a_date_is_nought() -> None:
    for written, day in (
        ("March 2024", Day(2024, 3)),
        ("im Jänner 2023", Day(2023, 1)),
        ("le 1er août 2022", Day(2022, 8, 1)),
        ("founded in 1203", Day(1203)),
        ("03/04/2024", Day(2024, 4, 3)),
        ("03/14/2024", Day(2024, 3, 14)),
    ):
        assert days_in(written) == [day], written
    assert days_in("From 2 May 2021 to 2022-06-30, renewed 2024.") == [Day(2021, 5, 2), Day(2022, 6, 30), Day(2024)]
    assert Day(2023) < Day(2023, 4) < Day(2023, 4, 1) < Day(2024)


def test_what_is_no_date_is_none_and_a_day_without_a_year_has_a_place_alone() -> None:
    for written in ("45.13.2024", "2024-13-45", "32 March 2024", "room 1499", "costs 1200 EUR", "part 20240", "in may"):
        assert days_in(written) == [], written
    assert date_spans("on 14 March it was") == [(3, 11)]
    assert days_in("on 14 March it was") == []
