"""The kind of answer that a question asks for, and whether a text holds one that the question does not."""

from __future__ import annotations

import re
from collections.abc import Set
from enum import Enum

from agents.offline.language.entities import scan_entities
from agents.offline.reading.dates import date_spans
from agents.offline.reading.words import language_of, word_spans


class AnswerKind(Enum):
    """The kind of answer that a question's words ask for; ANY where they do not tell."""

    EMAIL = "e-mail address"
    PHONE = "phone number"
    DATE = "date"
    COUNT = "number"
    WEIGHT = "weight"
    MONEY = "amount of money"
    MEASURE = "measure"
    TIME = "time"
    PERSON = "name"
    ANY = "answer"


_ASKS = (
    (AnswerKind.EMAIL, r"\be-?mail address\b|\bmail-?adresse\b|\badresse (?:e-?mail|électronique)\b"),
    (AnswerKind.PHONE, r"\b(?:phone|telephone|mobile|direct|emergency) (?:number|line)\b|\btelefonnummer\b"),
    (AnswerKind.COUNT, r"\bhow (?:many|often)\b|\bwie ?viele?\b|\bcombien\b"),
    (AnswerKind.WEIGHT, r"\bhow heavy\b|\bweigh(?:s|t)?\b|\bwie schwer\b"),
    (
        AnswerKind.MONEY,
        r"\bhow much (?:money|rent|(?:do|does|did|is|are|was|were|will) (?:we|you|they|it|one))\b"
        r"|\bhow much\b.*\b(?:pay|paid|spend|spent)\b"
        r"|\b(?:costs?|price|rent|fee|hourly rate|salary|deposit)\b|\bkostet\b|\bprix\b",
    ),
    (
        AnswerKind.MEASURE,
        r"\bhow (?:much|long|tall|high|large|big|old|far|deep|wide|heavy|fast|soon|quickly)\b"
        r"|\b(?:length|speed|weight|size|height|width|temperature|capacity)\b",
    ),
    (
        AnswerKind.DATE,
        r"^\W*(?:and )?when\b|\b(?:since|until|till|by) when\b|\bwhen\W*$|\bdate\b|\bdeadline\b"
        r"|\b(?:what|which) (?:year|date|month|day|decade|century)\b"
        r"|\bsince (?:when|what)\b|\bwann\b|\bquand\b",
    ),
    (AnswerKind.TIME, r"\bwhat time\b|\bwelche[rn]? (?:uhr)?zeit\b|\bquelle heure\b"),
    (AnswerKind.PERSON, r"\bwho\b|\bwhom\b|\bwer\b|\bqui\b"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _ASKS)
_YES_OR_NO = re.compile(r"\W*(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|had)\b")
_FIGURE = re.compile(r"\d+(?:[.,:/'’]\d+)*")
_NUMBER_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|once|twice|zwei|drei|vier|fünf"
    r"|sechs|sieben|acht|neun|zehn|deux|trois|quatre|cinq|sept|huit|neuf|dix)\b",
    re.IGNORECASE,
)


_HOLDS = {
    AnswerKind.EMAIL: re.compile(r"\w@\w"),
    AnswerKind.PHONE: re.compile(r"\+?\d[\d ()/-]{5,}\d"),
    AnswerKind.WEIGHT: re.compile(r"\d\s?(?:kg|g|mg|t|lbs?)\b|\b(?:kilo|gram|ton(?:ne)?s?\b|pounds?\b)", re.IGNORECASE),
    AnswerKind.MONEY: re.compile(
        r"[$€£¥]|(?<![^\W_])(?:eur|euros?|gbp|chf|usd|sek|nok|dkk|francs?|franken|dollars?|pounds?|cents?|million)(?![^\W_])"
        r"|\bfree(?: of charge)?\b|\bno charge\b",
        re.IGNORECASE,
    ),
}


def answer_kind(question: str) -> AnswerKind:
    """Return what a question asks for by its question words: English, and a few German and French ones."""
    plain = " ".join(question.casefold().split())
    if _YES_OR_NO.match(plain) and language_of(question) == "english":
        return AnswerKind.ANY
    return next((kind for kind, pattern in _COMPILED if pattern.search(plain)), AnswerKind.ANY)


def holds_kind(text: str, kind: AnswerKind, asked: Set[str]) -> bool:
    """Tell whether a text holds a date, a number or a name that the question does not; anything holds ANY.

    Args:
        text: what to look through.
        kind: what is asked for.
        asked: the question's words.
    """
    if kind is AnswerKind.ANY:
        return True
    if kind in _HOLDS and not _HOLDS[kind].search(text):
        return False
    if kind in (AnswerKind.EMAIL, AnswerKind.PHONE):
        return True
    dates = date_spans(text)
    if kind is AnswerKind.DATE:
        return any(not _words(text[start:end]) <= asked for start, end in dates)
    if kind is AnswerKind.PERSON:
        return any(span.is_name and not _words(span.text) <= asked for span in scan_entities(text).spans)
    for start, end in reversed(dates):
        text = f"{text[:start]} {text[end:]}"
    found = [match[0].casefold() for pattern in (_FIGURE, _NUMBER_WORD) for match in pattern.finditer(text)]
    return any(number not in asked for number in found)


def _words(text: str) -> set[str]:
    return {word for word, _, _ in word_spans(text)}
