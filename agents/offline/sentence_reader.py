"""Statements of a sentence: who or what, a verb or preposition, and each entity that follows.

A shallow reading: each entity is related to the sentence's subject (or to the entity right before it) by the verb
group or preposition that precedes it. English alone has verbs here; elsewhere only co-occurrence is stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from agents.offline.clauses import Aside, Item, Sentence
from agents.offline.entities import SpanKind
from agents.offline.statements import (
    CAUSAL_VERBS,
    EXPLICIT,
    LIKELY,
    LONGEST_TAIL,
    UNCERTAIN,
    Statement,
    Topic,
    aside_statements,
    is_apposition,
    short_tail,
    without_determiner,
)
from agents.offline.words import (
    ADVERBS,
    AUXILIARIES,
    CONJUNCTIONS,
    COPULAS,
    DETERMINERS,
    PREPOSITIONS,
    RELATIVES,
    word_set,
)
from graph.schema import RelationType
from graph.taxonomy import type_triple
from graph.text import normalise_name

_LONGEST_PHRASE = 8
_LONGEST_PROPERTY = 3
_LONGEST_GAP = 40
_DATE_PREPOSITIONS = word_set("in on at")
_LIST_WORDS = word_set(", and or & as well both") | DETERMINERS
_POSSESSIVES = word_set("its his her their")
_SUBJECT_PRONOUNS = word_set("it he she they this these")
_PERSONAL_PRONOUNS = word_set("he she his her")
_DEMONSTRATIVES = word_set("this these")
_ARTICLES = word_set("a an the")
_FARTHEST_ROLE_VERB = 8
_PLACE_PREPOSITIONS = word_set("in from at near")
_SURE_PREPOSITIONS = word_set("in on at by to into with for from near")
_PAIRING_PREPOSITIONS = word_set("between among")
_VAGUE_PREPOSITIONS = _PAIRING_PREPOSITIONS | {"of"}
_CLAUSE_OPENERS = RELATIVES | CONJUNCTIONS | {","}
_CONTINUING = ADVERBS | {",", "and", "but", "or"}


@dataclass(frozen=True, slots=True)
class _Last:
    """The last statement made of a verb: a list continues with its predicate, an adjunct with its verb."""

    subject: str
    verb: str
    predicate: str
    certainty: float


class SentenceReader:
    """Reads one sentence.

    Args:
        text: the passage, into which the items' offsets point.
        items: the sentence.
        topic: what the passage is about; pronouns and "the company" stand for it.
    """

    def __init__(self, text: str, items: Sequence[Item], topic: Topic) -> None:
        self._topic = topic
        self._sentence = sentence = Sentence(text, items)
        self._items = sentence.items
        self._subject_position = self._find_subject()
        self._names_subject = self._subject_position is not None
        self._subject = self._name(self._subject_position) if self._subject_position is not None else topic.name
        self._certainty = EXPLICIT if self._names_subject else self._topic_certainty()
        self._class_end = self._sentence.main_verb
        self._last: _Last | None = None
        self._statements: list[Statement] = []

    def read(self) -> list[Statement]:
        """Return the statements in the order of their objects."""
        self._read_class()
        previous: int | None = None
        window: list[int] = []
        for position, item in enumerate(self._items):
            if item.span is None:
                if item.lower in (";", ":", "—", "–"):
                    previous, window = None, []
                else:
                    window.append(position)
                continue
            if self._sentence.describes_name(position) and not self._is_in_class(position):
                window.append(position)
                continue
            if not self._relate_to_owner(position, window, previous) and position != self._subject_position:
                self._relate(position, window, previous)
            previous, window = position, []
        self._read_roles()
        self._read_effects()
        for aside in self._sentence.asides:
            self._statements.extend(aside_statements(self._sentence.text, aside.items, self._owner(aside)))
        return self._statements

    def _find_subject(self) -> int | None:
        """The first name before the verb that nothing governs; None where "it" or "the ..." stands for the topic."""
        if self._items and self._items[0].lower in _POSSESSIVES | _SUBJECT_PRONOUNS:
            return None
        for position in range(self._sentence.main_verb):
            free = self._items[position].is_name and not self._sentence.is_governed(position)
            if free and not (self._sentence.has_verb and self._sentence.is_adjective(position)):
                return position
        return None

    def _topic_certainty(self) -> float:
        """How surely a sentence without a named subject is about the topic."""
        first = [item.lower for item in self._items[:3]]
        if not first:
            return UNCERTAIN
        if first[0] in _DEMONSTRATIVES or (first[0] in _PERSONAL_PRONOUNS and self._topic.is_thing):
            return UNCERTAIN
        if first[0] in _POSSESSIVES:
            return LIKELY if self._property or not self._sentence.has_verb else UNCERTAIN
        if first[0] in _SUBJECT_PRONOUNS:
            return LIKELY
        return LIKELY if first[0] == "the" and self._topic.is_called(first[1:]) else UNCERTAIN

    def _name(self, position: int) -> str:
        span = self._items[position].span
        return self._topic.resolve(span.text) if span is not None else ""

    def _read_class(self) -> None:
        """State the noun phrase after the sentence's "is", and note how far it reaches."""
        position = self._sentence.main_verb
        if self._sentence.word(position) not in COPULAS:
            return
        start = position + 1
        while self._sentence.word(start) in ADVERBS:
            start += 1
        if start >= len(self._items) or self._sentence.is_verb[start]:
            return
        start += self._sentence.word(start) in DETERMINERS
        end = self._sentence.phrase_end(start)
        words = [item.lower for item in self._items[start:end] if item.is_word]
        self._class_end = end
        following = self._sentence.word(end)
        if following == "'s":
            self._class_end = position
            return
        is_relation = following == "of" and len(words) == 1
        if not words or words[-1].endswith("ly") or words[0] == "of" or is_relation:
            return
        if self._items[0].lower == "it" and following in ("that", "for", "to"):
            return
        self._topic.learn_class(words)
        self._state(self._subject, f"{self._property}is", self._sentence.slice(start, end), self._certainty)

    def _is_in_class(self, position: int) -> bool:
        return self._sentence.main_verb < position < self._class_end

    def _read_effects(self) -> None:
        """State what is caused where no entity names it: "the drought caused famine"."""
        for position, item in enumerate(self._items):
            particle = CAUSAL_VERBS.get(item.lower)
            start = position + 1
            if particle is None or (particle and self._sentence.word(start) != particle):
                continue
            start += bool(particle)
            start += self._sentence.word(start) in DETERMINERS
            end = self._sentence.phrase_end(start)
            if any(item.is_word for item in self._items[start:end]):
                predicate = f"{item.lower} {particle}".strip()
                self._state(self._subject, predicate, self._sentence.slice(start, end), min(self._certainty, LIKELY))

    def _read_roles(self) -> None:
        """State the role that no entity names: "plays as a striker", "is known as the lead singer of"."""
        for position in range(1, len(self._items) - 2):
            if self._items[position].lower != "as" or self._items[position + 1].lower not in _ARTICLES:
                continue
            verb = position - 1
            if not self._sentence.is_verb[verb] or verb > self._class_end + _FARTHEST_ROLE_VERB:
                continue
            start = position + 2
            end = self._sentence.phrase_end(start)
            if start < end and not any(item.span is not None for item in self._items[start:end]):
                for role in self._sentence.slice(start, end).split(" and "):
                    self._state(self._subject, f"{self._items[verb].lower} as", role, min(self._certainty, LIKELY))

    def _relate(self, position: int, window: list[int], previous: int | None) -> None:
        if self._is_in_class(position):
            # A date or name inside "is a 1995 American film" is a property of the subject.
            predicate = "dated" if self._is_date(position) else f"{self._property}is"
            self._state(self._subject, predicate, self._name(position), min(self._certainty, LIKELY))
            return
        if not self._sentence.has_verb:
            self._state(self._subject, self._words_between(previous, position), self._name(position), UNCERTAIN)
            return
        words = self._words(window)
        verb = next((index for index in reversed(range(len(window))) if self._sentence.is_verb[window[index]]), None)
        if verb is not None:
            self._relate_by_verb(position, window, verb, previous)
        elif previous is not None and is_apposition(words):
            self._relate_apposition(position, words[1:], previous)
        elif not _LIST_WORDS.issuperset(words):
            self._relate_by_preposition(position, words, previous)
        elif words and not ({",", "and"} <= {*words} and self._opens_clause(position)):
            self._continue_list(position)

    def _continue_list(self, position: int) -> None:
        if self._last is not None and position > self._sentence.main_verb:
            certainty = min(self._last.certainty, LIKELY)
            self._state_of(position, self._last.subject, self._last.predicate, certainty)

    def _words(self, window: Sequence[int]) -> list[str]:
        return [self._items[index].lower for index in window]

    def _is_date(self, position: int) -> bool:
        span = self._items[position].span
        return span is not None and span.kind is SpanKind.DATE

    def _relate_to_owner(self, position: int, window: list[int], previous: int | None) -> bool:
        """State that "X's film Y" is a film of X, and tell whether the words are such."""
        words = self._words(window)
        is_owned = words[:1] == ["'s"] and len(words) <= _LONGEST_PROPERTY + 1 and PREPOSITIONS.isdisjoint(words)
        is_name = self._items[position].is_name and not self._sentence.is_adjective(position)
        if previous is None or not (is_owned and is_name) or any(self._sentence.is_verb[index] for index in window):
            return False
        self._state(self._name(position), " ".join([*words[1:], "of"]), self._name(previous), LIKELY)
        return True

    def _words_between(self, previous: int | None, position: int) -> str:
        """The words between two entities, in any language, if they are few."""
        if previous is None:
            return "with"
        between = self._sentence.text[self._items[previous].end : self._items[position].start]
        words = normalise_name(between) if len(between) <= _LONGEST_GAP else ""
        return words if any(letter.isalnum() for letter in words) else "with"

    def _relate_by_verb(self, position: int, window: list[int], verb: int, previous: int | None) -> None:
        words = self._words(window)
        first = verb
        while first > 0 and (
            self._sentence.is_verb[window[first - 1]] or words[first - 1] in ADVERBS or words[first - 1] == "and"
        ):
            first -= 1
        while words[first] == "and":
            first += 1
        group = words[first : verb + 1]
        if not (AUXILIARIES | ADVERBS).issuperset(group):
            group = [word for word in group if word not in AUXILIARIES]
        tail = words[verb + 1 :]
        subject, certainty = self._subject_of(window, first, previous)
        if "," in tail:
            certainty = UNCERTAIN
            tail = tail[len(tail) - tail[::-1].index(",") :]
            if CONJUNCTIONS.issuperset(tail):
                return
        noun = self._property if window[first] == self._sentence.main_verb else ""
        verb_text = noun + " ".join(group)
        governing = short_tail(tail, group[-1] in COPULAS)
        n_prepositions = sum(word in PREPOSITIONS for word in tail)
        is_far = len(governing) < len(tail) and n_prepositions > (0 if group[-1] in AUXILIARIES - COPULAS else 1)
        if is_far or not _PAIRING_PREPOSITIONS.isdisjoint(governing[-1:]):
            certainty = UNCERTAIN
        predicate = " ".join([verb_text, *governing])
        self._last = _Last(subject, verb_text, predicate, certainty)
        self._state_of(position, subject, predicate, certainty)

    def _subject_of(self, window: list[int], first: int, previous: int | None) -> tuple[str, float]:
        """The subject of a verb group, and how sure it is.

        The name right before it, if that name opens a clause or "who" follows it; else the sentence's subject.
        """
        lead = self._words(window[:first])
        is_next = _CLAUSE_OPENERS.issuperset(lead)
        if previous is not None and is_next and self._items[previous].is_name:
            if previous == self._subject_position:
                return self._subject, EXPLICIT
            if not RELATIVES.isdisjoint(lead):
                is_place = previous > 0 and self._items[previous - 1].lower in _PLACE_PREPOSITIONS
                if "who" in lead and is_place:
                    return self._subject, min(self._certainty, LIKELY)
                return self._name(previous), LIKELY
            if not lead and not self._sentence.is_governed(previous):
                self._subject, self._certainty = self._name(previous), LIKELY
                return self._subject, LIKELY
        return self._subject, self._certainty if self._has_subject(window[first], lead) else UNCERTAIN

    def _has_subject(self, verb: int, lead: Sequence[str]) -> bool:
        """Whether the sentence's subject is the verb's too, and not a noun or pronoun before it.

        It is where the verb is the first, follows the class ("is a film directed by"), or only continues (", and led").
        """
        if verb <= self._sentence.main_verb or verb == self._class_end:
            return True
        return bool(lead) and _CONTINUING.issuperset(lead)

    @cached_property
    def _property(self) -> str:
        """The noun of "Its director was ..." or "The film's director is ...", which belongs to the predicate."""
        verb = self._sentence.main_verb
        if not self._sentence.has_verb or self._names_subject:
            return ""
        first, *words = [item.lower for item in self._items[:verb]] or [""]
        owner, is_owned, owned = words, "'s" in words, words
        if is_owned:
            owner, owned = words[: words.index("'s")], words[words.index("'s") + 1 :]
        if first not in _POSSESSIVES | {"the"} or not 0 < len(owned) <= _LONGEST_PROPERTY:
            return ""
        is_free = self._items[verb].lower not in COPULAS and first not in _POSSESSIVES
        if is_free or is_owned != self._topic.is_called(owner):
            return ""
        return "".join(f"{word} " for word in owned if word.isalpha())

    def _fitted(self, predicate: str, position: int) -> str:
        """A predicate without the preposition that a date does not need: ("Nissan", "founded", "1933")."""
        verb, _, preposition = predicate.rpartition(" ")
        if not self._is_date(position) or not verb or preposition not in _DATE_PREPOSITIONS:
            return predicate
        relation, _ = type_triple("", verb, self._sentence.slice(position, position + 1))
        return verb if relation is RelationType.TEMPORAL else predicate

    def _relate_apposition(self, position: int, words: list[str], previous: int) -> None:
        """State what "X, the capital of Y" says."""
        noun = " ".join(without_determiner(words)[-LONGEST_TAIL:])
        is_sure = words[0] in DETERMINERS or previous == self._subject_position
        is_named = is_sure and self._items[previous].is_name
        subject = self._name(previous) if is_named else self._subject
        self._state_of(position, subject, noun, LIKELY if is_sure else UNCERTAIN)

    def _relate_by_preposition(self, position: int, words: list[str], previous: int | None) -> None:
        content = [word for word in words if word not in _LIST_WORDS and word not in ADVERBS]
        preposition = content[0] if len(content) == 1 and content[0] in PREPOSITIONS else ""
        if preposition == "of" and previous is not None and self._items[previous].is_name:
            self._state(self._name(previous), "of", self._name(position), UNCERTAIN)
            return
        main = _Last(self._subject, self._sentence.main_verb_text, "", self._certainty)
        last = self._last or main
        if last.verb and preposition not in ("", "of"):
            is_date = self._items[position].span is not None and not self._items[position].is_name
            is_free = preposition not in _SURE_PREPOSITIONS or position < self._sentence.main_verb
            is_vague = preposition in _VAGUE_PREPOSITIONS or last.verb in COPULAS or (is_free and not is_date)
            certainty = UNCERTAIN if is_vague else min(last.certainty, LIKELY)
            self._last = _Last(last.subject, last.verb, f"{last.verb} {preposition}", certainty)
            self._state_of(position, last.subject, self._last.predicate, certainty)
            return
        predicate = " ".join(without_determiner([word for word in words if word.isalpha()])[-LONGEST_TAIL:]) or "with"
        self._last = _Last(main.subject, main.verb, predicate, UNCERTAIN)
        self._state(self._subject, predicate, self._name(position), UNCERTAIN)

    @cached_property
    def _lead_phrase(self) -> str:
        """The words before the verb, for a sentence that tells what something did to the topic; empty if long."""
        start = 1 if self._items[0].lower in DETERMINERS else 0
        is_phrase = start < self._sentence.main_verb <= start + _LONGEST_PHRASE and self._sentence.has_verb
        return self._sentence.slice(start, self._sentence.main_verb) if is_phrase else ""

    def _owner(self, aside: Aside) -> str:
        """The name that stands before a parenthesis, else the topic."""
        before = (position for position in range(aside.owner, -1, -1) if self._items[position].is_name)
        return next(map(self._name, before), self._topic.name)

    def _opens_clause(self, position: int) -> bool:
        """Whether a name is the subject of a clause of its own: a verb follows that is no participle."""
        following = [item.lower for item in self._items[position + 1 : position + 3]]
        is_verb = position + 1 < len(self._items) and self._sentence.is_verb[position + 1]
        return is_verb and not following[0].endswith("ing") and following[1:] != ["by"]

    def _state_of(self, position: int, subject: str, predicate: str, certainty: float) -> None:
        """State something of the entity at a position; unsure where it only describes a noun ("met Oslo officials")."""
        span = self._items[position].span
        is_name = span is not None and span.kind is SpanKind.NAME
        if (is_name and self._sentence.is_adjective(position)) or self._sentence.dates_noun(position):
            certainty = UNCERTAIN
        self._state(subject, self._fitted(predicate, position), self._name(position), certainty)

    def _state(self, subject: str, predicate: str, object: str, confidence: float) -> None:
        if subject == object and not self._names_subject:
            subject = self._lead_phrase
        predicate = " ".join(predicate.split())
        if subject and object and predicate:
            self._statements.append(Statement(subject, predicate, object, confidence))
