"""Answers become HTML in which citations are buttons, and nothing of a model or a document acts."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.serving.page.reader import Reader
from workflows.serving.page.markdown import Written, to_html

TITLES = {1: "Velm", 2: "Lake Sund", 12: "Marn"}
SAFE = {
    *("p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "button", "span"),
}


def read(answer: str) -> Reader:
    return Reader(to_html(answer, TITLES))


def test_citations_of_every_form_are_buttons() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("a [1, 12]", ["1", "12"]),
        ("a [1-2]", ["1", "2"]),
        ("a 【2】", ["2"]),
        ("| a | b |\n|---|---|\n| c [1] | d |", ["1"]),
    ]
    for answer, cited in cases:
        assert read(answer).cited == cited


def test_what_cites_nothing_stays_as_it_is() -> None:
    for answer in ["the year [2024]", "no such [7]", "`code [1]`", "```\n[1]\n```", "[1](https://a.org)"]:
        assert read(answer).cited == []


def test_titles_cannot_break_out_of_a_button() -> None:
    hostile = 'x"><img src=x onerror=alert(1)>\u202e'
    reader = Reader(to_html("a [1]", {1: hostile}))
    assert [tag for tag, _ in reader.tags] == ["p", "button"]
    assert reader.tags[1][1]["aria-label"] == f"Source 1: {hostile}"


def test_neighbouring_sentences_show_a_source_that_they_share_once() -> None:
    for answer, shown in [
        ("A is old [1]. It is big [1].", "A is old. It is big1."),
        ("A is old [1]. It is big [2].", "A is old1. It is big2."),
        ("A is old [1]. B is uncited. It is big [1].", "A is old1. B is uncited. It is big1."),
        ("A is old [1].\n\nIt is big [1].", "A is old1.\nIt is big1."),
        ("国は古い [1]。町も古い [1]。", "国は古い。町も古い1。"),
    ]:
        assert read(answer).words.replace("\n", "") == shown.replace("\n", "")


def test_numbers_count_by_first_use() -> None:
    html = to_html("a [12], b [2, 12]", TITLES)
    assert [each["data-number"] for tag, each in Reader(html).tags if tag == "button"] == ["12", "2", "12"]
    assert re.findall(r">([0-9]+)</button>", html) == ["1", "2", "1"]
    assert 'aria-label="Source 1: Marn"' in html


LONG = (
    "# Rivers\n\nThe **Velm** [9] is *old\nand* long [7, 9].\n\n- one\n- two\n\n  more\n\n"
    "```\na\n\nb\n```\n| a |\n|--:|\n| 1 |\n\nEnd [7]."
)


@given(st.lists(st.integers(0, len(LONG)), max_size=12))
def test_an_answer_that_is_being_written_becomes_what_it_is_once_it_is_written(cuts: list[int]) -> None:
    written, shown = Written(), list[str]()
    for start, end in pairwise([0, *sorted(cuts), len(LONG)]):
        first, blocks = written.more(LONG[start:end])
        assert first <= len(shown)
        shown[first:] = blocks
    assert shown == Written().more(LONG)[1]
    assert len(shown) == 6


def test_links_open_elsewhere_columns_keep_their_alignment_and_headings_are_paragraphs() -> None:
    (_, (tag, attributes)) = read("[Velm](https://example.org/a?b=1)").tags
    expected = {"href": "https://example.org/a?b=1", "target": "_blank", "rel": "noopener noreferrer nofollow"}
    assert (tag, attributes) == ("a", expected)
    answer = "| a | b | c | d |\n|---|:--|:-:|--:|\n| 1 | 2 | 3 | 4 |"
    aligned = [attributes.get("align") for tag, attributes in read(answer).tags if tag in ("th", "td")]
    assert aligned == [None, "left", "center", "right"] * 2
    assert read("# Rivers\n\ntext").tags[0] == ("p", {"class": "heading"})


@given(st.text(alphabet=st.sampled_from("ab[]()<>!#*_`|-\n :/&;\"'=1234567890javscriptonerrhtp\\~"), max_size=120))
def test_whatever_is_written_only_harmless_tags_come_out(answer: str) -> None:
    for tag, attributes in read(answer).tags:
        assert tag in SAFE
        assert attributes.keys() <= {
            "href",
            "title",
            "target",
            "rel",
            "class",
            "type",
            "data-number",
            "aria-label",
            "start",
            "align",
        }
        assert str(attributes.get("href", "https:")).partition(":")[0].lower() in {"http", "https", "mailto"} or (
            ":" not in str(attributes["href"])
        )
