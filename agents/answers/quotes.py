"""The form of an answer that quotes: what is also related stands in a list at its end, and what is marked in bold."""

from __future__ import annotations

RELATED = "- "
"""Begins the line of an excerpt that is related."""


def parts_of_quotes(answer: str) -> tuple[str, str]:
    """Return an answer that quotes in two parts, as Markdown: itself, and the list of what is also related."""
    first, mark, related = answer.partition(f"\n\n{RELATED}")
    return first, f"{RELATED}{related}" if mark else ""


def unmarked(text: str) -> str:
    """Return quotes without the signs of what stands in bold."""
    return text.replace("**", "")
