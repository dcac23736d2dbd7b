"""The rewriter: it completes a question from the conversation that the question was asked in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Protocol

import regex
from pydantic import BaseModel

from agents.agent import Agent
from agents.answers.quotes import RELATED, unmarked
from agents.chat.agent import ChatAgent, list_of, object_of, text_of
from agents.leaning import (
    ANYTHING,
    DEMONSTRATIVES,
    DOUBTS,
    HE,
    JOINING,
    LONGEST_FRAGMENT,
    OWNERS,
    PLACE,
    QUESTION_WORDS,
    SHE,
    THING,
    TURNING,
    any_of,
    asks,
    leaning_of,
    open_comparison,
)
from agents.offline.entities import scan_entities
from agents.offline.questions import AnswerKind, answer_kind
from agents.offline.words import (
    FUNCTION_WORDS,
    content_stems,
    function_words,
    language_of,
    stem,
    word_set,
    word_spans,
    words_of,
)
from agents.roles import Feedback, Turn
from graph.errors import MalformedReply
from graph.retrieve.known_names import KnownNames, Pronoun

_PEOPLE = (Pronoun.HE, Pronoun.SHE)
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
_LONGEST_TITLE = 10
_BRACKETED = re.compile(r"\s*[(（][^)）]*[)）]")
_CITATION = re.compile(r"\s*\[\d+\]")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s*(?:\[\d+\]\s*)+|(?<=[.!?。])\s+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name that a reference may mean.

    Attributes:
        text: as it is written.
        pronoun: what the collection calls it by.
    """

    text: str
    pronoun: Pronoun


class Antecedents:
    """Finds what a reference may mean, in the words of the turns and by what the collection tells of names."""

    def __init__(self, names: KnownNames) -> None:
        self._names = names

    def of(self, text: str) -> list[Candidate]:
        """Return the names in a text, each once, in order."""
        written = [span.text for span in scan_entities(text).spans if span.is_name and self._is_sure(span.text)]
        names = dict.fromkeys(written or self._names.spelled(text))
        return [Candidate(name, self._names.pronoun_of(name)) for name in names]

    def meant(self, reference: str, turn: Turn) -> list[Candidate]:
        """Return the names of a turn that a pronoun or "there" may mean: several people where nothing decides."""
        asked, answers = self.of(turn.question), self._in_answer(turn)
        if wanted := _wanted_people(reference):
            named = _people(asked, wanted)
            answering = next((sure for names in answers if (sure := _known_people(names, wanted))), [])
            # Not "who was Nero?": somebody is asked for who is not in the question.
            asks_who = answer_kind(turn.question) is AnswerKind.PERSON and not _NAMED_PERSON.fullmatch(turn.question)
            people = (answering or named) if asks_who and len(named) < 2 else (named or answering)
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
        asked = words_of(turn.question)
        sentences = [
            [name for name in self.of(sentence) if not words_of(name.text) <= asked]
            for sentence in _sentences_by_likeness(turn)
        ]
        return [names for names in sentences if names]

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
    """Tell whether a name is written as people's are: two to four words with capitals."""
    words = name.text.split()
    return 2 <= len(words) <= 4 and all(word[:1].isupper() and word.isalpha() for word in words)


def _sentences_by_likeness(turn: Turn) -> list[str]:
    """The sentences of an answer after the title of the passage that they quote, the likeliest to answer first."""
    language, asked = language_of(turn.question), words_of(turn.question)
    named = set().union(*(words_of(span.text) for span in scan_entities(turn.question).spans if span.is_name))
    wanted = {stem(word, language) for word in asked - named if word not in function_words(language)}

    def likeness(sentence: str) -> float:
        own, words = words_of(sentence.partition(": ")[2] or sentence), words_of(sentence)
        shared = len(wanted & {stem(word, language) for word in words})
        return shared + 0.5 * bool(named & own) + 0.25 * bool(named & words)

    return sorted(_titled_sentences(turn.answer), key=likeness, reverse=True)


