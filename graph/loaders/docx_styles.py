"""Which styles of a .docx are headings, by their outline level or Word's own names, and those they are based on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from graph.loaders.docx_package import Package

TITLE = 0
"""The level of the style of a document's title."""

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_BODY_OUTLINE = 9


@dataclass(slots=True)
class _Style:
    name: str = ""
    parent: str = ""
    outline: int | None = None


def read_styles(package: Package) -> dict[str, int]:
    """Return the level of each style that is a heading, from 1, or `TITLE`."""
    reader = _Styles()
    part = package.part_of_kind("styles")
    if part is not None:
        package.parse(part, reader)
    levels = {key: _level(key, reader.styles) for key in reader.styles}
    return {key: level for key, level in levels.items() if level is not None}


def outline_level(value: str) -> int | None:
    """Return the heading's level of an outline level; None for that of plain text."""
    return (
        int(value) + 1
        if value.isascii() and value.isdigit() and len(value) == 1 and int(value) < _BODY_OUTLINE
        else None
    )


def _level(key: str, styles: Mapping[str, _Style]) -> int | None:
    seen: set[str] = set()
    while key in styles and key not in seen:
        seen.add(key)
        style = styles[key]
        named = _HEADING.fullmatch(style.name)
        if style.outline is not None or named:
            return style.outline if style.outline is not None else int(named[1]) if named else None
        if style.name.lower() == "title":
            return TITLE
        key = style.parent
    return None


class _Styles:
    def __init__(self) -> None:
        self.styles: dict[str, _Style] = {}
        self._open = _Style()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        value = attributes.get("w:val", "")
        if name == "w:style":
            self._open = _Style()
            if attributes.get("w:type", "paragraph") == "paragraph":
                self.styles[attributes.get("w:styleId", "")] = self._open
        elif name == "w:name":
            self._open.name = value
        elif name == "w:basedOn":
            self._open.parent = value
        elif name == "w:outlineLvl":
            self._open.outline = outline_level(value)

    def end(self, name: str) -> None: ...

    def data(self, text: str) -> None: ...
