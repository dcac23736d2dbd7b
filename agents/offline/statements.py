"""Statements that stand beside the clauses of sentences: in parentheses, in rows of tables and key-value lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agents.offline.clauses import NO_NOUNS, Item
from agents.offline.entities import EntitySpan, SpanKind, is_acronym, opening_name
from agents.offline.words import AUXILIARIES, CONJUNCTIONS, DETERMINERS, PREPOSITIONS, word_set
from graph.sentences import KeyValue
from graph.text import normalise_name, title_name, tokens

_USUAL_NOUNS = word_set(
    "company film movie song album single book novel series show city town village municipality river lake island "
    "mountain band group team club school university college station airport organization organisation species genus "
    "game building church museum magazine newspaper journal"
)


class Topic:
    """The name in a passage's title, its parts, and the nouns that stand for it ("the company").

    Attributes:
        aliases: longer names that were found to mean it.
        is_thing: its class is a usual noun for a thing or place, for which "he" and "she" do not stand.

    Args:
        title: the title; empty where the passage has none.
        text: the passage's text, which may open with a longer name.
    """

    def __init__(self, title: str, text: str = "") -> None:
        self.name = title_name(title)
        self.aliases: list[str] = []
        self._full_name = opening_name(text, self.name)
        self._title = normalise_name(title)
        self._words = tokens(self.name)
        self._nouns = set(_USUAL_NOUNS)
        self._is_defined = False
        self.is_thing = False
        self._is_plain_name = len(self._words) > 1 and all(
            word[0].isupper() for word in self.name.split() if word[0].isalpha()
        )

    def resolve(self, name: str) -> str:
        """Return the topic's name for a name that means it: the whole title, its last word ("Turing"), more names.

        Only a title of capitalised words alone, without a comma, is taken apart: "Bonn" is not "University of Bonn".
        """
        if normalise_name(name) == self._title:
            return self.name
        if name == self._full_name and name:
            return self._add_alias(name)
        if not self._is_plain_name or "," in self.name or name == self.name:
            return name
        words = tokens(name)
        if words == self._words[-1:]:
            return self.name
        if len(words) > len(self._words) and words[0] == self._words[0] and words[-1] == self._words[-1]:
            return self._add_alias(name)
        return name

    def _add_alias(self, name: str) -> str:
        if name not in self.aliases:
            self.aliases.append(name)
        return self.name

    def is_called(self, words: Iterable[str]) -> bool:
        """Tell whether a noun that stands for the topic opens the words after "the"."""
        return any(word in self._nouns for word in words)

    def learn_class(self, words: Iterable[str]) -> None:
        """Remember the nouns of "<topic> is a <words>"; the last of the first such sentence tells a thing."""
        learnt = [word for word in words if len(word) > 2 and word not in CONJUNCTIONS]
        if learnt and not self._is_defined:
            self._is_defined = True
            self.is_thing = learnt[-1] in _USUAL_NOUNS
        self._nouns.update(learnt)


LONGEST_TAIL = 4
"""Words after the verb that a predicate keeps; of more only what governs the object."""

CAUSAL_VERBS = {
    **dict.fromkeys(word_set("caused causes causing enabled enables prevented prevents"), ""),
    **dict.fromkeys(word_set("led leads leading"), "to"),
    **dict.fromkeys(word_set("resulted results resulting"), "in"),
}
"""Verbs that say what is caused, with the particle that they need."""


def without_determiner(words: list[str]) -> list[str]:
    """Return the words without the determiner that opens them."""
    return words[1:] if words and words[0] in DETERMINERS else words


def is_apposition(words: Sequence[str]) -> bool:
    """Tell whether words are those between the names of "X, the capital of Y"."""
    return len(words) > 2 and words[0] == "," and words[1] not in NO_NOUNS - DETERMINERS and words[-1] in PREPOSITIONS


def short_tail(tail: Sequence[str], after_copula: bool) -> list[str]:
    """Return what of the words after a verb belongs to the predicate: up to their last preposition if that is short.

    Of more, the preposition with its verb ("to detect") or noun ("west of"); after "is" the noun that it says the
    subject to be, with what governs it: "is (a small village and) suburb of", "is (a) village in (the state of)".
    """
    places = [index for index, word in enumerate(tail) if word in PREPOSITIONS]
    if not places:
        return []
    last = places[-1]
    is_infinitive = tail[last] == "to" and last + 1 < len(tail) and tail[last + 1] not in DETERMINERS
    governing = list(tail[: last + 2] if is_infinitive else tail[: last + 1])
    if len(governing) <= LONGEST_TAIL:
        return governing
    if after_copula and not is_infinitive:
        return list(tail[max(0, places[0] - 1) : places[0] + 1])
    return governing[-2:] if is_infinitive or governing[-1] == "of" else governing[-1:]


EXPLICIT = 0.9
"""Confidence of a statement that the sentence makes in so many words, of a subject that it names."""

LIKELY = 0.7
"""Confidence where the subject is a pronoun, or the verb stands at a distance."""

UNCERTAIN = 0.5
"""Confidence of entities that merely occur together."""

_LONGEST_PREDICATE = 4
_LONGEST_TRANSLATION = 8
_AFTER_NAME = word_set("or lit literally meaning abbreviated pronounced born")
_QUOTES = '"“”„«»'
_NO_PREDICATE = DETERMINERS | CONJUNCTIONS | AUXILIARIES


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in the sentence's own words, not yet typed."""

    subject: str
    predicate: str
    object: str
    confidence: float


