"""Answers as HTML: Markdown without HTML of its own, its citations buttons, and nothing in it that a page obeys."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from functools import cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from agents.answers.citations import CITATION, MARK, parse_citations, without_half_citation
from workflows.output.printable import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_CITATION = re.compile(CITATION)
_EVERY_NUMBER = range(1_000)
_ANOTHER_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]]*\s+\S")
_TAGS = {
    *("p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "button", "span"),
}
_ATTRIBUTES = {
    "a": {"href", "title", "target"},
    "ol": {"start"},
    "p": {"class"},
    "span": {"class"},
    "th": {"align"},
    "td": {"align"},
    "button": {"type", "class", "data-number", "aria-label"},
}


def to_html(answer: str, titles: Mapping[int, str] | None = None, marks: Mapping[int, int] | None = None) -> str:
    """Return an answer as HTML that a page may take in as it is.

    Neighbouring sentences of a paragraph that cite the same show the mark once, behind the last of them.

    Args:
        answer: Markdown; HTML in it is shown as text, and pictures as the links that they are.
        titles: of the passages that it may cite, by their numbers; citations of others stay text. None for an answer
            that is being written: any number is a mark, and opens nothing.
        marks: the numbers that stand for those of the passages; by default as they come in the answer.
    """
    answer = visible(answer)
    env = {"titles": titles, "marks": marks_of(answer) if marks is None else marks}
    return clean(_parser().render(answer, env))


def marks_of(answer: str) -> dict[int, int]:
    """Return for each number that an answer cites the one that it is shown by: from 1, as they come."""
    return {number: mark for mark, number in enumerate(parse_citations(answer, _EVERY_NUMBER).numbers, start=1)}


class Written:
    """An answer that is being written, as blocks of HTML: paragraphs, lists, tables."""

    def __init__(self) -> None:
        self._text = ""
        self._blocks: list[str] = []

    def more(self, words: str) -> tuple[int, list[str]]:
        """Take in the next words; return the place of the first block that they change, and the blocks from there."""
        self._text += visible(words)
        before, self._blocks = self._blocks, [*_blocks(self._text)]
        first = len([*takewhile(lambda pair: pair[0] == pair[1], zip(before, self._blocks, strict=False))])
        return first, self._blocks[first:]


def _blocks(answer: str) -> Iterator[str]:
    """Yield the HTML of each block, of an answer that is being written, that stands in no other."""
    env = {"titles": None, "marks": marks_of(answer)}
    parser = _parser()
    block: list[Token] = []
    for token in parser.parse(without_half_citation(answer), env):
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield clean(parser.renderer.render(block, parser.options, env)).strip()
            block.clear()


def clean(html: str) -> str:
    """Return HTML without anything that a page would obey."""
    import nh3

    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.core.ruler.push("citations", _mark_citations)
    parser.core.ruler.push("headings", lower_headings)
    parser.core.ruler.push("cells", align_cells)
    parser.add_render_rule("citation", _button)
    return parser


def _mark_citations(state: StateCore) -> None:
    """Make tokens of the citations in the texts of an answer, those of its code and links aside."""
    titles: Mapping[int, str] | None = state.env["titles"]
    known = _EVERY_NUMBER if titles is None else titles
    for block in state.tokens:
        if block.type == "inline":
            parts = [part for token in block.children or [] for part in _parts(token, known)]
            block.children = [*_once(parts)]


def _once(parts: Sequence[Token]) -> Iterator[Token]:
    """Yield the parts of a paragraph without citations that the next sentence repeats."""
    citations = [place for place, part in enumerate(parts) if part.type == "citation"]
    repeated = set()
    for place, following in pairwise(citations):
        between = "".join(part.content or " " for part in parts[place + 1 : following])
        is_next = MARK not in between and not _ANOTHER_SENTENCE.search(between.lstrip(" .!?…。！？"))
        if is_next and parts[place].meta == parts[following].meta:
            repeated.add(place)
    return (part for place, part in enumerate(parts) if place not in repeated)


def _parts(token: Token, titles: Container[int]) -> Iterator[Token]:
    from markdown_it.token import Token

    if token.type != "text":
        yield token
        return
    written = 0
    for match in _CITATION.finditer(token.content):
        numbers = parse_citations(match[0], titles).numbers
        if numbers:
            yield Token("text", "", 0, content=token.content[written : match.start()].rstrip())
            yield Token("citation", "", 0, meta={"numbers": numbers})
            written = match.end()
    yield Token("text", "", 0, content=token.content[written:])


def _button(renderer: Any, tokens: list[Token], place: int, options: Any, env: Any) -> str:
    from html import escape

    titles, marks = env["titles"], env["marks"]
    numbers = tokens[place].meta["numbers"]
    if titles is None:
        return "".join(f'<span class="citation">{marks.get(number, number)}</span>' for number in numbers)
    return "".join(
        f'<button type="button" class="citation" data-number="{number}"'
        f' aria-label="{escape(f"Source {marks[number]}: {titles[number]}")}">{marks[number]}</button>'
        for number in numbers
    )


def lower_headings(state: StateCore) -> None:
    """Make paragraphs of headings: the page has its own."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
            if token.type == "heading_open":
                token.attrSet("class", "heading")


def align_cells(state: StateCore) -> None:
    """Align the cells of tables by an attribute: the page obeys no styles but its own."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and token.attrs:
            token.attrs = {"align": str(token.attrs["style"]).removeprefix("text-align:")}
