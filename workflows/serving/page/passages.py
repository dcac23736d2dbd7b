"""A passage as HTML: its Markdown rendered, rows of data as tables with their columns, and the cited words marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from graph.sentences import key_values
from graph.sources.loaders.fields import PLACE_KEYS
from workflows.output.printable import visible
from workflows.output.quoted import place_of
from workflows.serving.page.markdown import align_cells, clean, lower_headings

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

BEFORE, AFTER = "before", "after"
"""Where other passages of a document stand."""

Span = tuple[int, int]

_BEGIN, _END = "\u2e44", "\u2e43"
"""Signs around cited words while a text is rendered: punctuation, beside which emphasis begins and ends as before."""

_SIGNS = {ord(sign): "-" for sign in (_BEGIN, _END)}
_SIGN = re.compile(f"[{_BEGIN}{_END}]")
_PIECE = re.compile(rf'<(?:"[^"]*"|[^">])*>|[{_BEGIN}{_END}]|[^<{_BEGIN}{_END}]+')
_LINE_SIGNS = re.compile(r"[ \t]*```[^\n]*\n?|(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)]|#{1,6})[ \t]+)*[ \t]*")
_BEFORE_VALUE, _BEHIND_VALUE = f" \t*_:{_BEGIN}{_END}", f" \t*_;{_BEGIN}{_END}"
_FENCE = "```"


def passage_html(text: str, spans: Iterable[Span] = ()) -> str:
    """Return a passage as HTML that the page may take in as it is.

    Args:
        text: the passage's; HTML in it is shown as text, and pictures as the links that they are.
        spans: where cited words begin and end.
    """
    signed = _signed(text.translate(_SIGNS), sorted(spans))
    parts = groupby(signed.split("\n"), key=_columns)
    html = "\n".join(
        _rows(columns, [*lines]) if columns else _parser().render("\n".join(lines)) for columns, lines in parts
    )
    return visible("".join(_marked(clean(html))))


def passage_told(hit: Mapping[str, Any], citations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return where a passage stands in words, and what else is known of it that its text does not hold."""
    ended = f"superseded on {hit['superseded_at']}" if hit.get("superseded_at") else ""
    said = {*PLACE_KEYS, *_columns(hit["text"])}
    return {
        "place": visible(" · ".join(filter(None, (place_of(hit, citations), ended)))),
        "metadata": {visible(key): value for key, value in hit["metadata"].items() if key not in said},
    }


def _signed(text: str, spans: Sequence[Span]) -> str:
    """Return a text with signs around spans, none of them where it would take its meaning from what stands there."""
    written, parts = 0, []
    for start, end in spans:
        begin = max(written, start, _behind_line_signs(text, start))
        stop = len(text[:end].rstrip().removesuffix(_FENCE).rstrip())
        if begin < stop:
            parts += [text[written:begin], _BEGIN, text[begin:stop], _END]
            written = stop
    return "".join([*parts, text[written:]])


def _behind_line_signs(text: str, place: int) -> int:
    """Return the place behind the signs that the line of a place begins with."""
    signs = _LINE_SIGNS.match(text, text.rfind("\n", 0, place) + 1)
    return signs.end() if signs else place


def _columns(line: str) -> tuple[str, ...]:
    """Return the names of the columns of a line that is a row of data; nothing for any other."""
    plain = _SIGN.sub("", line)
    cells = key_values(plain, 0, len(plain))
    return tuple(cell.key for cell in cells) if len(cells) > 1 else ()


def _rows(columns: Sequence[str], lines: Sequence[str]) -> str:
    """Return rows of the same columns as a table; a single one with a line for each of its cells."""
    rows = [[*_values(line)] for line in lines]
    if len(rows) == 1:
        body = "".join(
            f"<tr><th>{escape(name)}</th><td>{cell}</td></tr>" for name, cell in zip(columns, rows[0], strict=True)
        )
        return f"<table><tbody>{body}</tbody></table>"
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _values(line: str) -> Iterator[str]:
    """Yield the cells of a row without the names of their columns, whose signs stand before them."""
    plain = _SIGN.sub("", line)
    place = [at for at, sign in enumerate(line) if sign not in (_BEGIN, _END)]
    cells = key_values(plain, 0, len(plain))
    starts = [0, *(place[cell.start] for cell in cells[1:]), len(line)]
    for cell, (start, stop) in zip(cells, pairwise(starts), strict=True):
        name = place[cell.end] if cell.end < len(place) else stop
        value = line[name:stop].lstrip(_BEFORE_VALUE)
        content = value.rstrip(_BEHIND_VALUE)
        yield escape(_signs(line[start : stop - len(value)]) + content + _signs(value[len(content) :]))


def _signs(text: str) -> str:
    return "".join(_SIGN.findall(text))


def _marked(html: str) -> Iterator[str]:
    """Yield HTML with marks in place of the signs: one around each text between them, names of columns aside."""
    is_cited = is_name = False
    for piece in _PIECE.findall(html):
        if piece in (_BEGIN, _END):
            is_cited = piece == _BEGIN
        elif piece[0] == "<":
            is_name = piece == "<th>"
            yield _SIGN.sub("", piece)
        else:
            yield f"<mark>{piece}</mark>" if is_cited and not is_name and piece.strip() else piece


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.enable(["table", "strikethrough"]).disable(["image", "code", "reference"])
    parser.core.ruler.push("headings", lower_headings)
    parser.core.ruler.push("cells", align_cells)
    return parser
