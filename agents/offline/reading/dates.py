"""Dates in English, German and French documents: where they stand, which they are, and when a document is from."""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTHS = (
    ("jan", "january|jan|januar|jänner|janvier"),
    ("feb", "february|feb|februar|février"),
    ("mar", "march|mar|märz|mars"),
    ("apr", "april|apr|avril"),
    ("may", "may|mai"),
    ("jun", "june|jun|juni|juin"),
    ("jul", "july|jul|juli|juillet"),
    ("aug", "august|aug|août"),
    ("sep", "september|sept|sep|septembre"),
    ("oct", "october|oct|oktober|okt|octobre"),
    ("nov", "november|nov|novembre"),
    ("dec", "december|dec|dezember|dez|décembre"),
)
_NUMBER_OF = {name: number for number, (_, names) in enumerate(_MONTHS, 1) for name in names.split("|")}
_MONTH = rf"(?:{'|'.join(sorted(_NUMBER_OF, key=len, reverse=True))})\b\.?"
_YEAR = r"(?:1[5-9]|20)\d\d"
_ANY_YEAR = r"(?:1\d|20)\d\d"
_EARLY_YEAR = "|".join(
    rf"(?<=\b{word} )1[0-4]\d\d" for word in ("in", "since", "until", "year", "seit", "bis", "jahr", "en")
)
_DATE = re.compile(
    rf"\b(?:(?P<iso>{_YEAR}-\d\d(?:-\d\d)?)(?![-\d])"
    rf"|(?P<figures>\d{{1,2}}[./-]\d{{1,2}}[./-](?:\d{{4}}|\d\d))(?!\d)"
    rf"|(?P<day_first>\d{{1,2}}(?:st|nd|rd|th|er|\.)? ?(?:of )?{_MONTH}(?:,? {_ANY_YEAR}\b)?)"
    rf"|(?P<month_first>{_MONTH} (?:\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? {_ANY_YEAR}\b)?|{_ANY_YEAR}\b))"
    rf"|(?P<year>(?:{_YEAR}|{_EARLY_YEAR})\b)(?![-./]?\d))",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_FIGURES = re.compile(r"\d+")


class Day(NamedTuple):
    """A date; month and day are 0 where they are not told. Dates compare in time."""

    year: int
    month: int = 0
    day: int = 0


def date_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each date of a text, in order; a year alone is one."""
    return [match.span() for match in _DATE.finditer(text)]


def month_number(word: str) -> int:
    """Return the number of a month's name or abbreviation, from 1; 0 for another word."""
    return _NUMBER_OF.get(word.casefold(), 0)


def month_names(number: int) -> list[str]:
    """Return the names and abbreviations of a month."""
    return _MONTHS[number - 1][1].split("|")


def days_in(text: str) -> list[Day]:
    """Return the dates of a text whose year is told, in order. Of 03/04/2024, the day comes first, if it may."""
    return [day for match in _DATE.finditer(text) if (day := _day(match)) is not None]


def _day(match: re.Match[str]) -> Day | None:
    figures = [int(number) for number in _FIGURES.findall(match[0])]
    if match["iso"] or match["year"]:
        return _possible(Day(*figures))
    if match["figures"]:
        day, month, year = figures
        day, month = (month, day) if day <= 12 < month else (day, month)
        return _possible(Day(year if year > 99 else 2000 + year, month, day))
    months = [number for word in _WORD.findall(match[0]) if (number := month_number(word))]
    if not months or figures[-1] < 1000:
        return None
    return _possible(Day(figures[-1], months[0], figures[0] if len(figures) > 1 else 0))


def _possible(day: Day) -> Day | None:
    return day if day.month <= 12 and day.day <= 31 else None
