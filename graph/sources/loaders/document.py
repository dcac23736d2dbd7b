"""The results of loaders: a document's text with headings, pages and links, or passages that were given whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.schema import MetadataValue, Passage
from graph.text import is_unicode

LONGEST_SPACE = 200
"""Characters of white space side by side that stay as they are: tables in plain text are full of them."""

_LONG_SPACE = re.compile(rf"\s{{{LONGEST_SPACE + 1},}}+")

_TITLE_LIMIT = 200
_NO_TITLE = re.compile(
    r"untitled.*|title|document ?\d*|word document|presentation ?\d*|powerpoint presentation|slide ?\d*|page ?\d*"
    r"|microsoft (?:word|powerpoint|excel) - .*"
    r"|\S+\.(?:docx?|pdf|tex|dvi|ps|indd|qxd|odt|rtf|pptx?|xlsx?|html?|txt|md|wpd|pages)",
    re.IGNORECASE | re.DOTALL,
)


_NO_FILE_TITLE = re.compile(
    r"(?:readme|index|main|default|new|copy|draft|final|temp|tmp|test|file|text|notes?|scan|img|image|dsc|page"
    r"|document|doc)?[\W\d]*",
    re.IGNORECASE,
)
"""Names of files that say nothing of what is in them."""

_LEAST_LETTERS = 4


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that was not read, and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document: its place in the text, its level from 1, and its own text."""

    offset: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text that is still to be split.

    Attributes:
        title: empty where the document names none.
        text: what was extracted; all offsets count its characters.
        source: the file or address it came from.
        metadata: scalars that hold for each of its passages.
        headings: in the order of the text.
        pages: where each page begins, the first page first; empty where there are no pages.
        links: (offset, address) of each link to a web page, in the order of the text.
        notes: how many items were dropped or defaulted, by reason.
    """

    title: str
    text: str
    source: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    headings: Sequence[Heading] = ()
    pages: Sequence[int] = ()
    links: Sequence[tuple[int, str]] = ()
    notes: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Loaded:
    """The contents of one file.

    Attributes:
        documents: texts that are still to be split.
        passages: ones that were given whole, and the parts of documents that were split.
        refused: entries of the file that could not be read, with the reason.
        identical: how many passages the file gave more than once.
        columns: of a table or corpus, the names of its columns or keys, by its source.
        notes: how many items were dropped or defaulted, by reason.
    """

    documents: list[Document] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    identical: int = 0
    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)


class TextBuilder:
    """Puts a document's text together block by block, and keeps where headings and links stand."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.links: list[tuple[int, str]] = []
        self._parts: list[str] = []
        self._length = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    @property
    def length(self) -> int:
        """The characters so far."""
        return self._length

    def add(self, block: str, gap: str = "\n\n", level: int = 0, links: Sequence[tuple[int, str]] = ()) -> None:
        """Append a block after a gap.

        Args:
            block: taken without white space at its ends; a blank one adds nothing but its links.
            gap: what separates it from the block before.
            level: the heading's, from 1; 0 for a block that is no heading.
            links: (offset within the block, address).
        """
        trimmed = block.strip()
        lead = len(block) - len(block.lstrip())
        if trimmed and self._parts:
            self._append(gap)
        self.links.extend((self._length + max(0, min(offset - lead, len(trimmed))), url) for offset, url in links)
        if not trimmed:
            return
        if level:
            self.headings.append(Heading(self._length, level, " ".join(trimmed.split())))
        self._append(trimmed)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def sane_title(title: Any) -> str:
    """Return a title that was found in a document's properties, or nothing where it is none.

    Programs fill that field with a file's name, with "untitled" or with their own name.
    """
    text = " ".join(title.split()) if isinstance(title, str) else ""
    named = any(map(str.isalpha, text)) and len(text) <= _TITLE_LIMIT and not _NO_TITLE.fullmatch(text)
    return text if named and is_unicode(text) else ""


def file_title(path: Path) -> str:
    """Return a file's name as the title of a document that has no other: "Install_proxy.txt" is "Install proxy".

    Names that say nothing of the content give none: "scan 0012", "README", three letters, numbers.
    """
    words = " ".join(re.split(r"[\s_]+|(?<=[^\W\d])-(?=[^\W\d])", path.stem)).strip()
    says_something = sum(map(str.isalpha, words)) >= _LEAST_LETTERS and not _NO_FILE_TITLE.fullmatch(words)
    return sane_title(words) if says_something else ""


def first_heading(headings: Sequence[Heading], level: int = 0) -> str:
    """Return the text of the first heading (of that level); empty where there is none."""
    return next((heading.text for heading in headings if level in (0, heading.level)), "")


def short_spaced(text: str) -> str:
    """Return a text whose long runs of white space are one space, one line break or one blank line."""
    return _LONG_SPACE.sub(lambda run: "\n" * min(2, run[0].count("\n")) or " ", text)