def _titled_sentences(answer: str) -> Iterator[str]:
    """Yield each sentence of an answer, less citations and brackets; after "Title: " where the answer names it so."""
    for line in answer.splitlines():
        title, line = "", line.removeprefix(RELATED)
        for sentence in _SENTENCE_END.split(line):
            plain = _BRACKETED.sub("", _CITATION.sub("", unmarked(sentence))).strip()
            head, colon, _ = plain.partition(": ")
            is_title = bool(colon) and len(head.split()) <= _LONGEST_TITLE
            title = head if is_title else title
            if plain:
                yield f"{title}: {plain}" if title and not is_title else plain


LONGEST_TOPIC = 15
"""Words of an earlier question that a question takes on."""

_PREPOSITION = r"\b((?i:in|on|at|from|to|by|for|with|during|since|until|before|after|of))\s+(?:(?i:the)\s+)?"
_PHRASE = regex.compile(rf"{_PREPOSITION}[^\s,?.!]+(?:(?<=\s\p{{Lu}}\S*)\s\p{{Lu}}[^\s,?.!]*)*")
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_ARTICLE = re.compile(r"(?:the|a|an)\s", re.IGNORECASE)
_ARTICLE_BEFORE = re.compile(r"\b(?:the|a|an)\s+$", re.IGNORECASE)
_ASKS_WITH = re.compile(
    r"\W*(?:and |but |so )?"
    r"(?:when|where|why|how(?: \w+)?|what|in (?:which|what) \w+|wann|wo|warum|wie|quand|où|pourquoi)\s+"
    r"(?=(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|wurde|ist|war|hat|est|a)\b)",
    re.IGNORECASE,
)
_ASKED_ON = re.compile(r"\w+(?: \w+)?\? (?=\w)")
_IN_BRACKETS = re.compile(r"\(([^()]+)\)\W*$")
_NO_MARKS = str.maketrans(dict.fromkeys("()?!¿¡", " "))
_ONLY_ASKS = FUNCTION_WORDS | word_set("what which who whom whose when where why how can could")


def filled_in(fragment: str, asked: str, names: KnownNames) -> str | None:
    """Return the last question with a fragment in the place of what is like it: a phrase, a number or a name.

    None where the question has nothing like it.
    """
    if topic := _IN_BRACKETS.search(asked):
        without = filled_in(fragment, asked[: topic.start()].rstrip(), names)
        return f"{without} ({topic.group(1)})" if without else None
    ends = "?" if asked.rstrip().endswith("?") else ""
    whole = asked.strip().rstrip("?")
    slot = _slot(fragment, whole, names)
    if slot is None:
        return f"{whole} {fragment}{ends}" if _PHRASE.match(fragment) else None
    before = whole[: slot[0]]
    if _ARTICLE.match(fragment):
        before = _ARTICLE_BEFORE.sub("", before)
    return f"{before}{fragment}{whole[slot[1] :]}{ends}"


def asked_with(how: str, asked: str) -> str:
    """Return the last question with another question word: "When was it built?" and "why?" is "Why was it built?"."""
    how = how[:1].upper() + how[1:].casefold()
    changed = _ASKS_WITH.sub(f"{how} ", asked, count=1)
    return changed if changed != asked else f"{how}? {_ASKED_ON.sub('', asked)}"


def topic_of(question: str) -> str:
    """Return what a question is about: what stands in brackets behind it, or its words without those that only ask."""
    if in_brackets := _IN_BRACKETS.search(question):
        return in_brackets.group(1)
    words = _ASKS_WITH.sub("", question, count=1).translate(_NO_MARKS).strip(" .").split()
    while words and words[0].casefold().strip(",") in _ONLY_ASKS:
        words.pop(0)
    words = list({word.casefold(): word for word in reversed(words)}.values())[::-1][:LONGEST_TOPIC]
    while words and words[-1].casefold() in FUNCTION_WORDS:
        words.pop()
    return " ".join(words)


