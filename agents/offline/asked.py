"""What a question asks: the names it knows, the words of what it asks about them, and the kind of answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.offline.answer_type import AnswerType, answer_type
from agents.offline.entity_spans import SpanKind, scan_entities
from agents.offline.phrases import plain_verbs
from agents.offline.words import AUXILIARIES, DETERMINERS, FUNCTION_WORDS, PREPOSITIONS, stem, word_set
from graph.text import title_name, token_spans, tokens

OUTER, INNER, LIGHT = 2.0, 1.0, 0.5
"""How much a word matters that says what is asked, one that describes what it is asked about, and one that grades."""

_ADJECTIVE = re.compile(r"\w+(?:ish|[ie]an|ese)\Z")
_IGNORED = -1
_NAME_KINDS = (SpanKind.NAME, SpanKind.QUOTED, SpanKind.FOREIGN)
_OPENINGS = FUNCTION_WORDS | word_set("give list show find explain describe please during according")
_NO_RELATION = FUNCTION_WORDS | word_set(
    "year date month day decade century time place location name person people much many called named known tell give "
    "say state us me kind type"
)
_PLACE_WORDS = word_set("city country town village county region province state based located situated lie stand")
_GRADING = word_set("first only largest biggest highest other today ever still now exactly actually really")
_BEFORE_NOUN = word_set("the a an s")
_RELATIVES = word_set("that who which whom whose where")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the relation that a question asks for.

    Attributes:
        text: as a token.
        weight: how much it matters.
        is_inner: it describes what is asked about, as "designer" does in "When was the designer of X born?".
    """

    text: str
    weight: float
    is_inner: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart.

    Attributes:
        names: the stems of each name, in order; none where the question names nothing.
        numbers: its tokens with digits outside names.
        relation: its other content words, each once, in order.
        kind: of the answer; ANY where nothing is asked but who or what a name is.
        tokens: all of the question's tokens.
    """

    names: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...]
    relation: tuple[Word, ...]
    kind: AnswerType
    tokens: frozenset[str]

    @property
    def is_nested(self) -> bool:
        """Whether it asks about something that it does not name, but describes."""
        return any(word.is_inner for word in self.relation)


def read_question(question: str, titles: Iterable[str] = ()) -> Asked:
    """Take a question apart.

    Args:
        question: what is asked.
        titles: of passages at hand: those that stand in the question are names even in small letters.
    """
    plain = plain_verbs(question)
    names, items = _items(plain, titles)
    kind = answer_type(question)
    words = [item for item in items if item]
    numbers = [word for word in words if any(character.isdigit() for character in word)]
    dropped = _NO_RELATION | (_PLACE_WORDS if kind is AnswerType.PLACE else frozenset())
    inner = {place for place in _inner(items) if items[place] not in dropped}
    light = _appositions(items)
    relation: dict[str, Word] = {}
    for place, word in enumerate(items):
        if word and word not in dropped and word not in numbers:
            is_light = word in _GRADING or place in light
            weight = LIGHT if is_light else INNER if place in inner else OUTER
            relation.setdefault(stem(word), Word(word, weight, place in inner))
    if not any(not word.is_inner for word in relation.values()):
        relation = {key: Word(word.text, OUTER, False) for key, word in relation.items()}
    if not relation:
        kind = AnswerType.ANY
    return Asked(names, tuple(dict.fromkeys(numbers)), tuple(relation.values()), kind, frozenset(tokens(question)))


def _items(question: str, titles: Iterable[str]) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """The names of a question, and its tokens in order with an empty one in the place of each name.

    A lone adjective such as "Danish" or "Ostrian" before a noun is left out: passages leave it out as often.
    """
    taken = [0] * len(question)
    names: list[tuple[str, ...]] = []
    found = [(span.start, span.end) for span in scan_entities(question).spans if span.kind in _NAME_KINDS]
    for start, end in [*found, *_title_spans(question, titles)]:
        words = tuple(stem(token) for token in tokens(question[start:end]) if token not in FUNCTION_WORDS)
        is_opening = start == 0 and len(words) == 1 and tokens(question[:end])[-1] in _OPENINGS
        if _ADJECTIVE.match(question, start, end) and question[end:].lstrip()[:1].islower():
            taken[start:end] = [_IGNORED] * (end - start)
        elif words and not is_opening and not any(taken[start:end]):
            names.append(words)
            taken[start:end] = [len(names)] * (end - start)
    items: list[str] = []
    last = 0
    for token, start, _ in token_spans(question):
        if not taken[start]:
            items.append(token)
        elif taken[start] not in (last, _IGNORED):
            items.append("")
        last = taken[start]
    return tuple(dict.fromkeys(names)), items


def _title_spans(question: str, titles: Iterable[str]) -> list[tuple[int, int]]:
    """Where titles of two words or more stand in a question, whatever their letters."""
    spans = token_spans(question)
    words = [token for token, _, _ in spans]
    found = []
    for title in sorted(set(titles)):
        name = tokens(title_name(title))
        for first in range(len(words) - len(name) + 1):
            if len(name) > 1 and words[first : first + len(name)] == name:
                found.append((spans[first][1], spans[first + len(name) - 1][2]))
    return found


def _inner(items: Sequence[str]) -> set[int]:
    """The places of the words that describe what is asked about: a relative clause, what is X's, or what is of X."""
    return _relative_clause(items) or _possessed(items) or _described(items)


