"""A passage is rendered with its cited words marked, rows of data as tables, and its place told in words."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.serving.page.reader import Reader
from workflows.serving.page.passages import passage_html, passage_told

SAFE = {
    *("p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a", "mark"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def read(text: str, *cited: str) -> Reader:
    spans = [(text.index(words), text.index(words) + len(words)) for words in cited]
    return Reader(passage_html(text, spans))


def test_cited_words_are_marked_wherever_they_stand_in_markdown() -> None:
    for text, cited, marked in [
        ("𝒜 river. 青石鎮 lies on it.", "青石鎮", "青石鎮"),
        ("Nissan **was founded** in 1933.", "Nissan **was", "Nissan was"),
        ("**Foo.** Bar.", "**Foo.**", "Foo."),
        ("- one two\n- three", "- one two\n- thr", "one twothr"),
        ("```\nx = 1\n```\nafter", "```\nx = 1\n```", "x = 1\n"),
    ]:
        reader = read(text, cited)
        assert reader.marked.replace("\n", "") == marked.replace("\n", "")
        assert all(
            str(attributes.get("href", "https://example.org/a")) == "https://example.org/a"
            for _, attributes in reader.tags
        ), text


def test_spans_that_overlap_are_marked_once_and_empty_ones_not_at_all() -> None:
    html = passage_html("abcdefghij", [(0, 5), (3, 8), (4, 6), (9, 9)])
    assert html == "<p><mark>abcde</mark><mark>fgh</mark>ij</p>\n"


def test_a_row_of_data_has_a_line_for_each_column_and_rows_alike_are_one_table() -> None:
    row = "Model: Torvik; Price: 40; Colour: red"
    reader = read(row, "Price: 40")
    assert [tag for tag, _ in reader.tags if tag in ("th", "td")] == ["th", "td"] * 3
    assert reader.words == "ModelTorvikPrice40Colourred"
    assert reader.marked == "40"
    rows = Reader(passage_html(f"Lamps:\n{row}\nModel: Karv; Price: 35; Colour: <b>\nThat is all."))
    assert [tag for tag, _ in rows.tags if tag in ("th", "td")] == ["th"] * 3 + ["td"] * 6
    assert "Karv35<b>" in rows.words
    assert rows.words.rstrip().endswith("That is all.")


def test_what_a_document_writes_is_never_obeyed_nor_lost() -> None:
    reader = read(
        "<img src=x onerror=alert(1)> ![x](https://evil.example/p.png)\n\n[a]: https://evil.example\n\u202etxt"
    )
    assert {tag for tag, _ in reader.tags} <= {"p", "br", "a"}
    assert "<img src=x onerror=alert(1)>" in reader.words
    assert "[a]: https://evil.example" in reader.words
    assert "\u202e" not in reader.words


@given(
    st.text(alphabet=st.sampled_from('ab[]()<>!#*_`|-\n :;/&"1\u2e44\u2e43'), max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=3),
)
def test_whatever_is_cited_only_harmless_tags_come_out(text: str, spans: list[tuple[int, int]]) -> None:
    html = passage_html(text, [(min(pair), min(max(pair), len(text))) for pair in spans])
    assert {tag for tag, _ in Reader(html).tags} <= SAFE
    assert "\u2e44" not in html
    assert "\u2e43" not in html


def hit(text: str = "Old.", **metadata: Any) -> dict[str, Any]:
    return {"number": 1, "title": "T", "text": text, "source": "box/t.eml", "metadata": metadata}


def test_a_place_is_told_in_words_and_nothing_of_it_twice() -> None:
    internals: dict[str, Any] = {"document": "d", "chunk": 0, "chunks": 2, "start": 0, "end": 606, "file": "box/t.pdf"}
    told = passage_told({**hit(), "metadata": {**internals, "section": "Age", "page": 3, "year": 1933}}, [])
    assert told == {"place": "box/t.eml · Age · page 3", "metadata": {"year": 1933}}
    row = hit("Model: Torvik; Price: 40", Model="Torvik", Price=40, tenant="a")
    assert passage_told(row, [])["metadata"] == {"tenant": "a"}, "cells of a row are told by it"
    assert passage_told({**hit(), "superseded_at": "2024-02-01"}, [])["place"] == "box/t.eml · superseded on 2024-02-01"
