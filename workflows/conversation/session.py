"""Conversations in memory: questions that may lean on earlier ones, of one caller from Python or many of a server."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from threading import Lock
from typing import Any

from agents.leaning import chosen_reading
from agents.roles import Turn
from graph.errors import BadInput
from workflows.context import Context, make_context
from workflows.output.markdown import plain
from workflows.results import Result, cited_passages, labelled, name_of, turn_of, understood_as
from workflows.runtime.history import past_turns, seen_turns
from workflows.runtime.resources import open_run
from workflows.settings.mara import QUESTION_LIMIT, TURNS_LIMIT
from workflows.streaming import Answered, Event, ask_stream

MOST_CONVERSATIONS = 200


@dataclass(frozen=True, slots=True)
class Thread:
    """The part of a conversation that its next question needs.

    Attributes:
        turns: earlier questions with their answers, the last one last; at most the last `TURNS_LIMIT`.
        choices: what the last question could mean, where the answer asked back; else empty. Then the last turn is that
            question, which counts for the next one alone.
    """

    turns: tuple[Turn, ...] = ()
    choices: tuple[str, ...] = ()

    def read(self, typed: str) -> tuple[str, tuple[Turn, ...]]:
        """Return the question to ask, and the turns to ask it with: none with a choice, which is whole.

        A choice is picked by its number, or by words that it alone has.

        Raises:
            BadInput: no choice has that number.
        """
        if chosen := chosen_reading(typed, self.choices):
            return chosen, ()
        number = typed.strip()
        if self.choices and number.isdecimal() and len(number) <= 2:
            raise BadInput(
                f"There is no choice {number}", f"Choose from 1 to {len(self.choices)}, or ask something else"
            )
        return typed, self.turns

    def after(self, result: Mapping[str, Any]) -> Thread:
        """Return what the next question needs after this result."""
        settled = self.turns[:-1] if self.choices else self.turns
        choices = tuple(result["understood"]["choices"]) if asks_back(result) else ()
        return Thread((*settled, turn_of(result))[-TURNS_LIMIT:], choices)


class Conversation:
    """Questions and answers that build on each other; kept in memory, and in the history where the settings say so.

    Attributes:
        context: the settings of every question.
        results: what was answered so far, the last one last; one that asks back included.
    """

    def __init__(self, context: Context, earlier: Sequence[Turn] = ()) -> None:
        """Begin with the turns that were held earlier, the last one last."""
        self.context = context
        self.results: list[Result] = []
        self._earlier = tuple(earlier)

    @property
    def thread(self) -> Thread:
        """The part that the next question needs."""
        thread = Thread(self._earlier)
        for result in self.results:
            thread = thread.after(result)
        return thread

    @property
    def last(self) -> Result | None:
        """The last result, if there is one."""
        return self.results[-1] if self.results else None

    def ask(self, typed: str) -> Generator[Event, None, None]:
        """Answer what was typed as `ask_stream` does: a question, or the number of a choice where one was asked for.

        The result is kept when it comes: closing the iterator before drops the question.

        Raises:
            BadInput: no choice has that number; or as `ask_stream`, and so its other errors (all while iterating).
        """
        question, turns = self.thread.read(typed)
        yield from self._answer(question, turns, self.results)

    def correct(self, question: str) -> Generator[Event, None, None]:
        """Answer a whole question in place of the last one, which was not understood as it was meant.

        Raises:
            BadInput: there is no question to correct; or as `ask`.
        """
        if not self.results:
            raise BadInput("No question was asked yet", "Ask one")
        yield from self._answer(question, (), self.results[:-1])

    def start_over(self, conversation: str = "") -> None:
        """Forget all turns, and go on in another conversation of the history, or in none.

        Raises:
            BadInput: the name is none that a conversation can have.
            NoAccess: the conversation is not open to the user.
        """
        context = in_conversation(self.context, conversation)
        self.results, self._earlier = [], turns_of_history(context)
        self.context = context

    def to_markdown(self) -> str:
        """Return the conversation with the sources of its answers."""
        return "\n\n".join(["# Conversation", *(part for result in self.results for part in _told(result))]) + "\n"

    def _answer(self, question: str, turns: Sequence[Turn], before: Sequence[Result]) -> Generator[Event, None, None]:
        with closing(ask_stream(question, self.context, turns)) as events:
            for event in events:
                if isinstance(event, Answered):
                    self.results = [*before, event.result]
                yield event


def turns_of_history(context: Context) -> tuple[Turn, ...]:
    """Return the turns of a context's conversation, as far as they are in the history.

    Raises:
        NoAccess: the conversation is not open to the user.
        WorkspaceDamaged: the relationship graph cannot be read.
    """
    return tuple(seen_turns(past_turns(context), open_run(context)))


def in_conversation(context: Context, conversation: str) -> Context:
    """Return settings for another conversation of the history; empty for none. Raises BadInput for a name of none."""
    checked = make_context(conversation_id=conversation)
    return context.in_history(checked.conversation_id, context.user_id)


def asks_back(result: Mapping[str, Any]) -> bool:
    """Tell whether a result asks what the question means."""
    return bool(result["understood"] and result["understood"]["choices"])


def _told(result: Mapping[str, Any]) -> list[str]:
    """Return a question, its answer and its sources as Markdown."""
    understood = result["understood"]
    parts = [f"## {plain(understood['asked'] if understood else result['question'], QUESTION_LIMIT)}"]
    if words := understood_as(result):
        parts.append(f"Understood as: {plain(words, 2 * QUESTION_LIMIT)}")
    if asks_back(result):
        choices = [f"{number}. {plain(choice)}" for number, choice in enumerate(understood["choices"], start=1)]
        return [*parts, "What do you mean?", "\n".join(choices)]
    shown = labelled(result, str).strip()
    parts.append("\n".join(plain(line, len(line)) for line in shown.splitlines()))
    cited = {hit["number"]: hit for _, hit in cited_passages(result)}
    sources = [f"- \\[{number}\\] {plain(name_of(hit))}" for number, hit in sorted(cited.items())]
    return [*parts, "\n".join(sources)] if sources else parts


class Conversations:
    """Some conversations in memory; of too many the one that rested longest goes.

    A conversation stays with the filter that it was begun with.
    """

    def __init__(self, most: int = MOST_CONVERSATIONS) -> None:
        self._most = most
        self._threads: OrderedDict[tuple[str, str], Thread] = OrderedDict()
        self._lock = Lock()

    def find(self, key: str, where: Mapping[str, Any]) -> Thread | None:
        """Return what the next question of a conversation needs; None where there is no such one (any more)."""
        with self._lock:
            return self._threads.get((key, _spelled(where)))

    def keep(self, key: str, where: Mapping[str, Any], thread: Thread) -> None:
        """Keep a conversation as it stands, under its id and its filter."""
        place = (key, _spelled(where))
        with self._lock:
            self._threads.pop(place, None)
            self._threads[place] = thread
            while len(self._threads) > self._most:
                self._threads.popitem(last=False)


def _spelled(where: Mapping[str, Any]) -> str:
    return json.dumps(where, sort_keys=True)
