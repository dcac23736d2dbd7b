"""Which of two comes first, costs less, lasts longer: computed where each side tells one value of what is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, TypeVar

from agents.offline.language.words import AUXILIARIES, CONJUNCTIONS, FUNCTION_WORDS, RELATIVES, word_set
from agents.offline.reading.dates import date_spans, days_in
from agents.offline.reading.questions import parse_question
from agents.offline.reading.words import stem, word_spans
from graph.sentences import key_values

_Found = TypeVar("_Found")

Attribute = frozenset[str]
"""The stems of words that name one thing, such as a price, of which something has one value."""


class _Direction(NamedTuple):
    """A word of comparison: whether it compares dates, the side it prefers, the attributes that it means by itself."""

    is_date: bool
    is_least: bool
    attributes: tuple[Attribute, ...]


class _Asked(NamedTuple):
    """The comparison that a question asks for: the attributes that it may mean, its words on them, and all stems."""

    direction: _Direction
    attributes: tuple[Attribute, ...]
    words: tuple[Attribute, ...]
    stems: set[str]


class _Value(NamedTuple):
    """A number or the parts of a date, its unit or column, how it is written, and where."""

    parts: tuple[float, ...]
    unit: str
    written: str
    start: int
    end: int


def _attributes(*texts: str) -> tuple[Attribute, ...]:
    return tuple(frozenset(_stems(text)) for text in texts)


def _stems(text: str) -> set[str]:
    return {stem(word, "english") for word, _, _ in word_spans(text)}


_BEGINNINGS = _attributes(
    "founded established formed created", "born birth", "built constructed", "opened", "launched", "released published"
)
_DIRECTIONS = {
    word: _Direction(is_date, is_least, attributes)
    for least, most, is_date, attributes in (
        ("earlier first sooner before", "later last", True, ()),
        ("older oldest", "newer newest younger youngest", True, _BEGINNINGS),
        ("less fewer", "more", False, ()),
        ("lower lowest", "higher highest taller tallest", False, _attributes("height high tall elevation")),
        ("cheaper cheapest", "dearer dearest", False, _attributes("price cost cheap expensive")),
        ("lighter lightest", "heavier heaviest", False, _attributes("weight weigh heavy mass")),
        ("shorter shortest", "longer longest", False, _attributes("length long duration")),
        ("smaller smallest", "larger largest bigger biggest", False, _attributes("size large big area")),
        ("slower slowest", "faster fastest quicker", False, _attributes("speed fast")),
        ("nearer closer", "farther further", False, _attributes("distance far")),
        ("shallower", "deeper deepest", False, _attributes("depth deep")),
        ("narrower", "wider broader", False, _attributes("width wide broad")),
    )
    for is_least, words in ((True, least), (False, most))
    for word in words.split()
}
_SYNONYMS = {word: words for direction in _DIRECTIONS.values() for words in direction.attributes for word in words}
_LONGER, _SINCE = _DIRECTIONS["longer"].attributes, _attributes("since")
_EMPTY_VERBS = AUXILIARIES | word_set("came come comes")
_SCALES = word_set("hundred thousand million billion")
_AMOUNT = re.compile(
    r"(?P<before>[$€£¥]|\b(?:EUR|GBP|CHF|USD)\b)?\s?"
    r"(?<![\w.,])(?<![^\W\d_]-)(?P<figure>[-−]?\d+(?:[.,'’]\d{3})*(?:[.,]\d+)?)(?![\w:])"
    rf"(?:\s?(?P<after>%|(?:(?:{'|'.join(_SCALES)})\s)?(?!(?:per|an?|each)\b)[^\W\d_]+))?"
    r"(?P<per>\s?(?:/\s?|per |an? |each )\w+)?"
)
_UNITS = _stems("eur usd gbp chf per in of date year kg g t lb km m cm mm mi ft h min s")
_RANGE = re.compile(r"\d\s?(?:[-–—]|to\b)\s?\d")
_THOUSANDS = re.compile(r"(?<!\b0)[.,'’](?=\d{3}(?:\D|$))")
_CLAUSE_END = re.compile(r"[,;()\n]")
_JOINING = FUNCTION_WORDS - CONJUNCTIONS - RELATIVES


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things compared: as the question names it, what was found on it, and the headings of that."""

    name: str
    text: str
    context: str = ""


def compare(question: str, sides: Sequence[Side]) -> tuple[int, str] | None:
    """Return which side wins, by its place, and the answer in a few words; None where that is not certain.

    It is certain where the question holds one word of comparison, and both sides tell one date, or one number of a
    unit, of the attribute that it asks for: in the column of that name, or beside its word in a sentence.
    """
    asked = _asked(question, sides) if len(sides) == 2 else None
    if asked is None:
        return None
    for attribute in asked.attributes:
        one, other = (_value(side, rival, asked, attribute) for side, rival in (sides, sides[::-1]))
        if one and other and one.unit == other.unit:
            return _answer(asked.direction, sides, (one, other))
    return None


def _answer(direction: _Direction, sides: Sequence[Side], values: Sequence[_Value]) -> tuple[int, str] | None:
    """The side that wins and both values, as exactly as both are told: a year is not before a month of that year."""
    n_told = min(len(value.parts) for value in values)
    one, other = (value.parts[:n_told] for value in values)
    if one == other:
        return None
    winner = int((other < one) == direction.is_least)
    loser = 1 - winner
    return winner, f"{sides[winner].name} ({values[winner].written}; {sides[loser].name}: {values[loser].written})"


