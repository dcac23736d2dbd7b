"""Whether an answer is right, wrong or a refusal, by the strings that a right one holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*%?|\w+")
_YES_OR_NO = (["yes"], ["no"])


class Outcome(StrEnum):
    """The outcome of a question."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"


def outcome_of(question: Mapping[str, Any], answer: str, *, refused: bool) -> Outcome:
    """Return what came of a question.

    Right is an answer that holds one of ``answers``, or one of each group in ``all_of``, as whole words, before any of
    ``rivals``; and a refusal where there is nothing to be found. "Yes" and "no" count as the first word alone.
    """
    wanted = question.get("all_of") or [question.get("answers", [])]
    if not any(wanted):
        return Outcome.RIGHT if refused else Outcome.WRONG
    if refused:
        return Outcome.REFUSED
    words = _words(answer)
    places = [_first_place(words, group) for group in wanted]
    rival = _first_place(words, question.get("rivals", ()))
    return Outcome.RIGHT if max(places) < len(words) and min(places) < rival else Outcome.WRONG


def _first_place(words: Sequence[str], strings: Sequence[str]) -> int:
    """Where the first of some strings stands; the number of words where none does."""
    places = [_place(words, _words(string)) for string in strings]
    return min(places, default=len(words))


def _place(words: Sequence[str], wanted: Sequence[str]) -> int:
    if wanted in _YES_OR_NO:
        return 0 if words[:1] == wanted else len(words)
    spans = range(len(words) - len(wanted) + 1)
    return next((start for start in spans if words[start : start + len(wanted)] == wanted), len(words))


def _words(text: str) -> list[str]:
    return [word.rstrip(".,:/-") for word in _WORD.findall(text.casefold())]
