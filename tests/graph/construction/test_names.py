from __future__ import annotations

import unicodedata

from graph.text import Mention, NameMatcher, find_name, tokens

SENTENCES = {
    "Latin": ("Nissan Motor", "In 1933 the Nissan Motor company began."),
    "Latin with accents": ("Malmö", "She moved to Malmö."),
    "Cyrillic": ("Белогорка", "Село Белогорка стоит на озере."),
    "Arabic": ("وادي النور", "يقع وادي النور بين جبلين."),
    "Devanagari": ("सोनपुरा", "यह सोनपुरा गाँव है।"),
    "Han": ("日産自動車", "昔日産自動車は横浜にあった"),
    "Hangul, decomposed": ("현대자동차", unicodedata.normalize("NFD", "그는 현대자동차에서 일했다.")),
    "Thai": ("กรุงเทพ", "เขาอยู่กรุงเทพแล้ว"),
}


def found(matcher: NameMatcher, text: str) -> list[int]:
    return [mention.name for mention in matcher.find(tokens(text))]


def test_a_name_is_found_in_a_sentence_of_its_script() -> None:
    for script, (name, sentence) in SENTENCES.items():
        assert found(NameMatcher.of([("something else", 0), (name, 7)]), sentence) == [7], script


def test_only_whole_names_are_found_and_accents_count() -> None:
    for name, text in [
        ("Ford", "Fordham Road"),
        ("Malmö", "Malmo lies in Sweden"),
        ("Anna Berg", "Anna and Berg"),
        ("Nissan", ""),
    ]:
        assert found(NameMatcher.of([(name, 0)]), text) == [], name


def test_of_names_that_begin_alike_the_longest_is_found() -> None:
    matcher = NameMatcher.of([("New York", 0), ("New York City", 1), ("York City Hall", 2), ("New", 3)])
    assert found(matcher, "from New York City Hall to New York and new places") == [1, 0, 3]


def test_mentions_say_which_tokens_they_span_and_never_overlap() -> None:
    matcher = NameMatcher.of([("Lake Sund", 4), ("Sund Bridge", 5)])
    assert matcher.find(tokens("the lake, Sund bridge, Sund Bridge")) == [Mention(1, 3, 4), Mention(4, 6, 5)]
    assert found(NameMatcher.of([("Marn", 3)]), "Marn, Marn and Marn.") == [3, 3, 3]


def test_names_too_short_to_mean_one_thing_are_not_found() -> None:
    for name, is_found in [("UN", False), ("日", False), ("!!!", False), ("UNO", True), ("日産", True)]:
        assert found(NameMatcher.of([(name, 0)]), f"x {name} y") == [0] * is_found, name


class TestFindName:
    def test_it_gives_the_index_of_the_names_first_token(self) -> None:
        for text, name, at in [
            ("Marn is a town", "marn", 0),
            ("the town of Marn", "Marn", 3),
            ("Lake Marne and Marn", "Marn", 3),
            ("a town", "Marn", -1),
            ("日産は会社", "会社", 3),
            ("anything", "!!!", -1),
        ]:
            assert find_name(f" {' '.join(tokens(text))} ", name) == at, text
