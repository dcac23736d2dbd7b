from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph.text import counted, is_unspaced, name_length, normalise_name, title_name, token_spans, tokens
from tests.growth import grows_with_length_alone

SCRIPTS = {
    "Latin": "Nissan Motor",
    "Cyrillic": "Лада Веста",
    "Greek": "Αλκμήνη Ρούσου",
    "Arabic": "وادي النور",
    "Hebrew": "עמק האור",
    "Devanagari": "सोनपुरा",
    "Han": "日産自動車",
    "kana": "トヨタ",
    "Hangul": "현대자동차",
    "Thai": "กรุงเทพ",
}


class TestNormalForm:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Nissan", "NISSAN"),
            ("Straße", "STRASSE"),
            ("  Nissan   Motor\n", "nissan motor"),
            ("“Nissan”,", "Nissan"),
            ("Ｎｉｓｓａｎ", "Nissan"),
            ("ﾆｯｻﾝ", "ニッサン"),
            ("Mu\u0308nchen", "München"),
            ("Nis\u00adsan", "Nissan"),
            ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
            ("한국", unicodedata.normalize("NFD", "한국")),
            ("a\u200b\u0301", "á"),
        ],
    )
    def test_spellings_of_one_name_meet(self, one: str, other: str) -> None:
        assert normalise_name(one) == normalise_name(other)

    @pytest.mark.parametrize(("one", "other"), [("Malmö", "Malmo"), ("résumé", "resume"), ("が", "か"), ("й", "и")])
    def test_accents_tell_names_apart(self, one: str, other: str) -> None:
        assert normalise_name(one) != normalise_name(other)

    @pytest.mark.parametrize("name", [*SCRIPTS.values(), "+", "???", "¥", "☃", "—"])
    def test_a_visible_name_is_never_emptied(self, name: str) -> None:
        assert normalise_name(name)

    @pytest.mark.parametrize("name", ["", "  ", "\n\t", "\u00ad", "\u200b\ufeff"])
    def test_what_shows_nothing_has_an_empty_normal_form(self, name: str) -> None:
        assert normalise_name(name) == ""

    @given(st.text(max_size=30))
    @example("a\u200b\u0301")
    @example("ᾳ\u0301")
    @example("\u00a8x")
    @example("ﷺ")
    def test_the_normal_form_of_a_normal_form_is_itself(self, name: str) -> None:
        assert normalise_name(normalise_name(name)) == normalise_name(name)

    @given(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=10))
    def test_letters_digits_signs_and_punctuation_are_visible(self, name: str) -> None:
        assert normalise_name(name)


class TestTokens:
    def test_words_are_tokens_and_signs_are_not(self) -> None:
        assert tokens("Nissan's 370Z, built (in) Tochigi!") == ["nissan", "s", "370z", "built", "in", "tochigi"]

    def test_characters_of_unspaced_scripts_are_tokens_of_their_own(self) -> None:
        assert tokens("日産は1933年") == ["日", "産", "は", "1933", "年"]
        assert tokens("현대차가") == ["현", "대", "차", "가"]
        assert tokens("トヨタは") == ["トヨタ", "は"]

    def test_vowel_signs_stay_with_their_letters(self) -> None:
        assert tokens("सोनपुरा नदी") == ["सोनपुरा", "नदी"]
        assert all(unicodedata.category(token[0])[0] == "L" for token in tokens("ที่นี่"))

    def test_unspaced_tokens_are_told_apart(self) -> None:
        assert [token for token in tokens("Nissan日産") if is_unspaced(token)] == ["日", "産"]

    @pytest.mark.parametrize(
        "text",
        [
            *SCRIPTS.values(),
            unicodedata.normalize("NFD", "한국 자동차, Malmö und か゚"),
            "the Nis\u00adsan Micra",
            "محمد ﷺ said ½ of ﬁve ⑫",
            "ﾆｯｻﾝ ２０２４年",
            "İstanbul STRASSE straße",
        ],
    )
    def test_spans_hold_the_same_tokens_and_point_into_the_text_as_given(self, text: str) -> None:
        spans = token_spans(text)
        assert [token for token, _, _ in spans] == tokens(text)
        for token, start, end in spans:
            assert token in tokens(text[start:end])

    @given(st.text(max_size=60))
    def test_spans_lie_in_order_and_no_token_holds_a_space(self, text: str) -> None:
        position = 0
        for token, start, end in token_spans(text):
            assert position <= start < end <= len(text)
            assert token
            assert not any(character.isspace() for character in token)
            position = start


class TestNameLength:
    @pytest.mark.parametrize(
        ("name", "length"), [("UN", 2), ("U.N.", 2), ("NYC", 3), ("日", 2), ("日産", 4), ("R2", 2), ("", 0), ("!!!", 0)]
    )
    def test_letters_and_digits_count_and_characters_of_unspaced_scripts_twice(self, name: str, length: int) -> None:
        assert name_length(name) == length


class TestTitleName:
    @pytest.mark.parametrize(
        ("title", "name"),
        [
            ("Nissan", "Nissan"),
            ("Mercury (planet)", "Mercury"),
            ("Mercury (planet) ", "Mercury"),
            ("(sic)", "(sic)"),
            ("Tora! Tora! Tora! (film) (1970)", "Tora! Tora! Tora! (film)"),
            ("f(x) band", "f(x) band"),
            ("", ""),
        ],
    )
    def test_a_trailing_parenthesis_goes_unless_nothing_would_be_left(self, title: str, name: str) -> None:
        assert title_name(title) == name


@pytest.mark.parametrize(
    "text",
    [
        "x" + "!" * 100_000 + "x",
        "x" + " " * 100_000 + "x",
        "." * 100_000,
        "a. " * 40_000,
        "a." + " " * 100_000 + "b",
        ("\n" + " " * 50) * 2_000,
        "\n" + " " * 100_000 + "x",
        "(" * 100_000,
        "( " * 50_000,
        'a."""' * 20_000,
        "Mr. " * 25_000,
    ],
    ids=lambda text: f"{text[:6]!r}",
)
def test_pathological_text_takes_no_longer_than_its_length_explains(text: str) -> None:
    def work(length: int) -> None:
        piece = text[:length]
        normalise_name.__wrapped__(piece)
        title_name(piece)
        token_spans(piece)

    assert grows_with_length_alone(work, len(text) // 8)


def test_a_noun_is_singular_beside_one_alone() -> None:
    told = [counted(count, "passage") for count in (0, 1, 2, 1_200)]
    assert told == [
        "0 passages",
        "1 passage",
        "2 passages",
        "1,200 passages",
    ]
    assert counted(1, "passage is", "passages are") == "1 passage is"
    assert counted(2, "passage is", "passages are") == "2 passages are"


@given(st.text(st.characters(max_codepoint=127)))
def test_tokens_of_plain_text_are_those_of_the_rule_for_any_script(text: str) -> None:
    marked = f"{text} é"
    assert tokens(text) == tokens(marked)[:-1]
    assert token_spans(text) == token_spans(marked)[:-1]
