"""From the elements of a web page to blocks of text: paragraphs, list items, rows of tables, headings, links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph.loaders.document import TextBuilder

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LINES = frozenset({"li", "dt", "dd", "option"})
_SECTIONS = frozenset({"article", "body", "footer", "header", "html", "main", "section"})
_GROUPS = frozenset({"dl", "fieldset", "figure", "hgroup", "menu", "ol", "ul", "details", "dir", "center"})
_BLOCKS = _SECTIONS | _GROUPS | _HEADINGS.keys() | {"address", "blockquote", "caption", "div", "figcaption", "hr"}
_BLOCKS |= {"legend", "p", "pre", "summary"}


@dataclass(slots=True)
class _Table:
    """A table that is open; one that lays a page out gives blocks instead of rows."""

    cells: list[str] = field(default_factory=list)
    cell: list[str] | None = None
    links: list[tuple[int, str]] = field(default_factory=list)
    is_layout: bool = False
    rows: int = 0


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

    def start(self, tag: str, attributes: Mapping[str, Any]) -> None:
        """An element begins."""
        if tag == "br":
            self._line.add_verbatim("\n")
        elif tag == "a":
            if attributes.get("href"):
                self._line.link(str(attributes["href"]))
        elif tag in ("table", "tr", "td", "th"):
            self._flush()
            self._start_table(tag)
        elif tag in _BLOCKS or tag in _LINES:
            self._break(tag)
            if tag in _HEADINGS:
                self._lay_out()
                self._level = _HEADINGS[tag]
            self._verbatim += tag == "pre"

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag in ("table", "tr", "td", "th"):
            self._flush()
            self._end_table(tag)
        elif tag in _BLOCKS or tag in _LINES:
            self._break(tag)
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

    def _break(self, tag: str) -> None:
        self._flush()
        if tag not in _LINES:
            self._gap = "\n\n"

    def _flush(self) -> None:
        """Give the open line to the open cell, else to the builder."""
        line, self._line = self._line, _Line()
        table = self._tables[-1] if self._tables else None
        if table is not None and table.cell is not None and not table.is_layout:
            table.links.extend((0, url) for _, url in line.links)
            table.cell.append(" ".join(line.text.split()))
        elif line.text.strip() or line.links:
            self._builder.add(line.text, self._gap, self._level, line.links)
            self._gap = "\n" if line.text.strip() else self._gap

    def _start_table(self, tag: str) -> None:
        if tag == "table":
            self._lay_out()
            self._tables.append(_Table())
            self._gap = "\n\n"
            return
        table = self._tables[-1] if self._tables else None
        if table is None or table.is_layout:
            self._gap = "\n\n"
            return
        self._end_cell(table)
        if tag == "tr":
            self._end_row(table)
        else:
            table.cell = []

    def _end_table(self, tag: str) -> None:
        table = self._tables[-1] if self._tables else None
        if table is None:
            return
        self._end_cell(table)
        if tag in ("tr", "table"):
            self._end_row(table)
        if tag == "table":
            self._tables.pop()
            self._gap = "\n\n"

    def _end_cell(self, table: _Table) -> None:
        if table.cell is not None:
            table.cells.append(" ".join(filter(None, table.cell)))
            table.cell = None

    def _end_row(self, table: _Table) -> None:
        if any(table.cells):
            self._builder.add(" | ".join(table.cells), "\n" if table.rows else "\n\n", links=table.links)
            table.rows += 1
            self._gap = "\n\n"
        table.cells, table.links = [], []

    def _lay_out(self) -> None:
        """Take the innermost table for one that lays the page out, since a cell holds a table or a heading."""
        table = self._tables[-1] if self._tables else None
        if table is None or table.cell is None or table.is_layout:
            return
        self._end_cell(table)
        for cell in filter(None, table.cells):
            self._builder.add(cell, links=table.links)
            table.links = []
        table.cells, table.is_layout = [], True
        self._gap = "\n\n"
