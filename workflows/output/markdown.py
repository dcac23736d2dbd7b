"""Writing Markdown: text that stays in its place, tables, and figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from workflows.output.printable import visible

NOTHING = "–"
"""The mark in place of a missing figure."""

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~$&])")


def plain(value: object, limit: int = 300) -> str:
    """Return text of users, documents or models so that it is read as text, on one line, cut to ``limit`` characters.

    Characters that are hidden, control a terminal or turn the direction of writing are left out.
    """
    return _MARKUP.sub(r"\\\1", _line(value, limit))


def code(value: object, limit: int = 80) -> str:
    """Return a name as code, in a fence longer than any in it; also fit for a cell of a table."""
    line = _line(value, limit).replace("|", r"\|")
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    if not longest:
        return f"`{line}`" if line else NOTHING
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Return a table; the first ``left`` columns are set left, the others right. Cells are Markdown already."""
    rule = [*["---"] * left, *["---:"] * (len(header) - left)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def figure(value: float | None, decimals: int = 3) -> str:
    """Return a number with so many decimals."""
    return NOTHING if value is None else f"{_without_sign_of_zero(value, decimals):,.{decimals}f}"


def signed(value: float | None, decimals: int = 3) -> str:
    """Return a difference with its sign."""
    return NOTHING if value is None else f"{_without_sign_of_zero(value, decimals):+.{decimals}f}"


def interval(low: float | None, high: float | None) -> str:
    """Return the bounds of a difference."""
    return NOTHING if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def p_value(p: float | None) -> str:
    """Return a p value; those under 0.001 are told as such."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _without_sign_of_zero(value: float, decimals: int) -> float:
    return round(value, decimals) + 0.0


def _line(value: object, limit: int) -> str:
    text = " ".join(visible(str(value)).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
