"""Dates in text: whether a phrase is a date, and where dates stand in a sentence."""

from __future__ import annotations

import re

_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec"
)
_MONTH = rf"(?:{_MONTHS})\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_NATIVE_ONE_OR_TWO = "\u0661\u0662\u06f1\u06f2\u0967\u0968\u09e7\u09e8\u0e51\u0e52"
_YEAR = rf"(?:[12]|[{_NATIVE_ONE_OR_TWO}])\d{{3}}"
_RANGE = r"\s?[-–—]\s?"
_NUMBERED = rf"{_YEAR}-\d{{2}}-\d{{2}}|\d{{1,2}}(?P<mark>[./])\d{{1,2}}(?P=mark){_YEAR}"
_ERA = r" (?:BC|BCE|AD|CE)\b"

_WORD = re.compile(r"\w+")
_MONTH_WORD = re.compile(_MONTHS.lower())
_CALENDAR_WORD = re.compile(rf"{_YEAR}|\d{{2,4}}s|\d{{3,4}}年.*|century|centuries|millennium|decade")
_SMALL_NUMBER = re.compile(r"\d{1,2}(?:st|nd|rd|th)?|\d{3}")
_WHOLE_YEAR = re.compile(rf"\b{_YEAR}\b")
_ERAS = frozenset(("bc", "bce", "ad", "ce"))
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_SEASONS = "spring summer autumn fall winter"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_LINKING_WORDS = (
    "in on at of the a an and to from since until till by circa c ca about around approximately between through during "
    "before after early mid middle late b d e s year years present today"
)
_DATE_WORDS = _ERAS | frozenset(" ".join((_WEEKDAYS, _SEASONS, _ORDINALS, _LINKING_WORDS)).split())

_CENTURY = rf"(?:(?:early|mid|late)[ -])?(?:{_ORDINALS.replace(' ', '|')}|\d{{1,2}}(?:st|nd|rd|th))[ -][Cc]entury"
_DATE = re.compile(
    rf"(?<!\d[.,–—-])\b(?:(?:{_NUMBERED})(?![-./]?\d)"
    rf"|(?:{_DAY}(?:{_RANGE}| and | to ))?{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR}\b)?"
    rf"|{_MONTH} {_DAY}\b(?:{_RANGE}{_DAY}\b|(?: and | to ){_DAY}(?=,? {_YEAR}\b))?(?:,? {_YEAR}\b)?"
    rf"|{_MONTH},? {_YEAR}\b"
    rf"|{_CENTURY}(?:{_ERA})?"
    rf"|\d{{1,4}}{_ERA}"
    rf"|{_YEAR}(?:{_RANGE}|/){_YEAR}\b(?![-–—])"
    rf"|{_YEAR}[-–—/]\d{{2}}\b(?![-–—])"
    rf"|{_YEAR}s?\b(?![.,]\d|[-–—]\d))"
    r"|(?<!\d)\d{3,4}年(?:\d{1,2}月(?:\d{1,2}日)?)?"
)


def is_date(text: str) -> bool:
    """Tell whether a text is a date and nothing else: a year, day, month, decade or century, or a range of them."""
    anchored = False
    small_number = False
    era = False
    for word in _WORD.findall(text.casefold()):
        if _CALENDAR_WORD.fullmatch(word) or _MONTH_WORD.fullmatch(word):
            anchored = True
        elif _SMALL_NUMBER.fullmatch(word):
            small_number = True
        elif word not in _DATE_WORDS:
            return False
        era = era or word in _ERAS
    return anchored or (small_number and era)


def year_in(date: str) -> str:
    """Return the year that a longer date ends or begins with ("5 May 1933"), or nothing."""
    years = _WHOLE_YEAR.findall(date)
    return years[0] if len(years) == 1 and years[0] != date else ""


def date_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each date in a text, left to right; a month alone is no date."""
    return [match.span() for match in _DATE.finditer(text)]
