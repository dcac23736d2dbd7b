"""Asking back which of several readings a question has, and reading what was chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graph.text import tokens

_ASKED_BACK = "Which do you mean: "
_QUOTED = re.compile(r"“(.+?)”")
_NUMBER = re.compile(r"\W*(?:no\.?|number|the)?\s*(\d+|first|second|third|fourth|former|latter)(?:\s+one)?\W*", re.I)
_PLACES = {"first": 1, "former": 1, "second": 2, "latter": 2, "third": 3, "fourth": 4}


def question_back(choices: Sequence[str]) -> str:
    """Return the question that asks which reading is meant."""
    return _ASKED_BACK + " or ".join(f"“{choice}”" for choice in choices)


def chosen_reading(reply: str, answer: str) -> str | None:
    """Return the reading that a reply chooses, by number, by place, or by words that one reading alone has.

    Args:
        reply: what was said after the question back.
        answer: the last answer; None is returned where it asked nothing back.
    """
    choices = _QUOTED.findall(answer) if answer.startswith(_ASKED_BACK) else []
    if not choices:
        return None
    if numbered := _NUMBER.fullmatch(reply):
        word = numbered.group(1).lower()
        number = _PLACES[word] if word in _PLACES else int(word)
        return choices[number - 1] if 0 < number <= len(choices) else None
    said = set(tokens(reply))
    fitting = [choice for choice in choices if said and said <= set(tokens(choice))]
    return fitting[0] if len(fitting) == 1 else None
