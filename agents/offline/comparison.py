"""Which of two comes first, costs less, lasts longer: computed from a cell of each, or a date in a sentence of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from agents.offline.questions import parse_question
from agents.offline.words import AUXILIARIES, FUNCTION_WORDS, date_spans, days_in, stem, word_set, word_spans, words_of
from graph.sentences import KeyValue, key_values

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
    """A number or the parts of a date, its unit, how it is written, and its column if it is a cell of a named row."""

    parts: tuple[float, ...]
    unit: str
    written: str
    column: str = ""


def _attributes(*texts: str) -> tuple[Attribute, ...]:
    return tuple(frozenset(_stems(text)) for text in texts)


def _stems(text: str) -> set[str]:
    return {stem(word, "english") for word in words_of(text)}


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
_AMOUNT = re.compile(
    r"(?P<currency>[$€£¥]|[A-Z]{3}(?=\s))?\s?(?P<figure>[-−]?\d+(?:[.,'’]\d{3})*(?:[.,]\d+)?)"
    r"(?:\s?(?P<unit>[$€£¥%]|(?:(?:hundred|thousand|million|billion)\s)?[^\W\d_]+))?"
    r"(?P<per>\s?(?:/\s?|per |an? |each )\w+)?"
)
_AMBIGUOUS = re.compile(r"[-−]?[1-9]\d{0,2}\.\d{3}")
_THOUSANDS = re.compile(r"(?<!\b0)[.,'’](?=\d{3}(?:\D|$))")
_UNITS = _stems("eur usd gbp chf per in of date year kg g t lb km m cm mm mi ft h min s")
_CODE = re.compile(r"(?=\S*\d)\S+")
_CLAUSE_END = re.compile(r"[,;()\n]")
_JOINING = word_set("a an the it its he she his her they their is was were has had been in on at of by for with since")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things compared.

    Attributes:
        name: as the question names it.
        text: the sentence or row found on it.
        context: the title and headings of that.
        rows: all rows at hand, which may tell another value of it.
        lines: key-value lines that are of this side alone, as those of its data sheet.
    """

    name: str
    text: str
    context: str = ""
    rows: Sequence[str] = ()
    lines: Sequence[KeyValue] = ()


def compare(question: str, sides: Sequence[Side]) -> tuple[int, str] | None:
    """Return which side wins, by its place, and the answer in a few words; None where that is not certain.

    It is certain where the question holds one word of comparison, and both sides tell one value of the attribute that
    it asks for: a number of one unit or a date in the column of that name, of the row that has the side's name and no
    other; the only date of a sentence, beside the attribute's word; or a line of that name in a data sheet of each.
    Numbers in sentences are not computed with: a clause may say "up to", "without tax" or "for the other one" in too
    many ways.
    """
    asked = _asked(question, sides) if len(sides) == 2 else None
    if asked is None:
        return None
    for attribute in asked.attributes:
        one, other = (_value(side, asked, attribute) for side in sides)
        if one and other and (one.column, one.unit) == (other.column, other.unit):
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
    winning = ": ".join(filter(None, (values[winner].column, values[winner].written)))
    return winner, f"{sides[winner].name} ({winning}; {sides[loser].name}: {values[loser].written})"


def _asked(question: str, sides: Sequence[Side]) -> _Asked | None:
    """The comparison that a question asks for; None where it asks for none, or for several."""
    names = {word for side in sides for word in words_of(side.name)}
    words = [word for word, _, _ in word_spans(question) if word not in names]
    places = [place for place, word in enumerate(words) if word in _DIRECTIONS]
    directions = {_DIRECTIONS[words[place]] for place in places}
    if len(directions) != 1:
        return None
    direction = directions.pop()
    if direction.attributes == _LONGER and "been" in words:
        # The one that has been there longer came earlier.
        direction = _Direction(True, not direction.is_least, _SINCE)
    terms = {term.text for term in parse_question(question).terms}.difference(
        names, _DIRECTIONS, _EMPTY_VERBS, _kind(words)
    )
    wanted = {word: _meaning(word) for word in words if word in terms}
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


