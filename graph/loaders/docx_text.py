"""From the elements of a .docx to blocks of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graph.loaders.document import TextBuilder
from graph.loaders.docx_styles import TITLE, outline_level

# Deleted text, older states of the formatting, tab stops, and the second writing of what an older Word cannot show.
_FORMER = frozenset({"w:pPrChange", "w:rPrChange", "w:tblPrChange", "w:trPrChange", "w:tcPrChange"})
_SKIPPED = frozenset({"w:del", "w:moveFrom", "w:tabs", "mc:Fallback"}) | _FORMER
_TEXTS = ("w:t", "m:t")
_CHARACTERS = {"w:tab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "-"}


@dataclass(slots=True)
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    length: int = 0
    links: list[tuple[int, str]] = field(default_factory=list)
    style: str = ""
    outline: int | None = None
    is_item: bool = False

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)


@dataclass(slots=True)
class _Table:
    cells: list[str] = field(default_factory=list)
    cell: list[str] | None = None
    links: list[tuple[int, str]] = field(default_factory=list)
    rows: int = 0


class DocxText:
    """Takes the elements of a document or of its notes, and gives their blocks to a builder.

    Attributes:
        title: the text of the first paragraph of style Title.
    """

    def __init__(self, builder: TextBuilder, levels: Mapping[str, int], links: Mapping[str, str]) -> None:
        self.title = ""
        self._builder, self._levels, self._links = builder, levels, links
        # A text box stands in a paragraph and holds paragraphs.
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._depth = self._skipped_at = 0
        self._in_text = self._after_item = False

    def of_notes(self, links: Mapping[str, str]) -> DocxText:
        """Return a reader for the document's notes, which have links of their own."""
        return DocxText(self._builder, self._levels, links)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if self._skipped_at:
            return
        if name in _SKIPPED:
            self._skipped_at = self._depth
        elif name == "w:p":
            self._paragraphs.append(_Paragraph())
        elif name in ("w:tbl", "w:tc"):
            self._open_table(name)
        elif self._paragraphs:
            self._in_paragraph(name, attributes, self._paragraphs[-1])

    def end(self, name: str) -> None:
        """An element ends."""
        depth, self._depth = self._depth, self._depth - 1
        if self._skipped_at:
            if depth == self._skipped_at:
                self._skipped_at = 0
        elif name in _TEXTS:
            self._in_text = False
        elif name == "w:p" and self._paragraphs:
            self._close_paragraph(self._paragraphs.pop())
        elif name in ("w:tbl", "w:tr", "w:tc") and self._tables:
            self._close_table(name)

    def data(self, text: str) -> None:
        """Text of the open element."""
        if self._in_text and not self._skipped_at and self._paragraphs:
            self._paragraphs[-1].add(text)

    def _in_paragraph(self, name: str, attributes: Mapping[str, str], paragraph: _Paragraph) -> None:
        if name in _TEXTS:
            self._in_text = True
        elif name in _CHARACTERS:
            paragraph.add(_CHARACTERS[name])
        elif name == "w:pStyle":
            paragraph.style = attributes.get("w:val", "")
        elif name == "w:outlineLvl":
            paragraph.outline = outline_level(attributes.get("w:val", ""))
        elif name == "w:numPr":
            paragraph.is_item = True
        elif name == "w:hyperlink" and attributes.get("r:id") in self._links:
            paragraph.links.append((paragraph.length, self._links[attributes["r:id"]]))

    def _close_paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.parts)
        table = self._tables[-1] if self._tables else None
        if table is not None and table.cell is not None:
            table.cell.append(" ".join(text.split()))
            table.links.extend((0, url) for _, url in paragraph.links)
            return
        style = self._levels.get(paragraph.style)
        level = paragraph.outline or style or 0
        if style == TITLE and not self.title:
            self.title = " ".join(text.split())
        gap = "\n" if paragraph.is_item and self._after_item and not level else "\n\n"
        self._builder.add(text, gap, level, paragraph.links)
        self._after_item = paragraph.is_item

    def _open_table(self, name: str) -> None:
        self._after_item = False
        if name == "w:tbl":
            self._tables.append(_Table())
        elif self._tables:
            self._tables[-1].cell = []

    def _close_table(self, name: str) -> None:
        table = self._tables[-1]
        if name == "w:tc":
            table.cells.append(" ".join(filter(None, table.cell or ())))
            table.cell = None
            return
        if any(table.cells):
            self._give_row(table)
        table.cells, table.links = [], []
        if name == "w:tbl":
            self._tables.pop()

    def _give_row(self, table: _Table) -> None:
        """Give a row to the cell that its table stands in, else to the builder."""
        row = " | ".join(table.cells)
        outer = self._tables[-2] if len(self._tables) > 1 else None
        if outer is not None and outer.cell is not None:
            outer.cell.append(row)
            outer.links.extend(table.links)
        else:
            self._builder.add(row, "\n" if table.rows else "\n\n", links=table.links)
            table.rows += 1
