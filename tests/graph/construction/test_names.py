from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.columns import SortedMapping, TextTable
from graph.text import Mention, NameMatcher, find_name, tokens
from tests.snapshots import lists_of

SENTENCES = {
    "Latin": ("Nissan Motor", "In 1933 the Nissan Motor company began."),
    "Latin with accents": ("Malmö", "She moved to Malmö."),
    "Cyrillic": ("Белогорка", "Село Белогорка стоит на озере."),
    "Greek": ("Αλκμήνη Ρούσου", "Η ΑΛΚΜΉΝΗ ΡΟΎΣΟΥ ζωγράφιζε."),
    "Arabic": ("وادي النور", "يقع وادي النور بين جبلين."),
    "Hebrew": ("עמק האור", "זהו עמק האור."),
    "Devanagari": ("सोनपुरा", "यह सोनपुरा गाँव है।"),
    "Han": ("日産自動車", "昔日産自動車は横浜にあった"),
    "kana": ("トヨタ", "昨日トヨタの車を見た"),
    "Hangul": ("현대자동차", "그는 현대자동차에서 일했다."),
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


name_lists = st.lists(st.lists(st.sampled_from(["Ann", "Bob", "日", "-", "(x)"]), max_size=3).map(" ".join), max_size=6)
token_lists = st.lists(st.sampled_from(["ann", "bob", "日", "x", "eve"]), max_size=12)


def sorted_mapping(lists: Mapping[str, Sequence[int]]) -> SortedMapping[Sequence[int]]:
    keys = sorted(lists)
    return SortedMapping(TextTable.of(([key] for key in keys), 1).column(0), lists_of(lists[key] for key in keys))


@given(name_lists, token_lists, st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_matcher_over_columns_finds_what_the_one_that_learnt_the_names_finds(
    names: list[str], words: list[str], among: list[bool]
) -> None:
    learnt = NameMatcher.of([(name, index) for index, name in enumerate(names)])
    over = NameMatcher(sorted_mapping(learnt.indices), sorted_mapping(learnt.lengths))
    assert over.find(words) == learnt.find(words)
    assert over.find(words, np.array(among)) == learnt.find(words, np.array(among))


@given(st.lists(st.sampled_from(["ann", "bob", "cat", "dan", "eve"]), max_size=12), st.data())
def test_a_mention_spells_its_name_and_no_longer_name_stands_there(words: list[str], data: st.DataObject) -> None:
    name = st.lists(st.sampled_from(["ann", "bob", "cat"]), min_size=1, max_size=3).map(" ".join)
    names = data.draw(st.lists(name, unique=True, max_size=6))
    position = 0
    for mention in NameMatcher.of([(name, index) for index, name in enumerate(names)]).find(words):
        assert position <= mention.start
        assert " ".join(words[mention.start : mention.end]) == names[mention.name]
        longer = [" ".join(words[mention.start : end]) for end in range(mention.end + 1, len(words) + 1)]
        assert not set(longer) & set(names)
        position = mention.end


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
