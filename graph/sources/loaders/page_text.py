"""From the elements of a page to blocks of text: paragraphs, list items, rows of tables, headings, links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph.sources.loaders.document import TextBuilder
from graph.sources.loaders.table import MOST_COLUMNS_SPANNED, row_lines

_HEADINGS = {f"h{level}": level for level in range(1, 10)}
"""Of web pages, which have six, and of Word, which has nine."""

_LINES = frozenset({"li", "dt", "dd", "option"})
_SECTIONS = frozenset({"article", "body", "footer", "header", "html", "main", "section"})
_GROUPS = frozenset({"dl", "fieldset", "figure", "hgroup", "menu", "ol", "ul", "details", "dir", "center"})
_BLOCKS = _SECTIONS | _GROUPS | _HEADINGS.keys() | {"address", "blockquote", "caption", "div", "figcaption", "hr"}
_BLOCKS |= {"legend", "p", "pre", "summary"}
_TABLES = frozenset({"table", "thead", "tr", "td", "th"})
_BULLET, _OF_TERM = "- ", ":"
_LONGEST_TERM = 60


@dataclass(slots=True)
class _Row:
    cells: list[str] = field(default_factory=list)
    headers: int = 0
    links: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Table:
    """A table that is open; one that lays a page out gives blocks instead of rows."""

    rows: list[_Row] = field(default_factory=list)
    row: _Row = field(default_factory=_Row)
    cell: list[str] | None = None
    columns: int = 1
    has_head: bool = False
    is_layout: bool = False

    @property
    def has_header(self) -> bool:
        """Whether the first row is marked as the header."""
        first = self.rows[0]
        return self.has_head or (first.headers > 1 and first.headers >= sum(map(bool, first.cells)))


class _Line:
    """Text as a browser shows it: white space collapsed, line breaks kept."""

    def __init__(self) -> None:
        self.links: list[tuple[int, str]] = []
        self._parts: list[str] = []
        self._length = 0
        self._space = False

    def add(self, text: str) -> None:
        words = " ".join(text.split())
        if words and self._parts and self._parts[-1] != "\n" and (self._space or text[0].isspace()):
            self.add_verbatim(" ")
        if words:
            self.add_verbatim(words)
        self._space = bool(text) and (text[-1].isspace() or (self._space and not words))

    def add_verbatim(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
        self._space = False

    def link(self, url: str) -> None:
        self.links.append((self._length, url))

    @property
    def text(self) -> str:
        return "".join(self._parts)


class PageText:
    """Takes the elements of the main text, and gives its blocks to a builder."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._line = _Line()
        self._tables: list[_Table] = []
        self._level = self._verbatim = 0
        self._gap = "\n\n"
        self._sign = ""
        self._term: _Line | None = None

    def start(self, tag: str, attributes: Mapping[str, Any]) -> None:
        """An element begins."""
        if tag == "br":
            self._line.add_verbatim("\n")
        elif tag == "a":
            if attributes.get("href"):
                self._line.link(str(attributes["href"]))
        elif tag in _TABLES:
            self._flush()
            self._start_table(tag, attributes)
        elif tag in _BLOCKS or tag in _LINES:
            self._break(tag)
            if tag == "li":
                self._sign = _BULLET
            elif tag == "dd":
                self._sign = _OF_TERM
            if tag in _HEADINGS:
                self._lay_out()
                self._level = _HEADINGS[tag]
            self._verbatim += tag == "pre"

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag in _TABLES:
            self._flush()
            self._end_table(tag)
        elif tag in _BLOCKS or tag in _LINES:
            if tag == "dt":
                self._hold_term()
            self._flush()
            if tag == "dl":
                self._give_term()
            self._break(tag)
            if tag in ("li", "dd"):
                self._sign = ""
            self._level = 0 if tag in _HEADINGS else self._level
            self._verbatim -= tag == "pre"

    def data(self, text: str) -> None:
        """Text of the open element."""
        if self._verbatim:
            self._line.add_verbatim(text.replace("\r\n", "\n"))
        else:
            self._line.add(text)

    def close(self) -> None:
        """The page ends."""
        self._flush()
        while self._tables:
            self._end_table("table")
        self._give_term()

    @property
    def _table(self) -> _Table | None:
        return self._tables[-1] if self._tables else None

    def _break(self, tag: str) -> None:
        self._flush()
        if tag not in _LINES:
            self._gap = "\n\n"

    def _flush(self) -> None:
        """Give the open line to the open cell, else to the builder."""
        line, self._line = self._line, _Line()
        table = self._table
        if table is not None and table.cell is not None and not table.is_layout:
            table.row.links.extend((0, url) for _, url in line.links)
            table.cell.append(" ".join(line.text.split()))
        elif line.text.strip() or line.links:
            self._give(line)

    def _give(self, line: _Line) -> None:
        """Give a line to the builder: behind the sign of its list, or behind the term that it explains."""
        lead, links = "", list[tuple[int, str]]()
        if line.text.strip():
            sign, self._sign = self._sign, ""
            if sign == _OF_TERM and self._term is not None:
                lead, links, self._term = f"{self._term.text.strip()}: ", self._term.links, None
            elif sign == _BULLET and not self._level:
                lead = _BULLET
            self._give_term()
        text = lead + (line.text.lstrip() if lead else line.text)
        moved = len(text) - len(line.text)
        self._builder.add(
            text, self._gap, self._level, [*links, *((max(0, place + moved), url) for place, url in line.links)]
        )
        self._gap = "\n" if line.text.strip() else self._gap

    def _hold_term(self) -> None:
        """Keep the open line for the explanation that follows it, if it may stand before a colon."""
        term = self._line.text.strip()
        is_free = not self._tables or self._tables[-1].is_layout
        if is_free and 0 < len(term) <= _LONGEST_TERM and term[-1] not in ".:;!?" and "\n" not in term:
            self._give_term()
            self._term, self._line = self._line, _Line()

    def _give_term(self) -> None:
        """Give the builder the term that was kept and has no explanation."""
        term, self._term = self._term, None
        if term is not None:
            self._builder.add(term.text, self._gap, links=term.links)
            self._gap = "\n"

    def _start_table(self, tag: str, attributes: Mapping[str, Any]) -> None:
        if tag == "table":
            self._give_term()
            self._lay_out()
            self._tables.append(_Table())
            self._gap = "\n\n"
            return
        table = self._table
        if table is None or table.is_layout:
            self._gap = "\n\n"
            return
        self._end_cell(table)
        if tag == "tr":
            self._end_row(table)
        elif tag == "thead":
            table.has_head = not table.rows
        else:
            table.cell = []
            table.row.headers += tag == "th"
            table.columns = _columns_spanned(attributes)

    def _end_table(self, tag: str) -> None:
        table = self._table
        if table is None or tag == "thead":
            return
        self._end_cell(table)
        if tag in ("tr", "table"):
            self._end_row(table)
        if tag == "table":
            self._give_rows(table)
            self._tables.pop()
            self._gap = "\n\n"

    def _end_cell(self, table: _Table) -> None:
        if table.cell is not None:
            table.row.cells += [" ".join(filter(None, table.cell)), *[""] * (table.columns - 1)]
            table.cell = None

    def _end_row(self, table: _Table) -> None:
        if any(table.row.cells):
            table.rows.append(table.row)
        table.row = _Row()

    def _give_rows(self, table: _Table) -> None:
        """Give the rows to the builder, each with the names of its columns."""
        rows, gap = table.rows, "\n\n"
        if rows:
            for row, line in zip(rows, row_lines([row.cells for row in rows], table.has_header), strict=True):
                self._builder.add(line, gap, links=row.links)
                gap = "\n" if line else gap
            self._gap = "\n\n"
        table.rows = []

    def _lay_out(self) -> None:
        """Take the innermost table for one that lays the page out, since a cell holds a table or a heading."""
        table = self._table
        if table is None or table.cell is None or table.is_layout:
            return
        self._end_cell(table)
        self._give_rows(table)
        links = table.row.links
        for cell in filter(None, table.row.cells):
            self._builder.add(cell, links=links)
            links = []
        table.row, table.is_layout = _Row(), True
        self._gap = "\n\n"


def _columns_spanned(attributes: Mapping[str, Any]) -> int:
    """Return how many columns a cell takes."""
    given = str(attributes.get("colspan", "")).strip()
    columns = int(given) if given.isascii() and given.isdigit() and len(given) < 5 else 1
    return columns if 0 < columns <= MOST_COLUMNS_SPANNED else 1
