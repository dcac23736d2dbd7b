"""Markdown: front matter becomes metadata, headings become sections; rows of tables carry the names of their columns.

The rest of the text stays as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

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

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*$|    |\t|[ ]{0,3}(?:[#>|`~]|[-*+] |\d+[.)] )")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ENTRY = re.compile(r"([^\s:#'\"\[{&*!-][^:]*):(?:[ \t]+(.*))?")
_UNESCAPED_BAR = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r":?-+:?")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")


def load_markdown(path: Path, source: str) -> Document:
    """Read a Markdown document. Raises BadInput when it cannot be read as text."""
    return parse_markdown(read_text(path, MAX_TEXT_BYTES), source)


def load_notebook(path: Path, source: str) -> Document:
    """Read a notebook: its cells in their order, code between fences; the results of code are left out."""
    where = readable_path(path)
    book = parse_json(read_text(path, MAX_TEXT_BYTES), where, "Save it again")
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise BadInput(f"{where} is no notebook of version 4", "Save it again with a newer program")
    told = []
    for cell in book["cells"]:
        text = "".join(cell["source"]).strip()
        told.append(f"```\n{text}\n```" if cell["cell_type"] == "code" and text else text)
    return parse_markdown("\n\n".join(filter(None, told)), source)


def parse_markdown(text: str, source: str) -> Document:
    """Return the document of a Markdown text: its title is that of the front matter, else the first heading."""
    found = _FRONT_MATTER.match(text)
    body = _with_named_cells(text[found.end() :] if found else text)
    notes: Counter[str] = Counter()
    entries = dict(_entries(found[1], notes)) if found else {}
    headings = list(_headings(body))
    title = _unquoted(entries.pop("title", "")) or first_heading(headings)
    return Document(title, body, source, _as_metadata(entries, notes), headings, notes=notes)


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
    lines, told, fence = text.split("\n"), list[str](), ""
    place = 0
    while place < len(lines):
        fence = _fence_after(lines[place], fence)
        end = place + 1 if fence else _table_end(lines, place)
        told += lines[place:end] if end == place + 1 else _told_table(lines[place:end])
        place = end
    return "\n".join(told)


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


def _entries(front_matter: str, notes: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of ``key: value`` lines, quoted as it stands there.

    Lists, in brackets or a line an item, are joined by a comma.
    """
    lines = front_matter.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        start = number
        while number < len(lines) and (lines[number][:1] in (" ", "\t") or _ITEM.match(lines[number])):
            number += 1
        below = lines[start:number]
        if not line.strip() or line.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(line)
        value = _value((entry[2] or "").strip(), below) if entry else None
        if entry is None or value is None:
            notes[FRONT_MATTER_LEFT] += 1
        elif value:
            yield entry[1].strip(), value


def _value(value: str, below: list[str]) -> str | None:
    """Return the text of a value and of the indented lines below it; None where it is nested."""
    if value[:1] in ("|", ">") and len(value) <= 2:
        return (" " if value[0] == ">" else "\n").join(line.strip() for line in below).strip()
    if value and below:
        return None
    if below:
        items = [_ITEM.fullmatch(line) for line in below if line.strip()]
        texts = [_unquoted(item[1].strip()) if item else "" for item in items]
        return (
            None if any(not text or text[0] in "[{" or _ENTRY.fullmatch(text) for text in texts) else ", ".join(texts)
        )
    if value.startswith("[") and value.endswith("]"):
        inner = value[1:-1]
        return None if "[" in inner or "{" in inner else ", ".join(filter(None, map(_unquoted, _split(inner))))
    return None if value.startswith("{") else value


def _split(items: str) -> list[str]:
    return [item.strip() for item in items.split(",")]


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"


def _unquoted(value: str) -> str:
    return value[1:-1].strip() if _is_quoted(value) else value


def _as_metadata(entries: Mapping[str, str], notes: Counter[str]) -> dict[str, MetadataValue]:
    """Return the entries whose keys are not reserved; a quoted value is text, even a number."""
    reserved = PLACE_KEYS | {"source"}
    free = {key: text for key, text in entries.items() if key not in reserved and askable_metadata({key: ""})}
    if len(free) < len(entries):
        notes[FRONT_MATTER_LEFT] += len(entries) - len(free)
    read = ((key, _unquoted(text) if _is_quoted(text) else scalar(text)) for key, text in free.items())
    return within_limits(read, notes)