def _value(side: Side, asked: _Asked, attribute: Attribute) -> _Value | None:
    """The one value of an attribute that a side tells, in a text that holds all words of the question."""
    if side.lines:
        return _in_cells(side.lines, asked, attribute)
    stems = _stems(side.text)
    if not stems & attribute or not all((stems | _stems(side.context)) & word for word in asked.words):
        return None
    cells = key_values(side.text, 0, len(side.text))
    if len(cells) < 2:
        return _date_beside(side.text, asked, attribute) if asked.direction.is_date else None
    rows = [cells, *(key_values(row, 0, len(row)) for row in side.rows)]
    value, *others = [_in_cells(row, asked, attribute) if _is_named(side.name, row) else None for row in rows]
    is_one = value and all((row.parts, row.unit) == (value.parts, value.unit) for row in others if row)
    return value if is_one else None


def _in_cells(cells: Sequence[KeyValue], asked: _Asked, attribute: Attribute) -> _Value | None:
    """The value of the cell or line whose name the question means."""

    def rank(column: str) -> tuple[int, int]:
        stems = _stems(column)
        return sum(not stems.isdisjoint(word) for word in asked.words), -len(stems)

    values = {
        cell.key: value
        for cell in cells
        if _stems(cell.key) & attribute
        and (attribute not in asked.direction.attributes or _stems(cell.key) <= attribute | asked.stems | _UNITS)
        and (value := _read(cell.value, asked.direction))
    }
    best = [column for column in values if rank(column) == max(map(rank, values))]
    return values[best[0]]._replace(column=best[0]) if len(best) == 1 else None


def _is_named(name: str, cells: Sequence[KeyValue]) -> bool:
    """Tell whether a row has a name: in its first cell, or the one behind a number or a code such as "E-10".

    It may stand there with as many other words ("Ltd"). A name in another cell is of something that several rows may
    have, such as the manager of customers.
    """
    words = words_of(name) - FUNCTION_WORDS
    naming = cells[: 2 if cells and _CODE.fullmatch(cells[0].value) else 1]
    called = [words_of(cell.value) for cell in naming]
    return any(words <= each and 0 < len(each) <= 2 * len(words) for each in called)


def _date_beside(text: str, asked: _Asked, attribute: Attribute) -> _Value | None:
    """The date of a sentence that tells one, in a clause that tells nothing else.

    Up to the date and the word of the attribute, only names, words of the question and words that join may stand:
    "founded by Moen moved in 1968" is no date of founding, and neither is "founded after 1968".
    """
    spans = date_spans(text)
    if len(spans) != 1:
        return None
    start, end = spans[0]
    words = [(at, to, stem(word, "english"), word in _JOINING) for word, at, to in word_spans(text)]

    def is_told(at: int, to: int) -> bool:
        first, last = min(start, at), max(end, to)
        begins = max((match.end() for match in _CLAUSE_END.finditer(text, 0, first)), default=0)
        return not _CLAUSE_END.search(text, min(end, to), max(start, at)) and all(
            joins or (at and text[at].isupper()) or root in asked.stems | attribute or start <= at < end
            for at, _, root, joins in words
            if begins <= at < last
        )

    is_date = any(is_told(at, to) for at, to, root, _ in words if root in attribute)
    return _read(text[start:end], asked.direction) if is_date else None


def _read(written: str, direction: _Direction) -> _Value | None:
    """The value of a text that holds one date, or one number with its unit, and nothing else."""
    written = written.strip()
    if direction.is_date:
        days = days_in(written) if date_spans(written) == [(0, len(written))] else []
        return _Value(tuple(filter(None, days[0])), "", written) if days else None
    match = _AMOUNT.fullmatch(written)
    if match is None or _AMBIGUOUS.fullmatch(match["figure"]):
        return None
    figure = re.sub("['’]", "", _THOUSANDS.sub("", match["figure"]).replace(",", ".").replace("−", "-"))
    unit = " ".join(match[part].strip() for part in ("currency", "unit", "per") if match[part])
    return _Value((float(figure),), unit.casefold(), written)
