"""The names of earlier turns that a reference may mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from agents.offline.conversation.words import ANYTHING, HE, PLACE, SHE
from agents.offline.language.entities import GOVERNING_NOUNS, PLACE_NOUNS, scan_entities
from agents.offline.language.words import FUNCTION_WORDS, PREPOSITIONS
from agents.offline.reading.kinds import AnswerKind, answer_kind
from agents.offline.reading.words import is_function_word, language_of, stem, word_spans
from agents.roles import Turn
from graph.retrieve.known_names import KnownNames, Pronoun

_PEOPLE = (Pronoun.HE, Pronoun.SHE)
_BEFORE_THINGS = PREPOSITIONS - {"by", "with", "against", "between"}
_ASKS_THING = re.compile(
    r"\bwhat (?:is|was|are|were) the (?:name|title|capital|first|last|\w+est)\b"
    r"|\b(?:which|what|welche[rsnm]?|quel(?:le)?s?|qué|cuál)\s+(?!(?:is|was|are|were|do|does|did|has|have|had|can|could|will|would|should|happens?|happened|about|if|year|date"
    r"|month|day|time)\b)\w+",
    re.IGNORECASE,
)
_ASKS_PLACE = re.compile(r"\b(?:where|wo|où|dónde)\b", re.IGNORECASE)
_NAMED_PERSON = re.compile(
    r"\W*(?:and |so )?who (?:is|was|are|were) (?!(?:the|a|an|in|on|at|first|his|her)\b)\w+(?: \w+){0,3}\W*",
    re.IGNORECASE,
)
_ADJECTIVE = re.compile(r"\w{2,}(?:ish|[ie]an|ese)")
_LONGEST_TITLE = 10
_IN_BRACKETS = re.compile(r"\s*[(（][^)）]*[)）]")
_CITATION = re.compile(r"\s*\[\d+\]")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s*(?:\[\d+\]\s*)+|(?<=[.!?。])\s+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name that a reference may mean.

    Attributes:
        text: as it is written.
        pronoun: what the collection calls it by.
        is_nobody: whether it stands after a comma, "in", "of" and the like, where people seldom stand, or begins with
            the name of a thing ("Nissan Motor").
    """

    text: str
    pronoun: Pronoun
    is_nobody: bool


class Antecedents:
    """Finds what a reference may mean, in the words of the turns and by what the collection tells of names."""

    def __init__(self, names: KnownNames) -> None:
        self._names = names

    def of(self, text: str) -> list[Candidate]:
        """Return the names in a text, each once, in order."""
        written = [span.text for span in scan_entities(text).spans if span.is_name and self._is_sure(span.text)]
        written = [name for name in written if not (_ADJECTIVE.fullmatch(name) and re.search(rf"{name} [a-z]", text))]
        names = dict.fromkeys(written or self._names.spelled(text))
        return [Candidate(name, self._names.pronoun_of(name), self._is_nobody(name, text)) for name in names]

    def meant(self, reference: str, turn: Turn) -> list[Candidate]:
        """Return the names of a turn that a pronoun or "there" may mean: several people where nothing decides."""
        asked, answers = self.of(turn.question), self._in_answer(turn)
        if wanted := _wanted_people(reference):
            named = _people(asked, wanted)
            told = next((sure for names in answers if (sure := _known_people(names, wanted))), [])
            people = (told or named) if _asks_who(turn.question) and len(named) < 2 else (named or told)
            if people or reference not in ANYTHING:
                return people
        things = [name for name in asked if name.pronoun not in _PEOPLE]
        in_answer = [name for name in chain(*answers[:1]) if name.pronoun is Pronoun.THING]
        asks_for_it = _ASKS_THING.search(turn.question) or (reference in PLACE and _ASKS_PLACE.search(turn.question))
        return (in_answer or things)[:1] if asks_for_it else things[:1]

    def listed(self, turn: Turn) -> list[Candidate]:
        """Return what "the second one" counts: the names of the question where it has several, else of the answer."""
        asked = self.of(turn.question)
        return asked if len(asked) > 1 else list(chain(*self._in_answer(turn)[:1]))

    def pair(self, turns: Sequence[Turn]) -> list[Candidate]:
        """Return the two that were spoken of last, in the last question or in the last two; none where it is one."""
        last = self.of(turns[-1].question)
        if len(last) < 2 and len(turns) > 1:
            last = [*self.of(turns[-2].question)[:1], *last[:1]]
        distinct = list({name.text: name for name in last}.values())
        return distinct[:2] if len(distinct) > 1 else []

    def _in_answer(self, turn: Turn) -> list[list[Candidate]]:
        """The names of each sentence of an answer, those of the question left out; the likeliest answer first."""
        asked = _words(turn.question)
        found = [
            [name for name in self.of(sentence) if not _words(name.text) <= asked]
            for sentence in _sentences_by_likeness(turn)
        ]
        return [names for names in found if names]

    def _is_nobody(self, name: str, text: str) -> bool:
        first, *others = name.split()
        return _is_placed(name, text) or (bool(others) and self._names.pronoun_of(first) is Pronoun.THING)

    def _is_sure(self, name: str) -> bool:
        """Whether the collection knows a name, or it is several words with capitals that only name."""
        words = name.split()
        return self._names.knows(name) or (
            len(words) > 1 and all(word[:1].isupper() and word.casefold() not in FUNCTION_WORDS for word in words)
        )


