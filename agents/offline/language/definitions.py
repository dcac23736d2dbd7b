"""What a text defines: terms in small letters by "is a" and "means", acronyms by the words before them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from agents.offline.language.clauses import PAST
from agents.offline.language.statements import EXPLICIT, LIKELY, Statement
from agents.offline.language.words import ADVERBS, FUNCTION_WORDS, PREPOSITIONS, RELATIVES

_WORD = r"\p{L}[\p{L}\p{N}’'\-/]*+"
_TERM = rf"(?P<term>{_WORD}(?: {_WORD}){{0,3}}?)(?: \([\p{{Lu}}\p{{N}}]\p{{L}}{{1,9}}\))?"
_DEFINITION = regex.compile(
    rf"(?:An?|The term) {_TERM},? (?:(?P<verb>is) (?:an?|the) |(?P<verb>means|refers to) (?:(?:an?|the) )?)"
    rf"|{_TERM} (?P<verb>are|means?|refers? to) (?:(?:an?|the|any) )?"
)
_CLASS = regex.compile(rf"{_WORD}(?: {_WORD}){{0,7}}+")
_ACRONYM = regex.compile(r"(?<=\p{Ll}) ?\((?P<short>\p{Lu}{2,6}+)(?P<plural>s?)\)")
_LAST_WORDS = regex.compile(rf"(?:{_WORD} ){{0,8}}{_WORD}\Z")
_LONGEST_FORM = 80
_NO_CLASS = ADVERBS | PAST | FUNCTION_WORDS
_NO_PLURAL = ("ss", "us", "is", "os", "as")
_ENDS = (PREPOSITIONS - {"of"}) | RELATIVES | PAST | {"and", "or", "but", "when", "you", "because", "so"}


def definitions(text: str, sentences: Iterable[tuple[int, int]]) -> list[Statement]:
    """Return what sentences say that define a term in general: "A jumbo frame is a frame with ..." is one of them.

    Plurals need a plural behind "are": "Bonds are loans", not "Bonds are safe". What is said of "the" one thing at hand
    defines nothing.
    """
    found = []
    for start, end in sentences:
        match = _DEFINITION.match(text, start, end)
        if match is None or not _is_term(match["term"]):
            continue
        said = _class(text[match.end() : end])
        if said and (match["verb"] != "are" or any(map(_is_plural, said.split()))):
            found.append(Statement(match["term"], match["verb"], said, LIKELY))
    return found


def _is_term(term: str) -> bool:
    return not any(word in FUNCTION_WORDS or word in ADVERBS for word in term.lower().split())


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(_NO_PLURAL)


def _class(rest: str) -> str:
    """The words of a noun phrase, up to what only describes it."""
    match = _CLASS.match(rest)
    words = match[0].split() if match else []
    end = next((place for place, word in enumerate(words) if place and _describes(word)), len(words))
    kept = words[:end]
    if not kept or kept[0].lower() in _NO_CLASS or kept[0].endswith(("ed", "ing", "ly")):
        return ""
    while kept and kept[-1].lower() in FUNCTION_WORDS | ADVERBS:
        kept.pop()
    return " ".join(kept)


def _describes(word: str) -> bool:
    """Whether a word behind a noun phrase begins what describes it: "a frame used by", "a frame with"."""
    return word.lower() in _ENDS or word.endswith(("ed", "ing"))


def acronyms(text: str) -> Iterator[Statement]:
    """Yield (long form, "also known as", acronym) where the words before an acronym begin with its letters."""
    for match in _ACRONYM.finditer(text):
        before = _LAST_WORDS.search(text[max(0, match.start() - _LONGEST_FORM) : match.start()])
        words = before[0].split(" ") if before else []
        for first in range(len(words) - 1, -1, -1):
            initials = "".join(part[0] for word in words[first:] for part in word.split("-") if part)
            if initials.upper() == match["short"]:
                form = " ".join(words[first:])
                yield Statement(form.removesuffix(match["plural"]), "also known as", match["short"], EXPLICIT)
                break