def _asked(question: str, sides: Sequence[Side]) -> _Asked | None:
    """The comparison that a question asks for; None where it asks for none, or for several."""
    names = {word for side in sides for word, _, _ in word_spans(side.name)}
    words = [word for word, _, _ in word_spans(question) if word not in names]
    places = [place for place, word in enumerate(words) if word in _DIRECTIONS]
    directions = {_DIRECTIONS[words[place]] for place in places}
    if len(directions) != 1:
        return None
    direction = directions.pop()
    if direction.attributes == _LONGER and "been" in words:
        # Who has been there longer came earlier.
        direction = _Direction(True, not direction.is_least, _SINCE)
    told = {term.text for term in parse_question(question).terms}.difference(
        names, _DIRECTIONS, _EMPTY_VERBS, _kind(words)
    )
    wanted = {word: _meaning(word) for word in words if word in told}
    noun = [wanted[word] for word in words[places[0] + 1 :][:1] if word in wanted and not direction.is_date]
    attributes = tuple(noun) or direction.attributes
    if not attributes and wanted:
        attributes = (frozenset().union(*wanted.values()),)
    return _Asked(
        direction, attributes or (_BEGINNINGS if direction.is_date else ()), tuple(wanted.values()), _stems(question)
    )


def _kind(words: Sequence[str]) -> list[str]:
    """The words that say of what kind both sides are, and no more: the "film" of "which film came out first"."""
    asking = next((place for place, word in enumerate(words) if word in ("which", "what")), len(words))
    kind = list(
        takewhile(lambda word: word not in _EMPTY_VERBS and stem(word, "english") not in _SYNONYMS, words[asking + 1 :])
    )
    is_followed = asking + 1 + len(kind) < len(words) and _DIRECTIONS.keys().isdisjoint(kind)
    return kind if is_followed and len(set(kind) - FUNCTION_WORDS) < 3 else []


def _meaning(word: str) -> Attribute:
    root = stem(word, "english")
    return _SYNONYMS.get(root, frozenset({root}))


def _value(side: Side, other: Side, asked: _Asked, attribute: Attribute) -> _Value | None:
    """The one value of an attribute that a side tells, in a text that holds all words of the question."""
    told = _stems(side.text)
    if not told & attribute or not all((told | _stems(side.context)) & word for word in asked.words):
        return None
    cells = key_values(side.text, 0, len(side.text))
    if not cells:
        return _beside(side.text, asked, attribute)
    columns = {cell.key.casefold(): cell.value for cell in cells}
    if columns.keys() >= {side.name.casefold(), other.name.casefold()}:
        return _only(_values(columns[side.name.casefold()], asked.direction))

    def rank(column: str) -> tuple[int, int]:
        held = _stems(column)
        return sum(not held.isdisjoint(word) for word in asked.words), -len(held)

    found = {
        column: value
        for column, cell in columns.items()
        if _stems(column) & attribute
        and (attribute not in asked.direction.attributes or _stems(column) <= attribute | asked.stems | _UNITS)
        and (value := _only(_values(cell, asked.direction)))
    }
    best = _only([column for column in found if rank(column) == max(map(rank, found))])
    return found[best]._replace(unit=f"{best} {found[best].unit}") if best else None


def _beside(text: str, asked: _Asked, attribute: Attribute) -> _Value | None:
    """The value of a clause that tells nothing but it; None where there are several.

    Up to the value and the word of the attribute, only names, words of the question and words that join may stand:
    "her mast is 12 m long" is no length of a boat, "founded by Moen moved in 1968" no date of founding.
    """
    values = _values(text, asked.direction)
    words = [(start, end, stem(word, "english"), word in _JOINING) for word, start, end in word_spans(text)]
    named = [(start, end) for start, end, root, _ in words if root in attribute]

    def is_told(value: _Value, start: int, end: int) -> bool:
        first, last = min(value.start, start), max(value.end, end)
        begins = max((match.end() for match in _CLAUSE_END.finditer(text, 0, first)), default=0)
        return not _CLAUSE_END.search(text, min(value.end, end), max(value.start, start)) and all(
            joins or (at and text[at].isupper()) or root in asked.stems | attribute or value.start <= at < value.end
            for at, _, root, joins in words
            if begins <= at < last
        )

    found = _only([value for value in values if any(is_told(value, *span) for span in named)])
    return found if found and sum(value.unit == found.unit for value in values) == 1 else None


def _only(found: Sequence[_Found]) -> _Found | None:
    return found[0] if len(found) == 1 else None


def _values(text: str, direction: _Direction) -> list[_Value]:
    """The dates of a text, each once, or its numbers that are no dates; none of a text with a range of numbers.

    Digits alone, as in a cell, are a number.
    """
    spans = date_spans(text)
    if direction.is_date:
        dates = [(days[0], span) for span in spans if (days := days_in(text[slice(*span)]))]
        first = dict(reversed(dates))
        return [_Value(tuple(filter(None, day)), "", text[slice(*span)], *span) for day, span in first.items()]
    for start, end in () if text.isdigit() else spans:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return [] if _RANGE.search(text) else [_amount(match) for match in _AMOUNT.finditer(text)]


def _amount(match: re.Match[str]) -> _Value:
    figure = _THOUSANDS.sub("", match["figure"]).replace(",", ".").replace("−", "-")
    after, per = match["after"] or "", match["per"] or ""
    is_unit = not match["before"] or after.split(" ")[0].casefold() in _SCALES
    unit = " ".join(filter(None, (match["before"], after if is_unit else "", per.strip()))).casefold()
    end = match.end() if per else match.end("after") if after and is_unit else match.end("figure")
    start = match.start("before") if match["before"] else match.start("figure")
    return _Value((float(figure.replace("'", "").replace("’", "")),), unit, match.string[start:end].strip(), start, end)
