"""Answers become HTML in which citations are buttons, and nothing of a model or a document acts."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.serving.page.markdown import to_html

TITLES = {1: "Velm", 2: "Lake Sund", 12: "Marn"}
SAFE = {
    *("p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "button"),
}


class Reader(HTMLParser):
    """The tags of a text with their attributes, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    @property
    def cited(self) -> list[str | None]:
        return [attributes["data-number"] for tag, attributes in self.tags if tag == "button"]


def read(answer: str) -> Reader:
    return Reader(to_html(answer, TITLES))


def test_a_citation_is_a_button_that_names_its_source() -> None:
    html = to_html("It flows into Lake Sund [1].", TITLES)
    assert html == (
        '<p>It flows into Lake Sund <button type="button" class="citation" data-number="1"'
        ' aria-label="Source 1: Velm">1</button>.</p>\n'
    )


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("a [1][2]", ["1", "2"]),
        ("a [1, 12]", ["1", "12"]),
        ("a [1-2]", ["1", "2"]),
        ("a 【2】", ["2"]),
        ("**a [1]** and *b [2]*", ["1", "2"]),
        ("- a [1]\n- b [2]", ["1", "2"]),
        ("| a | b |\n|---|---|\n| c [1] | d |", ["1"]),
    ],
)
def test_citations_of_every_form_are_buttons(answer: str, cited: list[str]) -> None:
    assert read(answer).cited == cited


@pytest.mark.parametrize(
    "answer", ["the year [2024]", "no such [7]", "`code [1]`", "```\n[1]\n```", "[1](https://a.org)"]
)
def test_what_cites_nothing_stays_as_it_is(answer: str) -> None:
    assert read(answer).cited == []


def test_titles_cannot_break_out_of_a_button() -> None:
    hostile = 'x"><img src=x onerror=alert(1)>\u202e'
    reader = Reader(to_html("a [1]", {1: hostile}))
    assert [tag for tag, _ in reader.tags] == ["p", "button"]
    assert reader.tags[1][1]["aria-label"] == f"Source 1: {hostile}"


@pytest.mark.parametrize(
    "answer",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "![picture](https://evil.example/pixel.png)",
        "[click](javascript:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        "<javascript:alert(1)>",
        '<button class="citation" data-number="1">1</button>',
        "<style>*{display:none}</style><iframe src=//a.org></iframe>",
        "[a]: javascript:alert(1)\n\n[a]",
    ],
)
def test_hostile_markdown_is_text(answer: str) -> None:
    for tag, attributes in read(answer).tags:
        assert tag in {"p", "a"}
        assert str(attributes.get("href", "https://")).startswith("https://")


def test_links_open_elsewhere_and_tell_nobody() -> None:
    (_, (tag, attributes)) = read("[Velm](https://example.org/a?b=1)").tags
    assert (tag, attributes) == (
        "a",
        {"href": "https://example.org/a?b=1", "target": "_blank", "rel": "noopener noreferrer nofollow"},
    )


def test_columns_keep_their_alignment() -> None:
    answer = "| a | b | c | d |\n|---|:--|:-:|--:|\n| 1 | 2 | 3 | 4 |"
    aligned = [attributes.get("align") for tag, attributes in read(answer).tags if tag in ("th", "td")]
    assert aligned == [None, "left", "center", "right"] * 2


def test_headings_are_paragraphs_since_the_page_has_its_own() -> None:
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
