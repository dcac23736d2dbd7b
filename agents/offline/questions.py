"""A question taken apart: its parts, what evidence has to hold for them, and the kind of answer."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto

from agents.offline.entities import scan_entities
from agents.offline.words import (
    Day,
    date_spans,
    days_in,
    function_words,
    language_of,
    stem,
    word_set,
    word_spans,
    words_of,
)
from graph.text import is_unspaced


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
        return any(not words_of(text[start:end]) <= asked for start, end in dates)
    if kind is AnswerKind.PERSON:
        return any(span.is_name and not words_of(span.text) <= asked for span in scan_entities(text).spans)
    for start, end in reversed(dates):
        text = f"{text[:start]} {text[end:]}"
    numbers = [match[0].casefold() for pattern in (_FIGURE, _NUMBER_WORD) for match in pattern.finditer(text)]
    return any(number not in asked for number in numbers)


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
        for word in words_of(" ".join(filter(None, match.groups())))
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
        if word in function_words(language) or any(first <= start < last for first, last in dates):
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
    all_terms = tuple(terms.values())
    kind, choices = answer_kind(question), _choices(question, all_terms)
    return ParsedQuestion(
        question,
        language,
        all_terms,
        AnswerKind.ANY if choices and kind is AnswerKind.PERSON else kind,
        choices,
        words_of(question),
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
    """A side, named with what it shares with the other: "Model 7"."""
    spans = word_spans(side)
    known, others = words_of(side), words_of(other)
    shared = [place for place, term in enumerate(terms) if term.text in known]
    own = [place for place in shared if terms[place].text not in others]
    names = [place for place in own if terms[place].is_name]
    start = min((start for word, start, _ in spans if word in _texts(shared, terms)), default=0)
    end = max((end for word, _, end in spans if word in _texts(own if names else shared, terms)), default=0)
    return Choice(frozenset(own), side[start:end])


def _texts(places: Sequence[int], terms: Sequence[Term]) -> set[str]:
    return {terms[place].text for place in places}


_PREPOSITION = r"(?:in|on|at|by|to|for|from|of|with|since|seit|für|mit|von|depuis|pour|de|à)"
_NEXT = re.compile(
    r"\?\s+(?:and\s+)?|(?:[,;]|(?<!\s))\s+(?:and|und|et)\s+(?:also\s+)?"
    rf"(?=(?:{_PREPOSITION}\s+)?"
    r"(?:who|whom|whose|what|which|when|where|why|how|wer|wen|wem|was|wann|wo|warum|wie|welche[mnrs]?"
    r"|qui|quand|où|pourquoi|combien|comment|quel(?:le)?s?)\b)",
    re.IGNORECASE,
)


def split_question(question: str) -> list[str]:
    """Return the parts of a question that asks several things ("Who founded X, and when did it close?"), or itself.

    A question stays whole where a later part names nothing ("and when did it close?").
    """
    pieces = [piece.strip(" ?,;.\n\t") for piece in _NEXT.split(question)]
    pieces = [piece for piece in pieces if piece and parse_question(piece).terms]
    names_something = [any(term.is_name for term in parse_question(piece).terms) for piece in pieces[1:]]
    if not names_something or not all(names_something):
        return [question]
    return [f"{piece[:1].upper()}{piece[1:]}?" for piece in pieces]