def _slot(fragment: str, asked: str, names: KnownNames) -> tuple[int, int] | None:
    """Where in a question a fragment goes."""
    if phrase := _PHRASE.match(fragment):
        like = [match for match in _PHRASE.finditer(asked) if match.group(1).lower() == phrase.group(1).lower()]
        return like[-1].span() if like else None
    if _NUMBER.fullmatch(fragment) and (numbers := list(_NUMBER.finditer(asked))):
        return numbers[-1].span()
    if said := _said_before(fragment, asked):
        return said
    present = [span.text for span in scan_entities(asked).spans if span.is_name] or names.spelled(asked)
    if not present or not (names.knows(fragment) or _is_written_as_a_name(fragment)):
        return None
    like_it = [name for name in present if names.pronoun_of(name) is names.pronoun_of(fragment)]
    match = re.search(re.escape((like_it or present)[0]), asked, re.IGNORECASE)
    return match.span() if match else None


def _said_before(fragment: str, asked: str) -> tuple[int, int] | None:
    """Where a question has the noun that a phrase narrows otherwise: with the phrase that narrows it there."""
    narrowing = list(_PHRASE.finditer(fragment))
    noun = fragment[: narrowing[0].start()].split() if narrowing else []
    while noun and noun[0].casefold() in FUNCTION_WORDS:
        noun.pop(0)
    match = re.search(rf"\b{re.escape(' '.join(noun))}\b", asked, re.IGNORECASE) if noun else None
    if not match:
        return None
    like = _PHRASE.match(asked, match.end() + 1)
    is_like = like and like.group(1).casefold() in {phrase.group(1).casefold() for phrase in narrowing}
    return match.start(), like.end() if like and is_like else match.end()


def _is_written_as_a_name(fragment: str) -> bool:
    """Tell whether each word of a fragment that says anything has a capital."""
    words = [word for word in fragment.split() if word.casefold() not in FUNCTION_WORDS]
    return bool(words) and all(word[:1].isupper() for word in words)


TURNS_SHOWN = 4
"""The last turns that a model is shown."""

LONGEST_QUESTION = 1_000
"""Characters of a completed question."""

_SHOWN_ANSWER = 600
_MOST_CHOICES = 4
_SCHEMA = object_of(
    stands_alone={"type": "boolean"},
    question=text_of(LONGEST_QUESTION),
    choices=list_of(text_of(LONGEST_QUESTION), _MOST_CHOICES),
)
_LONGEST_TURN = 10
_OPENING = re.compile(
    rf"\W*(?:{any_of(JOINING)}\b[\s,.!:-]*)*(?P<turning>{any_of(TURNING)}\b[\s,.:-]*)?", re.IGNORECASE
)
_QUESTION_WORD = re.compile(
    rf"\W*(?:(?:and|but|und|et|y)\s+)?({any_of(QUESTION_WORDS)}"
    r"|(?:in|at|on|by|from|to|for|since|until|with|of) (?:what|which) \w+)(?:\s+(?:not|so|then|exactly))?\W*",
    re.IGNORECASE,
)
_DOUBT = re.compile(rf"\b{any_of(DOUBTS)}\b", re.IGNORECASE)
_NO = re.compile(r"\W*(?:no|nope|nein|non)\W*", re.IGNORECASE)
_PAIR = re.compile(r"\b(?:of (?:them|these|those|the two)|both)\b", re.IGNORECASE)
_CHOOSING = re.compile(r"\W*(?:which|who)\b", re.IGNORECASE)
"""Begins a question that chooses, where it compares what it does not name: "which is cheaper?"."""

