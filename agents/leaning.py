"""The gate of a conversation: which questions stand alone, and which lean on earlier turns."""

from __future__ import annotations

import re

_REFERENCE = re.compile(
    r"\b(?:it|its|he|him|his|she|her|hers|they|them|their|theirs|this|that|these|those|there|then|one|ones)\b", re.I
)
_OPENER = re.compile(r"\s*(?:and|but|so|or|then|also|what about|how about|why)\b", re.I)
_FEWEST_WORDS = 3


def leaning_of(question: str) -> str:
    """Return why a question leans on earlier turns, in words; empty where it stands alone."""
    if found := _OPENER.match(question):
        return f"it begins with {found.group().strip()!r}"
    if found := _REFERENCE.search(question):
        return f"{found.group()!r} names something said before"
    if len(question.split()) < _FEWEST_WORDS:
        return "it is a fragment"
    return ""
