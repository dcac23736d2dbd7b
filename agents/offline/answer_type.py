"""What kind of thing a question asks for, and whether a sentence holds one."""

from __future__ import annotations

import re
from enum import Enum, auto

from agents.offline.entity_spans import EntitySpan, SpanKind, scan_entities
from agents.offline.words import word_set
from graph.dates import date_spans
from graph.text import tokens


class AnswerType(Enum):
    """The kind of answer that a question's words ask for."""

    DATE = auto()
    PLACE = auto()
    PERSON = auto()
    NUMBER = auto()
    ANY = auto()


_ASKS = (
    (AnswerType.NUMBER, re.compile(r"\bhow (?:many|much|long|tall|high|large|big|old|far|deep)\b")),
    (
        AnswerType.DATE,
        re.compile(
            r"^when\b|\b(?:since|until|till|tell me) when\b|, when\b"
            r"|\b(?:what|which) (?:year|date|month|day|decade|century)\b"
        ),
    ),
    (
        AnswerType.PLACE,
        re.compile(
            r"^where\b|\b(?:what|which) (?:\w+ )?(?:city|country|state|county|town|village|region|province|place"
            r"|location|continent|island|river|district)\b"
        ),
    ),
    (AnswerType.PERSON, re.compile(r"^(?:who|whose|whom)\b|\b(?:by|to|of|with|for) whom\b|, who\b")),
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand)\b"
)
_PLACE_PREPOSITIONS = word_set("in at near from of to around")
_ORGANISATION_WORDS = word_set(
    "university college school institute company corporation inc ltd club team band league party church museum album "
    "film series award awards city county state states republic kingdom war river lake records association"
)


def answer_type(question: str) -> AnswerType:
    """Return what a question asks for by its English question words; ANY where they do not tell."""
    plain = " ".join(question.casefold().split())
    return next((kind for kind, pattern in _ASKS if pattern.search(plain)), AnswerType.ANY)


def holds_answer(sentence: str, kind: AnswerType, asked: frozenset[str]) -> bool:
    """Tell whether a sentence holds a date, number, place-like or person-like name that the question does not.

    Args:
        sentence: what to look through.
        kind: what the question asks for; ANY is held by nothing.
        asked: the question's tokens.
    """
    if kind is AnswerType.DATE:
        return any(not asked.issuperset(tokens(sentence[start:end])) for start, end in date_spans(sentence))
    if kind is AnswerType.NUMBER:
        return any(match[0] not in asked for match in _NUMBER.finditer(sentence.casefold()))
    if kind not in (AnswerType.PLACE, AnswerType.PERSON):
        return False
    names = [span for span in scan_entities(sentence).spans if span.kind in (SpanKind.NAME, SpanKind.FOREIGN)]
    new = [span for span in names if not asked.issuperset(tokens(span.text))]
    looks = _is_place_like if kind is AnswerType.PLACE else _is_person_like
    return any(looks(sentence, span) for span in new)


def _is_place_like(sentence: str, span: EntitySpan) -> bool:
    """Whether a preposition of place, or a place and a comma, stands before a name."""
    before = sentence[: span.start].rstrip()
    return before.endswith(",") or before.rpartition(" ")[2].casefold() in _PLACE_PREPOSITIONS


def _is_person_like(sentence: str, span: EntitySpan) -> bool:
    """Whether a name has the two to four words of a person's, none of them an organisation's; or another script's."""
    words = span.text.split()
    return span.kind is SpanKind.FOREIGN or (
        2 <= len(words) <= 4 and _ORGANISATION_WORDS.isdisjoint(word.casefold() for word in words)
    )
