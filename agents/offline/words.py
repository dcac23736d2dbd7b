"""Words that the offline agents read: classes and stems of words, and dates.

Classes are of English words; function words, stems and dates are known in several languages.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, NamedTuple

import regex

from graph.construction.bm25 import stop_words
from graph.text import token_spans, tokens


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list written as one text."""
    return frozenset(text.split())


DETERMINERS = word_set(
    "a an the this that these those its his her their our my your some any each every both all several many few "
    "another other such no most more one two three four five six seven eight nine ten"
)
PREPOSITIONS = word_set(
    "of in on at by to from with for into onto over under near within along through across between among against "
    "about after before during since until till around behind beyond towards toward upon via as like including "
    "outside inside off up without despite besides unlike amid per alongside throughout"
)
CONJUNCTIONS = word_set(
    "and or but nor while although though because if whereas when where so than unless once whether"
)
RELATIVES = word_set("who which that whom whose where")
PRONOUNS = word_set(
    "it he she they him them i we you us its his her their itself himself herself themselves there this these those "
    "who what one"
)
AUXILIARIES = word_set(
    "is was are were be been being am has have had having does did do can could may might will would shall should must "
    "became become becomes remains remained"
)
COPULAS = word_set("is was are were became becomes remains remained been be")
ADVERBS = word_set(
    "also not first last later then now still currently originally previously formerly often usually mainly mostly "
    "widely best well best-known well-known better once twice again never always only already soon subsequently "
    "initially officially eventually primarily generally recently jointly ever even just about approximately commonly"
)
_QUESTION_WORDS = word_set("what which who whom whose when where why how did do does name tell")
_OTHER_FUNCTION_WORDS = word_set(
    "s t d not no yes if then there here very too much own same up out off down again et al"
)

FUNCTION_WORDS = _QUESTION_WORDS.union(
    DETERMINERS, PREPOSITIONS, CONJUNCTIONS, RELATIVES, PRONOUNS, AUXILIARIES, _OTHER_FUNCTION_WORDS
)

_SUFFIXES = ("ing", "ers", "ors", "ed", "er", "or", "es", "e", "s")
_SHORTEST_STEM = 4


@lru_cache(maxsize=20_000)
def bare_stem(token: str) -> str:
    """Return a token without accents (Latin script) and without a common English ending: "directors" is "direct"."""
    bare = token
    if not token.isascii():
        bare = "".join(mark for mark in unicodedata.normalize("NFKD", token) if not unicodedata.combining(mark))
    if not bare or not bare.isascii():
        return token
    for suffix in _SUFFIXES:
        if bare.endswith(suffix) and len(bare) - len(suffix) >= _SHORTEST_STEM:
            bare = bare[: -len(suffix)]
            break
    return f"{bare[:-1]}i" if bare.endswith("y") and len(bare) > _SHORTEST_STEM else bare


def content_stems(text: str) -> list[str]:
    """Return the stems of a text's tokens that are no English function words, in order, repeats kept."""
    return [bare_stem(token) for token in tokens(text) if token not in FUNCTION_WORDS]


_ASKING = word_set(
    "who whom whose what which when where why how many much did does do tell me us please give name list show find "
    "out get got can could will would shall may might must should we our us you your my i it its they them their he "
    "she his her him there here any all each every also know need want someone somebody person people colleague "
    "whoever thing come mr mrs ms dr one ones wer wen wem was wann wo warum wieso wie viel viele welche welcher "
    "welches welchem welchen kann können müssen wir uns unser bitte nenne herr frau qui que quoi quel quelle quels "
    "quelles combien comment pourquoi où quand faut"
)
_CODE = regex.compile(r"\b\p{L}{1,6}[-‑]?\d(?:[\w.-]*\w)?|\b\d+(?:[.,:/'’]\d+)+|\b\d+\p{L}?\b")
_HYPHEN = str.maketrans("‑", "-")


def word_spans(text: str) -> list[tuple[str, int, int]]:
    """Return (word, start, end) of each word, as `token_spans` does, but with codes and numbers whole: "vx-210"."""
    codes = [(match[0].casefold().translate(_HYPHEN), *match.span()) for match in _CODE.finditer(text)]
    if not codes:
        return token_spans(text)
    words = []
    place = 0
    for token, start, end in token_spans(text):
        while place < len(codes) and codes[place][2] <= start:
            words.append(codes[place])
            place += 1
        if place == len(codes) or start < codes[place][1]:
            words.append((token, start, end))
    return [*words, *codes[place:]]


def words_of(text: str) -> frozenset[str]:
    """Return the words of `word_spans`, each once."""
    return frozenset([word for word, _, _ in word_spans(text)])


def language_of(text: str) -> str:
    """Return the language whose function words a text holds most of; English where none does."""
    words = tokens(text)
    counts = {language: sum(map(known.__contains__, words)) for language, known in _stop_words().items()}
    return max(counts, key=counts.__getitem__)


@lru_cache(maxsize=16)
def function_words(language: str) -> frozenset[str]:
    """Return the words that say nothing of what is asked: articles, pronouns, question words, ..."""
    return _ASKING | _stop_words()[language]


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """Return a word without its endings (Snowball)."""
    stemmed: str = _stemmer(language).stemWord(word)
    return stemmed


@lru_cache(maxsize=16)
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language)


@lru_cache(maxsize=1)
def _stop_words() -> dict[str, frozenset[str]]:
    """The stop words of each language, English first."""
    lists = stop_words()
    others = "german french spanish italian portuguese dutch swedish norwegian danish russian"
    known = {language: frozenset(lists[f"STOPWORDS_{language.upper()}"]) for language in others.split()}
    return {"english": frozenset(lists["STOPWORDS_EN_PLUS"]), **known}


_MONTHS = (
    "january|jan|januar|jänner|janvier",
    "february|feb|februar|février",
    "march|mar|märz|mars",
    "april|apr|avril",
    "may|mai",
    "june|jun|juni|juin",
    "july|jul|juli|juillet",
    "august|aug|août",
    "september|sept|sep|septembre",
    "october|oct|oktober|okt|octobre",
    "november|nov|novembre",
    "december|dec|dezember|dez|décembre",
)
_NUMBER_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split("|")}
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
    return [*map(re.Match.span, _DATE.finditer(text))]


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
    months = [_NUMBER_OF[word] for word in _WORD.findall(match[0].casefold()) if word in _NUMBER_OF]
    if not months or figures[-1] < 1000:
        return None
    return _possible(Day(figures[-1], months[0], figures[0] if len(figures) > 1 else 0))


def _possible(day: Day) -> Day | None:
    return day if day.month <= 12 and day.day <= 31 else None
