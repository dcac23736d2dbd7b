"""Asking back: which of several readings a question has, or what is wanted at all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.offline.language.words import word_set
from graph.text import tokens

_ASKED_BACK = "Which do you mean: "
ASK_SOMETHING = "Ask a question about the documents."
"""The answer to what asks nothing."""

_COURTESIES = word_set(
    "hello hi hey thanks thank you thx ok okay great cool good nice fine perfect super bye goodbye cheers please very "
    "much so morning evening hallo danke schön bitte gut tschüss bonjour salut merci beaucoup bien hola gracias muchas"
)
_QUOTED = re.compile(r"“(.+?)”")
_NUMBER = re.compile(r"\W*(?:no\.?|number|the)?\s*(\d+|first|second|third|fourth|former|latter)(?:\s+one)?\W*", re.I)
_PLACES = {"first": 1, "former": 1, "second": 2, "latter": 2, "third": 3, "fourth": 4}


def asks_nothing(text: str) -> bool:
    """Tell whether a text is a greeting, thanks or signs alone: nothing to search for."""
    return _COURTESIES.issuperset(tokens(text))


def question_back(choices: Sequence[str]) -> str:
    """Return the question that asks which reading is meant."""
    return _ASKED_BACK + " or ".join(f"“{choice}”" for choice in choices)


def readings_in(answer: str) -> tuple[str, ...]:
    """Return the readings that an answer asks to choose from; none where it asks nothing back."""
    return tuple(_QUOTED.findall(answer)) if answer.startswith(_ASKED_BACK) else ()


def chosen_reading(reply: str, choices: Sequence[str]) -> str | None:
    """Return the reading that a reply chooses, by number, by place, or by words that one reading alone has."""
    if numbered := _NUMBER.fullmatch(reply):
        word = numbered.group(1).lower()
        number = _PLACES[word] if word in _PLACES else int(word)
        return choices[number - 1] if 0 < number <= len(choices) else None
    said = set(tokens(reply))
    fitting = [choice for choice in choices if said and said <= set(tokens(choice))]
    return fitting[0] if len(fitting) == 1 else None
