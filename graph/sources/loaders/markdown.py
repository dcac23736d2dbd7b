"""Markdown: front matter becomes metadata, headings become sections; rows of tables carry the names of their columns.

The rest of the text stays as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput
from graph.metadata_filter import askable_metadata
from graph.schema import MetadataValue
from graph.sentences import unclosed
from graph.sources.loaders.document import Document, Heading, first_heading, short_spaced
from graph.sources.loaders.fields import PLACE_KEYS, scalar, within_limits
from graph.sources.loaders.files import MAX_TEXT_BYTES, parse_json, read_text, readable_path
from graph.sources.loaders.table import row_lines

if TYPE_CHECKING:
    from markdown_it.token import Token

FRONT_MATTER_LEFT = "front matter entries that are no metadata"
"""The note that counts entries of front matter that are nested, have a reserved name or cannot be read."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,65536}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_BAR = re.compile(r"(?<!\\)(?<!^)\|(?!$)")
_BETWEEN_ENTRIES = re.compile(r"\n(?![\s-])")


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
    text = short_spaced(text)
    front_matter = _FRONT_MATTER.match(text)
    notes: Counter[str] = Counter()
    entries = dict(_entries(front_matter[1], notes)) if front_matter else {}
    body, headings = _read_blocks(text[front_matter.end() :] if front_matter else text)
    title = str(entries.pop("title", "")) or first_heading(headings)
    return Document(title, body, source, within_limits(entries.items(), notes), headings, notes=notes)


def _read_blocks(text: str) -> tuple[str, list[Heading]]:
    """Return a text whose tables are lines that carry the names of their columns, and its headings."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    lines = text.split("\n")
    kept: list[str | None] = [*lines]
    for place, token in enumerate(tokens):
        if token.type == "table_open" and token.map is not None:
            first, last = token.map
            kept[first:last] = ["\n".join(_named_rows(tokens[place:], lines)), *[None] * (last - first - 1)]
    starts = list(accumulate((0 if line is None else len(line) + 1 for line in kept), initial=0))
    headings = [
        Heading(starts[token.map[0]], int(token.tag[1:]), unclosed(following.content))
        for token, following in pairwise(tokens)
        if token.type == "heading_open" and not token.level and token.map is not None and following.content
    ]
    return "\n".join(line for line in kept if line is not None), headings


def _named_rows(tokens: Sequence[Token], lines: Sequence[str]) -> list[str]:
    """Return the lines of the table that some tokens begin with; a row of too many cells stays as it is written."""
    rows: list[list[str]] = []
    for token in takewhile(lambda token: token.type != "table_close", tokens):
        if token.type == "tr_open":
            rows.append([])
            written = lines[token.map[0]].strip() if token.map is not None else ""
        elif token.type == "inline":
            rows[-1].append(token.content.strip())
        elif token.type == "tr_close" and len(_BAR.findall(written)) >= len(rows[0]):
            rows[-1] = [written]
    header = [cell.strip("*_` ") for cell in rows[0]]
    named = row_lines([header, *rows[1:]], has_header=True) if any(header) else row_lines(rows[1:]) if rows[1:] else []
    return [line for line in named if line]


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