def aside_statements(text: str, items: Sequence[Item], owner: str) -> list[Statement]:
    """Return what the items of a parenthesis say of its owner; "Irish: ..." gives its name in that language."""
    dates = _ends_of_period(text, items)
    words: list[str] = []
    statements = []
    translated = False
    after = 0
    for position, item in enumerate(items):
        if item.span is None:
            words.append(item.lower)
            continue
        if position < after:
            continue
        if position + 1 < len(items) and items[position + 1].lower == ":":
            after, name = _translated_name(text, items, position + 2)
            translated, words = not name, []
            if name:
                statements.append(Statement(owner, "also known as", name, EXPLICIT))
            continue
        before = [word for word in words if word.isalpha() and word not in _NO_PREDICATE]
        if item.span.kind is SpanKind.DATE:
            predicate = _date_predicate(before, dates, item.span)
            is_loose = predicate == "dated" and len(before) > _LONGEST_PREDICATE
            statements.append(Statement(owner, predicate, item.span.text, UNCERTAIN if is_loose else EXPLICIT))
        elif translated or item.span.kind is SpanKind.FOREIGN or is_acronym(item.span.text, owner):
            statements.append(Statement(owner, "also known as", item.span.text, EXPLICIT))
        elif before[-1:] == ["born"]:
            statements.append(Statement(owner, "born as", item.span.text, LIKELY))
        else:
            predicate = " ".join(before[-_LONGEST_PREDICATE:]) or "with"
            statements.append(Statement(owner, predicate, item.span.text, UNCERTAIN))
        words, translated = [], False
    return statements


def _translated_name(text: str, items: Sequence[Item], start: int) -> tuple[int, str]:
    """The name after "Irish:", small letters included, and where it ends; empty where an entity alone is one.

    It reaches to the next mark or quotation mark.
    """
    end = start
    while end < len(items) and (items[end].is_word or items[end].is_name) and items[end].lower not in _AFTER_NAME:
        if end > start and any(mark in _QUOTES for mark in text[items[end - 1].end : items[end].start]):
            break
        end += 1
    is_plain = start < end <= start + _LONGEST_TRANSLATION and any(item.is_word for item in items[start:end])
    return (end, text[items[start].start : items[end - 1].end]) if is_plain else (start, "")


def _ends_of_period(text: str, items: Sequence[Item]) -> list[EntitySpan]:
    """The dates of a parenthesis; but for a list of years ("1988, 2010"), which ends nothing, none."""
    dates = [item.span for item in items if item.span is not None and item.span.kind is SpanKind.DATE]
    if len(dates) == 2 and text[dates[0].end : dates[1].start].strip() in (",", "and", "&", "or", "/"):
        return []
    return dates


def _date_predicate(before: Sequence[str], dates: Sequence[EntitySpan], date: EntitySpan) -> str:
    """The kind of a date in parentheses: as the words before it say, else the ends of a life or of a period."""
    if "died" in before:
        return "died"
    if "born" in before:
        return "born"
    if len(dates) != 2:
        return "dated"
    has_days = all(any(letter.isalpha() for letter in each.text) for each in dates)
    names = ("born", "died") if has_days else ("from", "until")
    return names[0] if date is dates[0] else names[1]


_LONGEST_VALUE = 60
_PARTED = re.compile(r"[,/;] |\(| (?:and|und|et|y) ")
_SENTENCES = re.compile(r"[.!?]\s+\w")


def pair_statements(
    rows: Iterable[Sequence[KeyValue]], topic: str, text: str, spans: Sequence[EntitySpan]
) -> Iterator[Statement]:
    """Yield what rows say of their first cells, and single key-value lines of the passage's topic.

    A short value is taken whole, and of one with several parts the names and dates; numbers alone are no entities, and
    sentences in a cell say nothing of its row.

    Args:
        rows: the pairs of each row or line.
        topic: what the passage is about; empty where nothing says so.
        text: the passage's, which the spans are of.
        spans: the entities of the passage, in order.
    """
    starts = [span.start for span in spans]
    for pairs in rows:
        first = pairs[0].value
        subject = first if len(pairs) > 1 and (not topic or _is_whole(first)) else topic
        for pair in pairs:
            about = topic if pair is pairs[0] else subject
            for value in _objects(pair, text, spans, starts):
                if about and value != about:
                    yield Statement(about, pair.key, value, LIKELY)


def _objects(pair: KeyValue, text: str, spans: Sequence[EntitySpan], starts: Sequence[int]) -> list[str]:
    if _SENTENCES.search(pair.value):
        return []
    if _is_whole(pair.value):
        return [pair.value]
    start = text.find(pair.value, pair.end)
    end = start + len(pair.value)
    return [span.text for span in spans[bisect_left(starts, start) : bisect_left(starts, end)] if span.end <= end]


def _is_whole(value: str) -> bool:
    has_letter = any(map(str.isalpha, value))
    return has_letter and len(value) <= _LONGEST_VALUE and not _PARTED.search(value)