def _relative_clause(items: Sequence[str]) -> set[int]:
    """The noun before a relative word, and the clause: up to the last name, and on to the verb whose subject that is.

    "When was the FIRM that BUILT X established?", "In which year did the GEOLOGIST whom X MARRIED die?".
    """
    for place in range(2, len(items)):
        before = place - 2 if items[place - 1] in PREPOSITIONS else place - 1
        if items[before] in AUXILIARIES:
            before -= 1
        if items[place] not in _RELATIVES or not items[before] or items[before] in _NO_RELATION:
            continue
        end = max((name for name, word in enumerate(items) if not word), default=-1)
        if end < place:
            return {before, *range(place + 1, len(items))}
        following = [word for word in items[place + 1 :] if word not in DETERMINERS]
        if following and (not following[0] or items[place] == "whose"):
            verbs = [name for name in range(end + 1, len(items)) if items[name] not in _NO_RELATION | _GRADING]
            end = verbs[0] if verbs and items[place] != "whose" else end
        return {before, *range(place + 1, end + 1)}
    return set()


def _possessed(items: Sequence[str]) -> set[int]:
    """What a name has, where the question asks something else about it: "When did X's HUSBAND die?"."""
    for place in range(len(items) - 2):
        if items[place] or items[place + 1] != "s":
            continue
        end = place + 2
        while end < len(items) and items[end] and items[end] not in FUNCTION_WORDS:
            end += 1
        phrase = list(range(place + 2, end))
        if end < len(items) and not items[end]:
            continue
        around = [*items[:place], *items[end:]]
        others = [word for word in around if word and word not in _NO_RELATION]
        if not others and not AUXILIARIES.isdisjoint(items[:place]):
            phrase = phrase[:-1]
            others = list(items[end - 1 : end])
        if phrase and others:
            return set(phrase)
    return set()


def _described(items: Sequence[str]) -> set[int]:
    """The noun phrase that a preposition joins to the first name, where the question asks something else about it.

    "Where was the DESIGNER of X born?", but not "Who was the designer of X?".
    """
    last = items.index("") - 1 if "" in items else -1
    while last in _appositions(items):
        last -= 1
    while last > 0 and items[last] in DETERMINERS:
        last -= 1
    if last <= 0 or items[last] not in PREPOSITIONS:
        return set()
    first = last
    while first > 0 and items[first] not in AUXILIARIES and items[first - 1] not in _BEFORE_NOUN:
        first -= 1
    phrase = {place for place in range(first, last) if items[place] not in _NO_RELATION}
    others = [place for place, word in enumerate(items) if word and word not in _NO_RELATION and place not in phrase]
    return phrase if phrase and set(others) - _appositions(items) else set()


def _appositions(items: Sequence[str]) -> set[int]:
    """The places of class words right before a name: "the painter X", "the steamer Y", "Z's film X"."""
    places: set[int] = set()
    for end, word in enumerate(items):
        first = end
        while not word and first > 0 and items[first - 1] and items[first - 1] not in FUNCTION_WORDS:
            first -= 1
        if first > 0 and items[first - 1] in _BEFORE_NOUN:
            places.update(range(first, end))
    return places
