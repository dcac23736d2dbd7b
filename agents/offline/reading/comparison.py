"""Which of two comes first, costs less, lasts longer: computed where each side has one date or number to compare."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.offline.reading.dates import Day, date_spans, days_in
from agents.offline.reading.words import word_spans
from graph.sentences import key_values

_DIRECTIONS = (
    ("earlier first sooner older oldest before", True, True),
    ("later last newer newest younger youngest", True, False),
    ("cheaper cheapest less lower lowest smaller smallest shorter shortest fewer lighter faster quicker", False, True),
    (
        "more higher highest larger largest longer longest dearer heavier bigger farther further taller deeper",
        False,
        False,
    ),
)
_BY_WORD = {word: (is_date, is_least) for words, is_date, is_least in _DIRECTIONS for word in words.split()}
_AMOUNT = re.compile(
    r"(?P<before>[$€£¥]|\b(?:EUR|GBP|CHF|USD)\b)?\s?(?<![\w.,])(?P<figure>\d+(?:[.,'’]\d{3})*(?:[.,]\d+)?)(?![\w:])\s?(?P<after>%|[^\W\d_]+)?"
)
_THOUSANDS = re.compile(r"[.,'’](?=\d{3}(?:\D|$))")

Value = tuple[tuple[float, ...], str]
"""What is compared, a number or the parts of a date, and how it is written."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things compared: as the question names it, and what was found on it."""

    name: str
    text: str


def compare(question: str, sides: Sequence[Side]) -> tuple[int, str] | None:
    """Return which side wins, by its place, and the answer in a few words; None where that is not certain.

    It is certain where the question holds one word of comparison, and both sides one date, or one number of a unit.
    """
    words = [word for word, _, _ in word_spans(question)]
    found = {_BY_WORD[word] for word in words if word in _BY_WORD}
    if len(found) != 1 or len(sides) != 2:
        return None
    is_date, is_least = found.pop()
    texts = [_cell(side, other) or side.text for side, other in zip(sides, reversed(sides), strict=True)]
    values = None if is_date else _amounts(texts)
    if values is None:
        values = _dates(texts)
        # Who has been there longer came earlier.
        is_least = is_least if is_date or values is None else not is_least
    if values is None or values[0][0] == values[1][0]:
        return None
    winner = int((values[1][0] < values[0][0]) == is_least)
    loser = 1 - winner
    return winner, f"{sides[winner].name} ({values[winner][1]}; {sides[loser].name}: {values[loser][1]})"


def _cell(side: Side, other: Side) -> str:
    """The cell of a row whose column is the side's name; empty where there is none."""
    cells = {pair.key.casefold(): pair.value for pair in key_values(side.text, 0, len(side.text))}
    return cells.get(side.name.casefold(), "") if other.name.casefold() in cells else ""


def _dates(texts: Sequence[str]) -> list[Value] | None:
    """The one date of each text, as exactly as both are told: a year is not before a month of that year."""
    found: list[tuple[Day, str]] = []
    for text in texts:
        spans = {text[start:end]: days_in(text[start:end]) for start, end in date_spans(text)}
        told = {written: days[0] for written, days in spans.items() if days}
        if len(set(told.values())) != 1:
            return None
        written, day = next(iter(told.items()))
        found.append((day, written))
    n_told = min(sum(map(bool, day)) for day, _ in found)
    return [(day[:n_told], written) for day, written in found]


def _amounts(texts: Sequence[str]) -> list[Value] | None:
    """The one number of each text in the one unit that both texts have."""
    by_unit: list[Mapping[str, list[Value]]] = [_by_unit(text) for text in texts]
    shared = [unit for unit in by_unit[0] if unit in by_unit[1]]
    certain = [unit for unit in shared if all(len(each[unit]) == 1 for each in by_unit)]
    return [each[certain[0]][0] for each in by_unit] if len(certain) == 1 else None


def _by_unit(text: str) -> dict[str, list[Value]]:
    for start, end in reversed(date_spans(text)):
        text = f"{text[:start]}\n{text[end:]}"
    found: dict[str, list[Value]] = {}
    for match in _AMOUNT.finditer(text):
        unit = (match["before"] or match["after"] or "").casefold()
        number = float(_THOUSANDS.sub("", match["figure"]).replace(",", ".").replace("'", "").replace("’", ""))
        if unit:
            found.setdefault(unit, []).append(((number,), match[0].strip()))
    return found
