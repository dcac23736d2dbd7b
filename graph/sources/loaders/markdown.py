"""Markdown: front matter becomes metadata, headings become sections; rows of tables carry the names of their columns.

The rest of the text stays as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.metadata_filter import askable_metadata
from graph.schema import MetadataValue
from graph.sentences import unclosed
from graph.sources.loaders.document import Document, Heading, first_heading
from graph.sources.loaders.fields import PLACE_KEYS, scalar, within_limits
from graph.sources.loaders.files import MAX_TEXT_BYTES, parse_json, read_text, readable_path
from graph.sources.loaders.table import row_lines

FRONT_MATTER_LEFT = "front matter entries that are no metadata"
"""The note that counts entries of front matter that are nested, have a reserved name or cannot be read."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,65536}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*$|    |\t|[ ]{0,3}(?:[#>|`~]|[-*+] |\d+[.)] )")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_BETWEEN_ENTRIES = re.compile(r"\n(?![\s-])")
_UNESCAPED_BAR = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r":?-+:?")


def load_markdown(path: Path, source: str) -> Document:
    """Read a Markdown document. Raises BadInput when it cannot be read as text."""
    return parse_markdown(read_text(path, MAX_TEXT_BYTES), source)


def load_notebook(path: Path, source: str) -> Document:
    """Read a notebook: its cells in their order, code between fences; the results of code are left out."""
    where = readable_path(path)
    book = parse_json(read_text(path, MAX_TEXT_BYTES), where, "Save it again")
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise BadInput(f"{where} is no notebook of version 4", "Save it again with a newer program")
    cells = []
    for cell in book["cells"]:
        text = "".join(cell["source"]).strip()
        cells.append(f"```\n{text}\n```" if cell["cell_type"] == "code" and text else text)
    return parse_markdown("\n\n".join(filter(None, cells)), source)


def parse_markdown(text: str, source: str) -> Document:
    """Return the document of a Markdown text: its title is that of the front matter, else the first heading."""
    front_matter = _FRONT_MATTER.match(text)
    body = _with_named_cells(text[front_matter.end() :] if front_matter else text)
    notes: Counter[str] = Counter()
    entries = dict(_entries(front_matter[1], notes)) if front_matter else {}
    headings = list(_headings(body))
    title = str(entries.pop("title", "")) or first_heading(headings)
    return Document(title, body, source, within_limits(entries.items(), notes), headings, notes=notes)


def _headings(text: str) -> Iterator[Heading]:
    """Yield the headings that stand outside fenced code."""
    offset, fence, before = 0, "", ""
    for line in text.split("\n"):
        was_fenced, fence = bool(fence), _fence_after(line, fence)
        is_code = was_fenced or bool(fence)
        if is_code:
            pass
        elif heading := _HEADING.match(line):
            yield Heading(offset, len(heading[1]), unclosed(heading[2].rstrip()))
        elif _UNDERLINE.fullmatch(line) and not _NO_PARAGRAPH.match(before):
            level = 1 if line.strip()[0] == "=" else 2
            yield Heading(offset - len(before) - 1, level, before.strip())
        before = "" if is_code or _UNDERLINE.fullmatch(line) else line
        offset += len(line) + 1


def _fence_after(line: str, fence: str) -> str:
    """Return the fence of the code that is open after a line, given the one that is open before it."""
    mark = _FENCE.match(line)
    if mark and not fence and ("`" not in mark[2] or mark[1][0] == "~"):
        return mark[1]
    return "" if mark and fence and mark[1].startswith(fence) and not mark[2].strip() else fence


def _with_named_cells(text: str) -> str:
    """Return a text whose tables outside fenced code are lines that carry the names of their columns."""
    if "|" not in text:
        return text
    lines, rewritten, fence = text.split("\n"), list[str](), ""
    place = 0
    while place < len(lines):
        fence = _fence_after(lines[place], fence)
        end = place + 1 if fence else _table_end(lines, place)
        rewritten += lines[place:end] if end == place + 1 else _told_table(lines[place:end])
        place = end
    return "\n".join(rewritten)


def _table_end(lines: list[str], start: int) -> int:
    """Return where the table that begins with a line ends; the next line where none begins."""
    below = lines[start + 1] if start + 1 < len(lines) else ""
    marks = _cells(below)
    is_table = "|" in lines[start] and "|" in below and all(map(_DELIMITER.fullmatch, marks))
    if not is_table or len(_cells(lines[start])) != len(marks):
        return start + 1
    end = start + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return end


def _told_table(lines: list[str]) -> list[str]:
    header = [cell.strip("*_` ") for cell in _cells(lines[0])]
    rows = [_fitted(_cells(line), len(header)) for line in lines[2:]]
    named = row_lines([header, *rows], has_header=True) if any(header) else row_lines(rows) if rows else []
    return [line for line in named if line]


def _fitted(cells: list[str], columns: int) -> list[str]:
    """Return a row of that many cells: those that are missing are empty, those beyond stand in the last."""
    return [*cells[: columns - 1], " | ".join(cells[columns - 1 :]), *[""] * (columns - max(1, len(cells)))][:columns]


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    cells = [cell.strip().replace("\\|", "|") for cell in _UNESCAPED_BAR.split(bare)]
    return cells[:-1] if len(cells) > 1 and not cells[-1] else cells


def _entries(front_matter: str, notes: Counter[str]) -> Iterator[tuple[str, MetadataValue]]:
    """Yield the key and value of each entry, read on its own, so that one that is no YAML costs no other.

    Lists are joined by a comma; a quoted value is text, even a number; a line that YAML refuses for its second colon
    is read as a user means it.
    """
    import yaml

    reserved = PLACE_KEYS | {"source"}
    for entry in _BETWEEN_ENTRIES.split(front_matter):
        if not entry.strip() or entry.startswith("#"):
            continue
        key, sign, rest = entry.partition(":")
        value: MetadataValue | None = scalar(rest.strip()) if sign and "\n" not in entry else None
        with suppress(yaml.YAMLError, ValueError, RecursionError):
            ((named, node),) = yaml.compose(entry, Loader=yaml.SafeLoader).value
            if named.id == "scalar":
                key, value = named.value, _value(node)
        if value is None or key in reserved or not askable_metadata({key: ""}):
            notes[FRONT_MATTER_LEFT] += 1
        elif value != "":
            yield key.strip(), value


def _value(node: Any) -> MetadataValue | None:
    """Return the value of a node of YAML; None where it is nested."""
    if node.id == "scalar":
        return node.value.strip() if node.style else scalar(node.value)
    if node.id == "sequence" and all(item.id == "scalar" and item.value for item in node.value):
        return ", ".join(item.value for item in node.value)
    return None
