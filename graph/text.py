"""Unicode-aware text: normal forms of names, tokens in any script, dates, and known names within a text."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))
_FIRST_IN_NAME = regex.compile(r"[\p{L}\p{M}\p{N}]")
_LAST_IN_NAME = regex.compile(r"(?r)[\p{L}\p{M}\p{N}]")
# Scripts written without spaces, or (Hangul) with particles glued to names: one token a character.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]+"
_DECOMPOSED_HANGUL = r"[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?"
_TOKEN = regex.compile(
    rf"{_DECOMPOSED_HANGUL}|[{_UNSPACED}]\p{{M}}*|{_WORD}(?:[\u00ad\u200b\u2060\ufeff]+{_WORD})*", regex.V1
)
# The tokens that _TOKEN finds where there is nothing but ASCII, in a tenth of its time.
_ASCII_TOKEN = re.compile(r"[a-z0-9]+")
_UNSPACED_TOKEN = regex.compile(rf"[{_UNSPACED}]")
_TRAILING_PARENTHESIS = re.compile(r"\([^()]*\)\s*$")


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, which takes an s, or its own plural, unless there is exactly one."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


@lru_cache(maxsize=50_000)
def normalise_name(name: str) -> str:
    """Return the normal form under which spellings of one name meet.

    NFKC, casefold, one space between words, no punctuation at the edges. Never empties a name that
    holds any visible character: where stripping would leave nothing, the unstripped form stays.
    """
    folded = name.lower()
    if not name.isascii():
        visible = name.translate(_INVISIBLE)
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    spaced = " ".join(folded.split())
    first, last = _FIRST_IN_NAME.search(spaced), _LAST_IN_NAME.search(spaced)
    return spaced[first.start() : last.end()] if first and last else spaced


def without_controls(text: str) -> str:
    """Return a text with U+FFFD in place of each control character: C0, DEL and C1, line ends and tabs among them."""
    return _CONTROL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return a text with a space in place of line ends and other control characters."""
    return _LINE_ENDS.sub(" ", text).strip()


def has_controls(text: str) -> bool:
    """Tell whether a text holds a control character."""
    return _CONTROL.search(text) is not None


def is_unicode(text: str) -> bool:
    """Tell whether a text can be stored: it holds no half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def tokens(text: str) -> list[str]:
    """Split text into normalised tokens: words, and single characters of scripts written without spaces."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    return [token for match in _TOKEN.finditer(text) for token in _tokens_of_word(match[0])]


def token_spans(text: str) -> list[tuple[str, int, int]]:
    """Return (normalised token, start, end) with offsets into the text as given.

    The tokens are those of `tokens`; one character may stand for several, which then share its span.
    """
    if text.isascii():
        return [(m[0], m.start(), m.end()) for m in _ASCII_TOKEN.finditer(text.lower())]
    return [(token, m.start(), m.end()) for m in _TOKEN.finditer(text) for token in _tokens_of_word(m[0])]


@lru_cache(maxsize=50_000)
def _tokens_of_word(word: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(normalise_name(word)))


def is_unspaced(token: str) -> bool:
    """Tell whether a token is a character of a script written without spaces."""
    return _UNSPACED_TOKEN.match(token) is not None


def name_length(name: str) -> int:
    """Count letters and digits; a character of a script written without spaces counts as two."""
    if name.isascii():
        return sum(map(str.isalnum, name))
    return sum(
        2 if is_unspaced(character) else 1
        for character in normalise_name(name)
        if unicodedata.category(character)[0] in "LN"
    )


def title_name(title: str) -> str:
    """Return the name a title stands for: the title without a trailing parenthesis."""
    return _TRAILING_PARENTHESIS.sub("", title).strip() or title.strip()


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

_WORD_OF_DATE = re.compile(r"\w+")
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
    anchored = small_number = era = False
    for word in _WORD_OF_DATE.findall(text.casefold()):
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
    return [*map(re.Match.span, _DATE.finditer(text))]


_SHORTEST = 3
"""Names of fewer letters and digits are too ambiguous to be found in running text."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A run of tokens that spells a known name: tokens[start:end] is the name with that index."""

    start: int
    end: int
    name: int


class NameMatcher:
    """Finds the longest known names in a sequence of tokens, from left to right, without overlap.

    Attributes:
        indices: of each spelling, its tokens joined by spaces: the indices of the names that are spelled so.
        lengths: of each first token of a spelling: how many tokens the spellings have, longest first.
    """

    def __init__(self, indices: Mapping[str, Sequence[int]], lengths: Mapping[str, Sequence[int]]) -> None:
        self.indices = indices
        self.lengths = lengths

    @staticmethod
    def of(names: Iterable[tuple[str, int]]) -> NameMatcher:
        """Return the matcher of (name, index) pairs; names may share an index (aliases), indices a spelling."""
        indices: dict[str, list[int]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for name, index in names:
            if (spelled := findable(name)) and index not in indices[spelled]:
                indices[spelled].append(index)
                words = spelled.split(" ")
                lengths[words[0]].add(len(words))
        return NameMatcher(indices, {first: sorted(each, reverse=True) for first, each in lengths.items()})

    def find(self, text_tokens: Sequence[str], among: NDArray[np.bool_] | None = None) -> list[Mention]:
        """Return the longest whole-name mentions; one for each index where a spelling has several.

        With ``among``, one element an index, the names of all others are unknown.
        """
        mentions: list[Mention] = []
        start = 0
        while start < len(text_tokens):
            end = start + 1
            for length in self.lengths.get(text_tokens[start], ()):
                indices = self.indices.get(" ".join(text_tokens[start : start + length]))
                if indices and among is not None:
                    indices = [index for index in indices if among[index]]
                if indices and start + length <= len(text_tokens):
                    end = start + length
                    mentions.extend(Mention(start, end, index) for index in indices)
                    break
            start = end
        return mentions


def findable(name: str) -> str:
    """Return a name's tokens joined by spaces; nothing where it is too short to be found in running text."""
    return " ".join(tokens(name)) if name_length(name) >= _SHORTEST else ""


def find_name(text_tokens_joined: str, name: str) -> int:
    """Return the index of the first token of ``name`` in tokens joined by (and within) spaces, or -1."""
    spelled = " ".join(tokens(name))
    at = text_tokens_joined.find(f" {spelled} ") if spelled else -1
    return text_tokens_joined.count(" ", 0, at) if at >= 0 else -1
