"""The rewriter: it completes a question from the conversation that the question was asked in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

from agents.agent import Agent
from agents.chat.agent import ChatAgent, list_of, object_of, text_of
from agents.leaning import (
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
from agents.offline.references import Antecedents, asked_with, filled_in, topic_of
from agents.offline.words import FUNCTION_WORDS, content_stems, language_of, word_spans
from agents.roles import Feedback, Turn
from graph.errors import MalformedReply
from graph.retrieve.known_names import KnownNames

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
        ...


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
    told = set(content_stems(question))
    return not told or not told.isdisjoint(content_stems(reading))


class _Reference(NamedTuple):
    """A word that refers, in lower case, and the characters of the question that a name would take the place of."""

    word: str
    start: int
    end: int


class OfflineRewriter:
    """Completes a question from the last turns by its words alone; deterministic.

    Pronouns, "there" and "the second one" become the name that they most likely mean: of the last question, or of the
    sentence that answered it. "What about X?" asks the last question of X, "why?" asks it with another question word.
    What cannot be put into words is named in brackets behind the question.
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
        held = {word for word, _, _ in word_spans(question)}
        put_in = [name.text for name in self._antecedents.of(readings[0])]
        fresh = (name for name in put_in if not {word for word, _, _ in word_spans(name)} <= held)
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
        found = next((names for turn in looked_at if (names := self._antecedents.meant(reference.word, turn))), [])
        readings = [_replaced(question, reference, name.text) for name in found]
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
