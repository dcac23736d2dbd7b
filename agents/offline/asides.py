"""What a parenthesis says of the name before it: life dates, other names, whatever else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.offline.clauses import Item
from agents.offline.entity_spans import EntitySpan, SpanKind
from agents.offline.words import AUXILIARIES, CONJUNCTIONS, DETERMINERS

EXPLICIT = 0.9
"""Confidence of a statement that the sentence makes in so many words, of a subject that it names."""

LIKELY = 0.7
"""Confidence where the subject is a pronoun, or the verb stands at a distance."""

UNCERTAIN = 0.5
"""Confidence of entities that merely occur together."""

_LONGEST_PREDICATE = 4
_NO_PREDICATE = DETERMINERS | CONJUNCTIONS | AUXILIARIES


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in the sentence's own words, not yet typed."""

    subject: str
    predicate: str
    object: str
    confidence: float


def aside_statements(items: Sequence[Item], owner: str) -> list[Statement]:
    """Return what the items of a parenthesis say of its owner; "Irish: ..." gives its name in that language."""
    spans = [item.span for item in items if item.span is not None]
    dates = [span for span in spans if span.kind is SpanKind.DATE]
    words: list[str] = []
    statements = []
    translated = False
    for position, item in enumerate(items):
        if item.span is None:
            words.append(item.lower)
            continue
        if position + 1 < len(items) and items[position + 1].lower == ":":
            translated, words = True, []
            continue
        before = [word for word in words if word.isalpha() and word not in _NO_PREDICATE]
        if item.span.kind is SpanKind.DATE:
            statements.append(Statement(owner, _date_predicate(before, dates, item.span), item.span.text, EXPLICIT))
        elif translated or item.span.kind is SpanKind.FOREIGN or is_acronym(item.span.text, owner):
            statements.append(Statement(owner, "also known as", item.span.text, EXPLICIT))
        elif before[-1:] == ["born"]:
            statements.append(Statement(owner, "born as", item.span.text, LIKELY))
        else:
            predicate = " ".join(before[-_LONGEST_PREDICATE:]) or "with"
            statements.append(Statement(owner, predicate, item.span.text, UNCERTAIN))
        words, translated = [], False
    return statements


def is_acronym(short: str, name: str) -> bool:
    """Tell whether a text is made of the initials of a name's capitalised words."""
    return len(short) > 1 and short == "".join(word[0] for word in name.split() if word[0].isupper())


def _date_predicate(before: Sequence[str], dates: Sequence[EntitySpan], date: EntitySpan) -> str:
    """What a date in parentheses is: as the words before it say, else the ends of a life or of a period."""
    if "died" in before:
        return "died"
    if "born" in before:
        return "born"
    if len(dates) != 2:
        return "dated"
    has_days = all(any(letter.isalpha() for letter in each.text) for each in dates)
    names = ("born", "died") if has_days else ("from", "until")
    return names[0] if date is dates[0] else names[1]
