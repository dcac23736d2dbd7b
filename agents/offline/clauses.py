"""The structure of sentences, as far as word forms and order show it: items, verbs, what governs what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from agents.offline.entities import EntityScan, EntitySpan, SpanKind
from agents.offline.words import (
    ADVERBS,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    word_set,
)


class Item(NamedTuple):
    """A word, a mark or an entity of a sentence; ``lower`` is empty for an entity."""

    lower: str
    start: int
    end: int
    span: EntitySpan | None = None
    is_word: bool = False

    @property
    def is_name(self) -> bool:
        """Whether it is an entity that can do or be something: no date, no quantity."""
        return self.span is not None and self.span.is_name


@dataclass(frozen=True, slots=True)
class Aside:
    """A text in parentheses, and the position of the item before them in the sentence without it (-1: none)."""

    owner: int
    items: tuple[Item, ...]


PAST = word_set(
    "wrote written led won built held made began begun born sang sung became ran taught bought sold sent spent lost "
    "found gave given took taken went gone grew grown knew known left lay lain fought drew drawn drove driven came met "
    "chosen broke broken brought bound shot set put hit cut sat stood told thought rose risen fell fallen flew flown "
    "chose wore worn split spread struck sought said saw seen shown threw thrown got kept paid rode swam wove"
)
_BASE_FORMS = word_set(
    "include contain play star feature serve lie lead border cover connect run flow own operate offer provide make "
    "take give go come begin end live work teach hold represent consist comprise belong refer mean describe tell "
    "follow depict portray host produce publish cause result enable prevent affect allow appear occur stand sit "
    "form use share mark link join compete study enter cross receive"
)


def _third_person(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeo":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("o", "ch", "sh", "ss")) else f"{verb}s"


_PRESENT = frozenset(map(_third_person, _BASE_FORMS))
_GERUNDS = word_set(
    "starring featuring including containing causing leading serving making becoming winning following consisting "
    "covering playing working using writing directing producing holding representing connecting resulting comprising "
    "bordering forming appearing joining"
)
_PLACE_PREPOSITIONS = word_set("in at near from of to around outside")
_NO_VERBS = word_set(
    "hundred indeed exceed proceed succeed breed weed naked sacred aged embed need seed feed reed deed"
)
_THIRD_PERSONS = word_set("he she it who")
_BEFORE_FINITE = PRONOUNS | RELATIVES
_MODALS = word_set("can could may might will would shall should must did does do")
_BEFORE_NOUN = word_set("a an the his her its their our my your no each every")
_PLURAL_SUBJECTS = word_set("they we i you who which that these those both all most many some others")
_AFTER_PARTICIPLE = PREPOSITIONS | DETERMINERS | PRONOUNS | ADVERBS | RELATIVES | word_set("and or but to")


def sentence_items(scan: EntityScan, text: str) -> list[list[Item]]:
    """Return the items of each sentence, in order; an item that crosses a sentence's end belongs to where it starts.

    Text outside of all sentences is left out: the numbers and bullets of a list. A sentence also ends after a
    name and a stop before a capitalised word that is no name: "World War I. It ...".
    """
    entities = [Item("", span.start, span.end, span) for span in scan.spans]
    merged = []
    position = 0
    for token in scan.tokens:
        while position < len(entities) and entities[position].end <= token.start:
            merged.append(entities[position])
            position += 1
        if position == len(entities) or token.end <= entities[position].start:
            merged.append(Item(token.lower, token.start, token.end, None, token.is_word))
    merged.extend(entities[position:])
    sentences: list[list[Item]] = [[]]
    current = 0
    start, end = scan.sentences[0] if scan.sentences else (0, 0)
    for item in merged:
        is_next = False
        while current + 1 < len(scan.sentences) and item.start >= scan.sentences[current + 1][0]:
            current += 1
            start, end = scan.sentences[current]
            is_next = True
        if not start <= item.start < end:
            continue
        last = sentences[-1][-1] if sentences[-1] else item
        after_name = last.span is not None and item.is_word and text[item.start].isupper()
        if is_next or (after_name and text[last.end - 1 : item.start].endswith(". ")):
            sentences.append([])
        sentences[-1].append(item)
    return sentences


def joined_places(items: Sequence[Item], text: str) -> tuple[list[Item], list[tuple[str, str]]]:
    """Join "in Graz, Styria" into one entity, and return with it the pairs (place, what it lies in).

    Only right after a preposition of place, and not where the commas list names ("in Oslo, Bergen and Narvik") or the
    last name is the subject of what follows ("of Bonn, Clara moved").
    """
    joined: list[Item] = []
    pairs = []
    position = 0
    while position < len(items):
        last = position
        if joined and joined[-1].lower in _PLACE_PREPOSITIONS and _is_plain_name(items[position]):
            while last + 2 < len(items) and items[last + 1].lower == "," and _is_plain_name(items[last + 2]):
                last += 2
            if _is_list_or_clause(items, last):
                last = position
        item = items[position]
        if last > position:
            place = text[item.start : items[last].end]
            item = Item("", item.start, items[last].end, EntitySpan(place, item.start, items[last].end, SpanKind.NAME))
            pairs.append((place, text[items[last].start : items[last].end]))
        joined.append(item)
        position = last + 1
    return joined, pairs


def _is_plain_name(item: Item) -> bool:
    return item.span is not None and item.span.kind is SpanKind.NAME


def _is_list_or_clause(items: Sequence[Item], last: int) -> bool:
    following = [item.lower for item in items[last + 1 : last + 3]]
    if any(word in ("and", "or", "&") for word in following):
        return True
    if following[1:] == ["by"] or following[:1] in (["located"], ["situated"]):
        return False
    return bool(following) and (
        following[0] in AUXILIARIES or following[0] in PAST or following[0] in _PRESENT or following[0].endswith("ed")
    )


def without_asides(items: Sequence[Item]) -> tuple[list[Item], list[Aside]]:
    """Split a sentence into what stands outside and inside parentheses; a parenthesis never closed opens nothing."""
    outside: list[Item] = []
    asides: list[Aside] = []
    inside: list[Item] = []
    depth = 0
    for item in items:
        if item.lower == "(":
            depth += 1
        elif item.lower == ")":
            if depth == 1:
                asides.append(Aside(len(outside) - 1, tuple(inside)))
                inside = []
            depth = max(0, depth - 1)
        elif depth:
            inside.append(item)
        else:
            outside.append(item)
    return [*outside, *inside], asides


def main_verb(items: Sequence[Item], verbs: Sequence[bool]) -> int:
    """Return the position of the first verb outside a clause such as ", who was born ...,"; the length if none is."""
    fallback = len(items)
    in_clause = False
    for position, is_verb in enumerate(verbs):
        if items[position].lower == ",":
            in_clause = position + 1 < len(items) and items[position + 1].lower in RELATIVES
        elif is_verb and not in_clause:
            return position
        elif is_verb:
            fallback = min(fallback, position)
    return fallback


def _is_verb(items: Sequence[Item], position: int) -> bool:
    """Whether an item is a verb or an auxiliary, by its form and its neighbours."""
    word = items[position].lower
    if not items[position].is_word:
        return False
    if word in AUXILIARIES or word in _GERUNDS:
        return True
    previous = items[position - 1] if position else None
    if word in PAST:
        return previous is None or previous.lower not in _BEFORE_NOUN
    if word.isalpha() and word not in _AFTER_PARTICIPLE and _follows_modal(items, position):
        return True
    if word.endswith("s") and previous is not None and previous.lower in _THIRD_PERSONS:
        return True
    if word in _PRESENT:
        return previous is not None and previous.lower not in DETERMINERS and previous.lower not in PREPOSITIONS
    if word in _BASE_FORMS:
        return previous is not None and _takes_base_form(items, position - 1)
    if not word.endswith("ed") or len(word) < 4 or word in _NO_VERBS:
        return False
    if previous is not None and (previous.lower in _BEFORE_NOUN or _describes_noun(items, position)):
        return False
    if previous is not None and (previous.span is not None or previous.lower in AUXILIARIES | _BEFORE_FINITE):
        return True
    following = items[position + 1] if position + 1 < len(items) else None
    return following is None or not following.is_word or following.lower in _AFTER_PARTICIPLE


def _takes_base_form(items: Sequence[Item], subject: int) -> bool:
    """Whether a word such as "play" is a verb after an item: a plural, or the last of several names."""
    item = items[subject]
    if item.span is not None:
        return item.is_name and any(before.lower == "and" for before in items[max(0, subject - 2) : subject])
    is_plural = item.lower.endswith("s") and len(item.lower) > 3 and not item.lower.endswith(("ss", "us", "is"))
    return item.lower in _PLURAL_SUBJECTS or (item.is_word and is_plural)


def _follows_modal(items: Sequence[Item], position: int) -> bool:
    before = [item.lower for item in items[max(0, position - 2) : position]]
    return bool(before) and (before[-1] in _MODALS or (before[-1] in ("not", "also") and before[0] in _MODALS))


def _describes_noun(items: Sequence[Item], position: int) -> bool:
    """Whether a participle stands between an adjective and its noun: "in the American animated sitcom"."""
    start = [item.lower for item in items[max(0, position - 3) : position - 1]]
    is_governed = len(start) == 2 and start[0] in PREPOSITIONS | AUXILIARIES and start[1] in DETERMINERS
    following = items[position + 1] if position + 1 < len(items) else None
    return is_governed and following is not None and following.is_word and following.lower not in _AFTER_PARTICIPLE


_FARTHEST_GOVERNOR = 4
_LONGEST_PHRASE = 8
NO_NOUNS = PREPOSITIONS | CONJUNCTIONS | RELATIVES | ADVERBS | DETERMINERS
"""Words that are no noun, beside verbs."""


class Sentence:
    """The items of a sentence outside parentheses, and how they hang together.

    Args:
        text: the passage, into which the items' offsets point.
        items: the sentence.
    """

    def __init__(self, text: str, items: Sequence[Item]) -> None:
        self.text = text
        self.items, self.asides = without_asides(items)
        self.is_verb = [_is_verb(self.items, position) for position in range(len(self.items))]
        self.main_verb = main_verb(self.items, self.is_verb)
        self.has_verb = self.main_verb < len(self.items)

    def word(self, position: int) -> str:
        """The word or mark at a position, in small letters; empty for an entity and behind the sentence's end."""
        return self.items[position].lower if position < len(self.items) else ""

    def is_governed(self, position: int) -> bool:
        """Whether a preposition or verb stands before a name and the few nouns and determiners that belong to it.

        A preposition also governs the last of two names: "in Oslo and Rome".
        """
        is_second = False
        for before in range(position - 1, max(-1, position - 1 - _FARTHEST_GOVERNOR), -1):
            item = self.items[before]
            if item.lower in PREPOSITIONS or self.is_verb[before]:
                return item.lower in PREPOSITIONS or not is_second
            if item.lower == "and" and before and self.items[before - 1].is_name:
                is_second = True
                continue
            if not (item.lower in DETERMINERS or item.is_name or self.is_plain_noun(before)):
                return False
        return False

    def is_adjective(self, position: int) -> bool:
        """Whether a noun, another name or "'s" follows directly: the "American" of "American singer"."""
        if position + 1 >= len(self.items):
            return False
        following = self.items[position + 1]
        if following.span is not None:
            return following.is_name and following.start - self.items[position].end <= 1
        return following.lower == "'s" or self.is_plain_noun(position + 1)

    def dates_noun(self, position: int) -> bool:
        """Whether a date only describes a noun: "his 1998 film", but not "in 1998 films"."""
        item = self.items[position]
        if item.span is None or item.is_name or not 0 < position < len(self.items) - 1:
            return False
        before, after = self.items[position - 1], self.items[position + 1]
        is_free = before.lower in DETERMINERS or before.lower == "'s" or self.is_plain_noun(position - 1)
        return is_free and (self.is_plain_noun(position + 1) or after.is_name) and after.start - item.end <= 1

    def describes_name(self, position: int) -> bool:
        """Whether a name only describes a later one: the "Welsh" of "by Welsh singer Mair Pugh"."""
        if not (self.has_verb and self.items[position].is_name):
            return False
        after = position + 1
        while after < min(len(self.items), position + 5) and self.is_plain_noun(after):
            goes_on = after + 2 < len(self.items) and self.items[after + 1].lower == "and"
            after += 2 if goes_on and self.is_plain_noun(after + 2) else 1
        return position + 1 < after < len(self.items) and self.items[after].is_name

    def is_plain_noun(self, position: int) -> bool:
        """Whether an item may be a noun or adjective in small letters."""
        item = self.items[position]
        return item.is_word and item.lower[0].isalpha() and not self.is_verb[position] and item.lower not in NO_NOUNS

    def phrase_end(self, start: int) -> int:
        """The end of a noun phrase: before a mark, verb, preposition or relative; "of" and plain words go along."""
        end = start
        while end < len(self.items) and end - start < _LONGEST_PHRASE:
            item = self.items[end]
            if item.span is None and (not item.is_word or self.is_verb[end] or item.lower in RELATIVES):
                break
            if item.lower in PREPOSITIONS and not self._of_goes_along(end):
                break
            end += 1
        while end > start and self.items[end - 1].lower in CONJUNCTIONS | PREPOSITIONS | ADVERBS | DETERMINERS:
            end -= 1
        return end

    def _of_goes_along(self, position: int) -> bool:
        following = self.items[position + 1 : position + 3]
        return self.items[position].lower == "of" and bool(following) and all(item.is_word for item in following)

    @cached_property
    def main_verb_text(self) -> str:
        """The main verb without its auxiliaries ("was first published" is "first published"); empty without a verb."""
        end = self.main_verb
        while end < len(self.items) and (self.is_verb[end] or self.word(end) in ADVERBS):
            end += 1
        words = [item.lower for item in self.items[self.main_verb : end]]
        lexical = [word for word in words if word not in AUXILIARIES]
        return " ".join(lexical or words)

    def slice(self, start: int, end: int) -> str:
        """The text of items[start:end], which is not empty."""
        return self.text[self.items[start].start : self.items[end - 1].end]
