"""The parts of a question that plainly asks several things."""

from __future__ import annotations

import re

_OPENING = r"(?:who|whom|whose|what|which|when|where|why|how)\b"
_NEXT_QUESTION = re.compile(
    rf"\?\s+|[,;]?\s+(?:and|or)(?:\s+also)?\s+(?=(?:(?:in|on|at|by|to|for|from|of)\s+)?{_OPENING})", re.I
)


def split_question(question: str) -> list[str]:
    """Return the parts of a question, each with a question mark; the question alone where it asks one thing."""
    pieces = [piece.strip(" \t\n?,;") for piece in _NEXT_QUESTION.split(question)]
    kept = [piece for piece in pieces if piece]
    if len(kept) < 2:
        return [question]
    return [f"{piece[0].upper()}{piece[1:]}?" for piece in kept]