_ORDINAL = re.compile(
    r"\bthe\s+(first|second|third|fourth|last|former|latter)\b"
    r"(?:\s+one\b|(?=\W*$)|(?=\s+(?:is|are|was|were|do|does|did|has|have)\b))",
    re.IGNORECASE,
)
_PLACES = {"first": 0, "former": 0, "second": 1, "latter": 1, "third": 2, "fourth": 3, "last": -1}
_EXISTS = re.compile(r"\b(?:is|are|was|were)\s*$", re.IGNORECASE)
_TO_A_PLACE = re.compile(r"\b(?:in|from|to|at|near|of)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The reading of a question that leans on earlier turns.

    Attributes:
        question: whole, as it is searched and answered; the question itself where it stands alone after all.
        names: of earlier turns, which the walk starts from beside those in the question.
        choices: readings between which nothing decides, of which the asker has to choose one; else empty.
    """

    question: str
    names: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


class Rewriter(Protocol):
    """Completes a question that leans on earlier turns of its conversation."""

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the reading of the question; ``turns`` are the earlier ones, the last one last.

        Raises MalformedReply.
        """


class RewriterReply(BaseModel):
    """The question as it was understood."""

    stands_alone: bool
    question: str
    choices: list[str]


class ChatRewriter(ChatAgent):
    """Asks a chat model to complete a question, or to say that it stands alone."""

    prompt = "rewriter"
    material = "turns and question"
    reply_tokens = 300

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the completed question; the question as it is where the model says that it stands alone.

        Raises:
            MalformedReply: the reply is not of the schema, the question is empty or too long, or a reading keeps no
                word of the question.
        """

        def check(reply: RewriterReply) -> Rewriting:
            if reply.stands_alone:
                return Rewriting(question)
            choices = tuple(dict.fromkeys(choice.strip() for choice in reply.choices if choice.strip()))[:_MOST_CHOICES]
            whole = reply.question.strip()
            if not whole or len(whole) > LONGEST_QUESTION:
                raise MalformedReply(f"`question` has to hold one question of at most {LONGEST_QUESTION} characters")
            if not all(_asks_the_same(question, reading) for reading in (whole, *choices)):
                raise MalformedReply("Keep the words of the given question, and add what they refer to")
            return Rewriting(whole, choices=choices if len(choices) > 1 else ())

        shown = [{"question": turn.question, "answer": turn.answer[:_SHOWN_ANSWER]} for turn in turns[-TURNS_SHOWN:]]
        messages = self.messages({"turns": shown, "question": question}, feedback)
        return self._ask_object(RewriterReply, _SCHEMA, messages, check)


def _asks_the_same(question: str, reading: str) -> bool:
    """Tell whether a reading keeps any word of a question that says something, where there is one."""
    content = set(content_stems(question))
    return not content or not content.isdisjoint(content_stems(reading))


class _Reference(NamedTuple):
    """A word that refers, in lower case, and the characters of the question that a name would take the place of."""

    word: str
    start: int
    end: int


class OfflineRewriter:
    """Completes a question from the last turns by its words alone; deterministic.

    Pronouns, "there" and "the second one" become the name that they most likely mean: of the last question, or of the
    sentence that answered it. "What about X?" asks the last question of X, "why?" asks it with another question word.
    A reference that cannot be put into words is named in brackets behind the question.
    """

    def __init__(self, names: KnownNames) -> None:
        self._names = names
        self._antecedents = Antecedents(names)

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the whole question; asks back where a pronoun may mean two people alike."""
        whole = self._whole(turns)
        if not whole:
            return Rewriting(question)
        readings = self._readings(question, whole)
        words = {word for word, _, _ in word_spans(question)}
        put_in = [name.text for name in self._antecedents.of(readings[0])]
        fresh = (name for name in put_in if not {word for word, _, _ in word_spans(name)} <= words)
        return Rewriting(readings[0], tuple(fresh), tuple(readings) if len(readings) > 1 else ())

    def _whole(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns with each question completed from those before it; one that was understood already stands alone."""
        whole: list[Turn] = []
        for turn in turns:
            spoken = " ".join(text for earlier in whole[-2:] for text in (earlier.question, earlier.answer))
            leans = whole and leaning_of(turn.question, spoken)
            whole.append(replace(turn, question=self._readings(turn.question, whole)[0]) if leans else turn)
        return whole

    def _readings(self, question: str, turns: Sequence[Turn]) -> list[str]:
        """The whole questions that this one may mean; several where nothing decides."""
        plain, last = " ".join(question.split()), turns[-1].question
        if _DOUBT.search(plain) or _NO.fullmatch(plain):
            return [last]
        if asked_anew := _QUESTION_WORD.fullmatch(plain):
            return [asked_with(asked_anew.group(1), last)]
        opening = _OPENING.match(plain)
        said = (plain[opening.end() :] if opening else plain).strip() or plain
        body = said.strip(" ?.!¿¡")
        if _is_fragment(body, is_turned=bool(opening and opening["turning"])):
            return [filled_in(body, last, self._names) or self._with_topic(body, last)]
        if plain[:1].isupper():
            said = said[:1].upper() + said[1:]
        return self._referred(said, turns)

    def _referred(self, question: str, turns: Sequence[Turn]) -> list[str]:
        """The question with its first reference replaced by the names that it may mean."""
        last = turns[-1]
        if ordinal := _ORDINAL.search(question):
            listed, place = self._antecedents.listed(last), _PLACES[ordinal.group(1).lower()]
            if len(listed) > 1 and place < len(listed):
                return [f"{question[: ordinal.start()]}{listed[place].text}{question[ordinal.end() :]}"]
        chooses = _CHOOSING.match(question) and open_comparison(question)
        if (_PAIR.search(question) or chooses) and (pair := self._antecedents.pair(turns)):
            return [_in_brackets(question, " and ".join(name.text for name in pair))]
        reference = next(_references(question), None)
        if reference is None:
            return [self._with_topic(question, last.question)]
        is_somebody = reference.word in HE or reference.word in SHE
        looked_at = reversed(turns[-2:]) if is_somebody else turns[-1:]
        candidates = next((names for turn in looked_at if (names := self._antecedents.meant(reference.word, turn))), [])
        readings = [_replaced(question, reference, name.text) for name in candidates]
        return readings or [self._with_topic(question, last.question)]

    def _with_topic(self, question: str, last: str) -> str:
        """The question with what the last one was about behind it: its names, or its words where it has none."""
        return _in_brackets(question, topic_of(last))


def _is_fragment(body: str, *, is_turned: bool) -> bool:
    """Tell whether words are no question of their own: few, none that asks, and none that refers.

    More are few where they are said to stand in for others: "I meant ...".
    """
    is_short = 0 < len(word_spans(body)) <= (_LONGEST_TURN if is_turned else LONGEST_FRAGMENT)
    return is_short and not asks(body) and next(_references(body), None) is None


def _references(question: str) -> Iterator[_Reference]:
    """Yield the words of a question that refer; "this company" whole, "there" not where it says that there is."""
    for word, start, end in word_spans(question):
        if word in PLACE:
            if not _EXISTS.search(question[:start]):
                yield _Reference(word, start, end)
        elif word in DEMONSTRATIVES:
            noun = re.match(r"\s+([a-z]+)(?=\s+\w)", question[end:])
            is_whole = noun and noun.group(1) not in FUNCTION_WORDS
            yield _Reference(word, start, end + noun.end() if noun and is_whole else end)
        elif word in HE or word in SHE or word in THING:
            yield _Reference(word, start, end)


def _replaced(question: str, reference: _Reference, name: str) -> str:
    """The question with a name in the place of a reference, in English; in brackets behind it elsewhere."""
    if language_of(question) != "english":
        return _in_brackets(question, name)
    before, after = question[: reference.start], question[reference.end :]
    owns = reference.word in OWNERS or (reference.word == "her" and re.match(r"\s+[a-z]", after))
    if owns:
        return f"{before}{name}'s{after}"
    is_at_it = reference.word in PLACE and not _TO_A_PLACE.search(before)
    return f"{before}{'in ' if is_at_it else ''}{name}{after}"


def _in_brackets(question: str, topic: str) -> str:
    return f"{question} ({topic})" if topic else question


def _shown(rewriting: Rewriting) -> dict[str, Any]:
    return {"question": rewriting.question, "names": list(rewriting.names), "choices": list(rewriting.choices)}


REWRITER: Agent[Rewriter, Rewriting] = Agent(
    name="rewriter",
    key="rewriter",
    chat=lambda model, run: ChatRewriter(model),
    offline=lambda run: OfflineRewriter(KnownNames(run.index.graph, run.selection)),
    shown=_shown,
    instead="the question is completed without a model",
)
