from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from graph.text import (
    counted,
    date_spans,
    is_date,
    is_unspaced,
    name_length,
    normalise_name,
    title_name,
    token_spans,
    tokens,
    year_in,
)

SCRIPTS = (
    *("Nissan Motor", "Лада Веста", "Αλκμήνη Ρούσου", "وادي النور", "עמק האור"),
    *("सोनपुरा", "日産自動車", "トヨタ", "현대자동차", "กรุงเทพ"),
)


class TestNormalForm:
    def test_spellings_of_one_name_meet_and_accents_tell_names_apart(self) -> None:
        for one, other in [
            ("Nissan", "NISSAN"),
            ("  Nissan   Motor\n", "nissan motor"),
            ("Ｎｉｓｓａｎ", "Nissan"),
            ("Mu\u0308nchen", "München"),
        ]:
            assert normalise_name(one) == normalise_name(other)
        for one, other in [("Malmö", "Malmo"), ("résumé", "resume"), ("が", "か"), ("й", "и")]:
            assert normalise_name(one) != normalise_name(other)

    @given(st.text(max_size=30))
    @example("a\u200b\u0301")
    @example("ᾳ\u0301")
    @example("\u00a8x")
    @example("ﷺ")
    def test_the_normal_form_of_a_normal_form_is_itself(self, name: str) -> None:
        assert normalise_name(normalise_name(name)) == normalise_name(name)
        assert all(map(normalise_name, (*SCRIPTS, "+", "???", "☃")))


class TestTokens:
    def test_words_are_tokens_and_so_are_characters_of_unspaced_scripts(self) -> None:
        assert tokens("Nissan's 370Z, built (in) Tochigi!") == ["nissan", "s", "370z", "built", "in", "tochigi"]
        assert tokens("日産は1933年") == ["日", "産", "は", "1933", "年"]
        assert tokens("현대차가") == ["현", "대", "차", "가"]
        assert tokens("トヨタは") == ["トヨタ", "は"]
        assert tokens("सोनपुरा नदी") == ["सोनपुरा", "नदी"], "vowel signs stay with their letters"
        assert all(unicodedata.category(token[0])[0] == "L" for token in tokens("ที่นี่"))
        assert [token for token in tokens("Nissan日産") if is_unspaced(token)] == ["日", "産"]

    def test_spans_hold_the_same_tokens_and_point_into_the_text_as_given(self) -> None:
        for text in [
            *SCRIPTS,
            "the Nis\u00adsan Micra",
        ]:
            spans = token_spans(text)
            assert [token for token, _, _ in spans] == tokens(text)
            for token, start, end in spans:
                assert token in tokens(text[start:end])


def test_letters_and_digits_make_the_length_of_a_name_and_unspaced_characters_count_twice() -> None:
    lengths = {"UN": 2, "U.N.": 2, "NYC": 3, "日": 2, "日産": 4, "R2": 2, "": 0, "!!!": 0}
    assert {name: name_length(name) for name in lengths} == lengths


def test_a_trailing_parenthesis_of_a_title_goes_unless_nothing_would_be_left() -> None:
    for title in ("Mercury (planet)", "Mercury (planet) ", "Mercury"):
        assert title_name(title) == "Mercury"
    assert title_name("Tora! Tora! Tora! (film) (1970)") == "Tora! Tora! Tora! (film)"
    for title in ("(sic)", "f(x) band", ""):
        assert title_name(title) == title


def test_a_noun_is_singular_beside_one_alone() -> None:
    counts = {0: "0 passages", 1: "1 passage", 2: "2 passages", 1_200: "1,200 passages"}
    assert {count: counted(count, "passage") for count in counts} == counts
    assert counted(1, "passage is", "passages are") == "1 passage is"
    assert counted(2, "passage is", "passages are") == "2 passages are"


@given(st.text(st.characters(max_codepoint=127)))
def test_tokens_of_plain_text_are_those_of_the_rule_for_any_script(text: str) -> None:
    marked = f"{text} é"
    assert tokens(text) == tokens(marked)[:-1]
    assert token_spans(text) == token_spans(marked)[:-1]


def dates_of(text: str) -> list[str]:
    return [text[start:end] for start, end in date_spans(text)]


def test_a_phrase_is_a_date_where_it_holds_nothing_but_date_words() -> None:
    dates = (
        "1933 | in 1933 | 5 May 1933 | May 5, 1933 | August 31st | January | the 1980s | 1933–1950 | c. 1650 | 44 BC"
        " | from 23 to 25 July 1900 | early 19th century | the twentieth century | 1933年5月3日 | 1990-05-12"
        " | 12.05.1990 | March 2 and 3, 2012 | १९४७ | ١٩٤٧"
    )
    for text in dates.split(" | "):
        assert is_date(text), text
    others = "of the | 12 | first | 1,045 stations | 1993 film | Nissan | 1963 monthly issue | 5.5 million | 春"
    for text in ("", *others.split(" | ")):
        assert not is_date(text), text


def test_dates_are_found_in_a_text_in_every_order_and_at_full_length() -> None:
    for text, dates in [
        ("Born on 5 May 1933, she worked from 1950–1972 in", ["5 May 1933", "1950–1972"]),
        ("in the 1980s and until March 3, 1990; he died in 44 BC.", ["1980s", "March 3, 1990", "44 BC"]),
        ("on 12 May 1990, in May 1990, on 12 May, 1990", ["12 May 1990", "May 1990", "12 May, 1990"]),
        ("March 2–3, 2012; March 2 and 3, 2012", ["March 2–3, 2012", "March 2 and 3, 2012"]),
        ("1914–18, 1914 - 1985, 2004–05", ["1914–18", "1914 - 1985", "2004–05"]),
    ]:
        assert dates_of(text) == dates


def test_months_that_are_verbs_and_plain_numbers_are_no_dates() -> None:
    others = "they may march on | 2,000 men | flight 17 | ISBN 1234-5678 | version 1.1999 | 1.2.1990.3 at 10.0.0.1"
    for text in others.split(" | "):
        assert dates_of(text) == [], text


def test_a_longer_date_has_a_year() -> None:
    for date, year in {"5 May 1933": "1933", "1990-05-12": "1990", "May 1933": "1933"}.items():
        assert year_in(date) == year
    for date in ("1933", "1933–1950", "the 1980s", "5 May"):
        assert year_in(date) == ""
