"""Text of documents, models and users as a terminal or a log may show it: nothing in it is hidden or steers.

Control characters, marks that turn the direction of writing, zero-width and other invisible characters are left out,
save where they make what is seen: joiners between letters of scripts that join them, and within emoji.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import regex
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_JOINING = (
    r"\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
    r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Tibetan}\p{Myanmar}\p{Khmer}"
)
_LETTER = rf"[[\p{{L}}\p{{M}}]&&[{_JOINING}]]"
_MARKED_LETTER = rf"[[\p{{L}}\p{{M}}]&&[{_JOINING}\p{{Inherited}}]]"
_PICTURE = r"\p{Extended_Pictographic}"

_MAKES_WHAT_IS_SEEN = "|".join(
    (
        rf"(?<={_MARKED_LETTER})[\u200c\u200d](?={_LETTER})",
        rf"(?<={_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]?)\u200d(?={_PICTURE})",
        r"(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f",
        r"(?<=[^\s\p{C}\p{Variation_Selector}])\p{Variation_Selector}",
        r"[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]",
    )
)
"""Joiners, the flags of regions, which form of a character is meant, and Arabic signs that are format characters."""

_HIDDEN = regex.compile(
    rf"(?P<kept>{_MAKES_WHAT_IS_SEEN})|(?P<line>[\u2028\u2029])|(?P<broken>\p{{Cs}})"
    r"|[[\p{Cc}--[\t\n]]\p{Cf}\p{Default_Ignorable_Code_Point}]",
    regex.V1,
)


def visible(text: str) -> str:
    """Return a text without what a terminal hides or obeys; line separators become spaces, half characters U+FFFD."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_seen, text)


def _seen(match: regex.Match[str]) -> str:
    if match["kept"]:
        return match["kept"]
    return " " if match["line"] else "\ufffd" if match["broken"] else ""


def shortened(text: str, length: int) -> str:
    """Return a text on one line, without hidden characters, of at most that many characters."""
    shown = " ".join(visible(text).split())
    return shown if len(shown) <= length else f"{shown[: length - 1].rstrip()}…"


def visible_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON in which every character that `visible` changes stands as an escape: nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _HIDDEN.sub(lambda match: match["kept"] or json.dumps(match[0])[1:-1], text)


class VisibleConsole(Console):
    """A console that prints texts of any author as `visible` returns them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render what is printed, its texts visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
