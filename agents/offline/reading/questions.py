"""A question taken apart: the words, names, numbers and dates that evidence has to hold, and the kind of answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from agents.offline.language.words import word_set
from agents.offline.reading.dates import Day, date_spans, days_in
from agents.offline.reading.kinds import AnswerKind, answer_kind
from agents.offline.reading.words import is_function_word, language_of, stem, word_spans
from graph.text import is_unspaced


class Role(Enum):
    """The role of a term: a plain word may be paraphrased; a name, a number and a date have to be there."""

    WORD = auto()
    NAME = auto()
    NUMBER = auto()
    DATE = auto()


@dataclass(frozen=True, slots=True)
class Term:
    """Something that a question holds.

    Attributes:
        text: in lower case.
        stem: without its endings.
        role: what it is.
        is_asked: whether it names what is asked for: the "room" of "in which room".
        day: which date it is, if it is one.
    """

    text: str
    stem: str
    role: Role
    is_asked: bool = False
    day: Day | None = None

    @property
    def is_name(self) -> bool:
        """Whether it names something: a name, or a code such as "VX-210"."""
        return self.role is Role.NAME or (self.role is Role.NUMBER and any(map(str.isalpha, self.text)))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the two things that a question compares: the terms that are its own, by their places, and its name."""

    terms: frozenset[int]
    name: str


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question taken apart.

    Attributes:
        text: as it was asked.
        language: whose function words it holds.
        terms: each once, in order.
        kind: of the answer; ANY where it is the name of a choice, which the question holds itself.
        choices: both, where it asks which of two; else empty.
        words: all of its words.
    """

    text: str
    language: str
    terms: tuple[Term, ...]
    kind: AnswerKind
    choices: tuple[Choice, ...]
    words: frozenset[str]

    @property
    def asks_list(self) -> bool:
        """Whether it asks for all that there are of something: "which customers", "list the keys"."""
        return _ASKS_LIST.search(self.text) is not None


_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|must|should|may|of|for|in|on|at|to|that|who|the"
    r"|we|i|you|ist|sind|war|hat|wird|des|der|est|sont|a)"
)
_ASKED = re.compile(
    r"\b(?:what|who)(?:'s| is| was| are| were) (?:the |our |a )?((?:[\w-]+\s+){0,2}?[\w-]+)\s+(?:of|for|in|at|that)\b"
    rf"|\b(?:which|what|whose|welche[nrms]?|quel(?:le)?s?)\s+((?:[\w'-]+\s+){{0,3}}?[\w'-]+)\s+{_AUXILIARY}\b"
    r"|\b(?:give me|tell me|name|state) (?:the |our )((?:[\w-]+\s+){0,2}?[\w-]+)\s+(?:of|for|in|at|that|who)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"(?:[,:]|\b(?:between|from|of|for|in|at|do|does|did|is|are|was|were|first|earlier|later|older|longer|cheaper|more"
    r"|one)\b)\s*([^,:?]{2,60}?)\s*,?\s+(?:or|and|oder|ou)\s+(?:from |for |in |at )?([^,?]{2,60}?)\s*(?:\?|,|$)",
    re.IGNORECASE,
)
_ASKS_CHOICE = re.compile(r"\b(?:or|oder|ou|which of the|of the two|between)\b|^of\b", re.IGNORECASE)
_ASKS_LIST = re.compile(
    r"^\W*(?:please )?(?:list|enumerate|name (?:all|every|the \w+s))\b|\bwho are\b"
    r"|\bwhich (?:other )?(?!(?:is|was|has|does)\b)\w+s\b"
    r"|\bwhat (?:other )?\w+s (?:do|does|did|are|were|have|can|must)\b|\b(?:all|everybody|everyone)\b",
    re.IGNORECASE,
)
_ADJECTIVE = re.compile(r"\w{2,}(?:ish|[ie]an|ese)")
_BEFORE_NOUN = word_set(
    "der die das den dem des ein eine einen einem einer eines im am zum zur beim vom unser unsere kein keine viele "
    "wie welche welcher welches welchem welchen mit und von für"
)
_HOUSE = re.compile(
    r"\b(?:the|our|your|die|das|unsere?|eure?|la|notre|votre|l)\W"
    r"(?P<noun>company|firm|organi[sz]ation|enterprise|firma|unternehmen|organisation|entreprise|société)\b"
    r"(?!\s+(?:that|which|who|whose|where|of|in|from|with|behind|der|das|die|von|aus|qui|que|dont|de|où)\b)",
    re.IGNORECASE,
)


def parse_question(question: str) -> ParsedQuestion:
    """Take a question apart.

    "The company" that nothing narrows is the one that the documents belong to, which they seldom say: it is no term
    beside others.
    """
    language = language_of(question)
    spans = word_spans(question)
    asked = {
        stem(word, language)
        for match in _ASKED.finditer(question)
        for word, _, _ in word_spans(" ".join(filter(None, match.groups())))
    }
    dates = [
        span
        for span in date_spans(question)
        if days_in(question[slice(*span)]) and not question[slice(*span)].isdigit()
    ]
    terms: dict[str, Term] = {}
    for start, end in dates:
        text = question[start:end].casefold()
        terms[text] = Term(text, text, Role.DATE, day=days_in(text)[0])
    for place, (word, start, end) in enumerate(spans):
        has_digit = any(map(str.isdigit, word))
        if is_function_word(word, language) or any(first <= start < last for first, last in dates):
            continue
        if len(word) < 2 and not has_digit and not is_unspaced(word):
            continue
        root = word if has_digit else stem(word, language)
        before = spans[place - 1][0] if place else ""
        role = (
            Role.NUMBER if has_digit else _role(question[start:end], before, question[end:], language, opens=not place)
        )
        terms.setdefault(root, Term(word, root, role, is_asked=root in asked and role is Role.WORD))
    for house in _HOUSE.finditer(question) if len(terms) > 1 else ():
        terms.pop(stem(house["noun"].casefold(), language), None)
    found = tuple(terms.values())
    kind, choices = answer_kind(question), _choices(question, found)
    return ParsedQuestion(
        question,
        language,
        found,
        AnswerKind.ANY if choices and kind is AnswerKind.PERSON else kind,
        choices,
        frozenset(word for word, _, _ in spans),
    )


def _role(word: str, before: str, behind: str, language: str, *, opens: bool) -> Role:
    """A capital tells a name, but for adjectives ("the Danish king"), and nouns of German behind an article."""
    if opens or not word[:1].isupper() or (_ADJECTIVE.fullmatch(word) and behind.lstrip()[:1].islower()):
        return Role.WORD
    return Role.WORD if language == "german" and before in _BEFORE_NOUN else Role.NAME


def _choices(question: str, terms: tuple[Term, ...]) -> tuple[Choice, ...]:
    """The two things of "X or Y", where each has a term that the other has not."""
    match = _CHOICE.search(question) if _ASKS_CHOICE.search(question) else None
    if match is None:
        return ()
    one, other = match.groups()
    both = _choice(one, other, terms), _choice(other, one, terms)
    return both if all(choice.terms for choice in both) else ()


def _choice(side: str, other: str, terms: tuple[Term, ...]) -> Choice:
    """A side, named with what it shares with the other: "Model 7".

    The words behind its last name are not its own: they say what is compared ("Kestrel weigh").
    """
    spans = word_spans(side)
    known, others = {word for word, _, _ in spans}, {word for word, _, _ in word_spans(other)}
    held = [place for place, term in enumerate(terms) if term.text in known]
    own = [place for place in held if terms[place].text not in others]
    names = [place for place in own if terms[place].is_name]
    own = [place for place in own if not names or place <= names[-1]]
    start = min((start for word, start, _ in spans if word in _texts(held, terms)), default=0)
    end = max((end for word, _, end in spans if word in _texts(own if names else held, terms)), default=0)
    return Choice(frozenset(own), side[start:end])


def _texts(places: Sequence[int], terms: Sequence[Term]) -> set[str]:
    return {terms[place].text for place in places}
