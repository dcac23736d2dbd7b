"""Answers as HTML: Markdown without HTML of its own, its citations buttons, and nothing in it that a page obeys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agents.answers.citations import CITATION, parse_citations
from graph.errors import DependencyMissing
from workflows.output.printable import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_CITATION = re.compile(CITATION)
_TAGS = {
    *("p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "button"),
}
_ATTRIBUTES = {
    "a": {"href", "title", "target"},
    "ol": {"start"},
    "p": {"class"},
    "th": {"align"},
    "td": {"align"},
    "button": {"type", "class", "data-number", "aria-label"},
}


def check_installed() -> None:
    """Raise DependencyMissing where answers cannot be shown for want of a package."""
    missing = [name for name in ("markdown_it", "nh3") if find_spec(name) is None]
    if missing:
        raise DependencyMissing(
            f"The page needs packages that are not installed ({', '.join(missing)})",
            "Install them with: pip install 'mara-rag[serve]'",
        )


def to_html(answer: str, titles: Mapping[int, str]) -> str:
    """Return an answer as HTML that a page may take in as it is.

    Args:
        answer: Markdown; HTML in it is shown as text, and pictures as the links that they are.
        titles: of the passages that it may cite, by their numbers; citations of others stay text.
    """
    return clean(_parser().render(visible(answer), {"titles": titles}))


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
    titles: Mapping[int, str] = state.env["titles"]
    for block in state.tokens:
        if block.type == "inline":
            block.children = [part for token in block.children or [] for part in _parts(token, titles)]


def _parts(token: Token, titles: Mapping[int, str]) -> Iterator[Token]:
    from markdown_it.token import Token

    if token.type != "text":
        yield token
        return
    written = 0
    for found in _CITATION.finditer(token.content):
        numbers = parse_citations(found[0], titles).numbers
        if numbers:
            yield Token("text", "", 0, content=token.content[written : found.start()])
            yield Token("citation", "", 0, meta={number: titles[number] for number in numbers})
            written = found.end()
    yield Token("text", "", 0, content=token.content[written:])


def _button(renderer: Any, tokens: list[Token], place: int, options: Any, env: Any) -> str:
    from html import escape

    return "".join(
        f'<button type="button" class="citation" data-number="{number}"'
        f' aria-label="{escape(f"Source {number}: {title}")}">{number}</button>'
        for number, title in tokens[place].meta.items()
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
