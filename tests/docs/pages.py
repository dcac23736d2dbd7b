"""The documentation as tests read it, and the code that it is compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
PACKAGES = ("graph", "agents", "workflows", "prompts")

_FENCE = re.compile(r"^ {0,4}```(?P<kind>[^\n`]*)\n(?P<body>.*?)^ {0,4}```[ \t]*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_INLINE_CODE = re.compile(r"(`+)(.+?)\1")
_TARGET = r"<?(?P<target>[^)>\s]+)>?"
_LINK_FORMS = (
    re.compile(rf"\]\(\s*{_TARGET}(?:\s+[\"'(][^\n]*?[\"')])?\s*\)"),
    re.compile(rf"^ {{0,3}}\[[^\]]+\]:[ \t]+{_TARGET}", re.MULTILINE),
    re.compile(r"<(?:a|img)\s[^>]*?(?:href|src)=[\"'](?P<target>[^\"']+)[\"']"),
)
"""Links and pictures with or without a title, definitions of references, and HTML."""
_REFERENCE = re.compile(r"\]\[(?P<label>[^\]\n]+)\]")
_DEFINED = re.compile(r"^ {0,3}\[(?P<label>[^\]]+)\]:", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


class Block(NamedTuple):
    """A fenced block: the word after its fence, its lines, and the line of the page that it begins on."""

    kind: str
    body: str
    line: int


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    return [
        Block(found["kind"].strip(), dedent(found["body"]), text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def prose(text: str) -> str:
    """A page without its fenced blocks and comments."""
    return _COMMENT.sub("", _FENCE.sub("", text))


def links(text: str) -> list[str]:
    """Where the links and pictures of a page point."""
    plain_text = _INLINE_CODE.sub("`code`", prose(text))
    return [found["target"] for form in _LINK_FORMS for found in form.finditer(plain_text)]


def undefined_references(text: str) -> list[str]:
    """The labels that a page's links of the form ``[text][label]`` refer to and nothing defines."""
    plain_text = _INLINE_CODE.sub("`code`", prose(text))
    defined = {label.casefold() for label in _DEFINED.findall(plain_text)}
    return [label for label in _REFERENCE.findall(plain_text) if label.casefold() not in defined]


def inline_code(text: str) -> Iterator[str]:
    """What stands between backticks, on one line."""
    for found in _INLINE_CODE.finditer(prose(text)):
        yield " ".join(found[2].replace("\\|", "|").split())


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives a page's headings, and those that it sets itself."""
    found: set[str] = set(_ANCHOR.findall(text))
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        repeated = next(n for n in range(len(found) + 1) if (f"{anchor}-{n}" if n else anchor) not in found)
        found.add(f"{anchor}-{repeated}" if repeated else anchor)
    return found


def table(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the first table under a heading, by column, as they are written."""
    section = re.split(rf"^#+ +{re.escape(heading)} *$", text, maxsplit=1, flags=re.MULTILINE)[1]
    head, _, *rows = tables(section)[0]
    return [dict(zip(head, row, strict=True)) for row in rows]


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table, row by row, the head and the line below it included."""
    found = re.findall(r"(?:^ *\|.*\n)+", _FENCE.sub("", text), re.MULTILINE)
    return [[_cells(line) for line in each.splitlines()] for each in found]


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def plain(cell: str) -> str:
    """What a cell says, without the backticks around names."""
    return cell.replace("`", "")


@cache
def sources() -> dict[str, str]:
    """The text of every module of the project."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): read(path) for path in paths
    }