def _wanted_people(reference: str) -> tuple[Pronoun, ...]:
    """The people that a reference may mean, by their pronouns; empty where it means no people."""
    if reference in ANYTHING:
        return _PEOPLE
    return (Pronoun.HE,) if reference in HE else (Pronoun.SHE,) if reference in SHE else ()


def _known_people(names: Sequence[Candidate], wanted: Sequence[Pronoun]) -> list[Candidate]:
    """The first two people among names whom the collection calls so."""
    return [name for name in names if name.pronoun in wanted][:2]


def _people(names: Sequence[Candidate], wanted: Sequence[Pronoun]) -> list[Candidate]:
    """The people among names that a pronoun may mean: two where nothing decides between them."""
    sure = _known_people(names, wanted)
    likely = [name for name in names if name.pronoun is Pronoun.UNKNOWN and _is_like_a_person(name)]
    return (sure or likely)[:2]


def _is_like_a_person(name: Candidate) -> bool:
    """Tell whether a name is written as people's are and stands where they do: two to four words with capitals."""
    words = name.text.split()
    is_thing = any(word.casefold() in GOVERNING_NOUNS | PLACE_NOUNS for word in words[1:])
    is_written_so = 2 <= len(words) <= 4 and all(word[:1].isupper() and word.isalpha() for word in words)
    return is_written_so and not is_thing and not name.is_nobody


def _is_placed(name: str, text: str) -> bool:
    before = text[: max(0, text.find(name))].rstrip()
    return before.endswith(",") or before.rpartition(" ")[2].casefold() in _BEFORE_THINGS


def _asks_who(question: str) -> bool:
    """Whether somebody is asked for who is not in the question: not "who was Nero?"."""
    return answer_kind(question) is AnswerKind.PERSON and not _NAMED_PERSON.fullmatch(question)


def _sentences_by_likeness(turn: Turn) -> list[str]:
    """The sentences of an answer after the title of the passage that they quote, the likeliest to answer first."""
    language, asked = language_of(turn.question), _words(turn.question)
    named = set().union(*(_words(span.text) for span in scan_entities(turn.question).spans if span.is_name))
    wanted = {stem(word, language) for word in asked - named if not is_function_word(word, language)}

    def likeness(sentence: str) -> float:
        own, held = _words(sentence.partition(": ")[2] or sentence), _words(sentence)
        told = len(wanted & {stem(word, language) for word in held})
        return told + 0.5 * bool(named & own) + 0.25 * bool(named & held)

    return sorted(_titled_sentences(turn.answer), key=likeness, reverse=True)


def _titled_sentences(answer: str) -> Iterator[str]:
    """Yield each sentence of an answer, less citations and brackets; after "Title: " where the answer names it so."""
    for line in answer.splitlines():
        title = ""
        for sentence in _SENTENCE_END.split(line):
            plain = _IN_BRACKETS.sub("", _CITATION.sub("", sentence)).strip()
            head, colon, _ = plain.partition(": ")
            is_title = bool(colon) and len(head.split()) <= _LONGEST_TITLE
            title = head if is_title else title
            if plain:
                yield f"{title}: {plain}" if title and not is_title else plain


def _words(text: str) -> set[str]:
    return {word for word, _, _ in word_spans(text)}
