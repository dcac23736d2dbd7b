"""The conversations of a server's clients: in its memory alone, bounded, each under an id that nobody guesses."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from secrets import token_urlsafe
from threading import Lock
from typing import Any

from graph.errors import BadInput
from workflows.conversation.session import Thread

MOST_CONVERSATIONS = 200
MOST_TURNS = 10


@dataclass(frozen=True, slots=True)
class _Kept:
    thread: Thread
    where: str


def new_key() -> str:
    """Return an id that nobody guesses."""
    return token_urlsafe(16)


class Conversations:
    """Some conversations; of too many the one that rested longest goes, of one too long its first turns.

    A conversation stays with the filter that it was begun with.
    """

    def __init__(self, most: int = MOST_CONVERSATIONS) -> None:
        self._most = most
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def holds(self, key: str) -> bool:
        """Tell whether a conversation of that key is in memory."""
        with self._lock:
            return key in self._kept

    def find(self, key: str, where: Mapping[str, Any]) -> Thread:
        """Return what the next question of a conversation needs; an empty key begins one.

        Raises:
            BadInput: there is no such conversation (any more), or it has another filter.
        """
        if not key:
            return Thread()
        with self._lock:
            kept = self._kept.get(key)
        if kept is None:
            raise BadInput(
                "This server knows no such conversation",
                "Begin a new one without `conversation`: old ones are forgotten, and all of them with the server",
            )
        if kept.where != _spelled(where):
            raise BadInput(
                "The conversation was begun with another `where`", "Give the same again, or begin a new conversation"
            )
        return kept.thread

    def keep(self, key: str, where: Mapping[str, Any], before: Thread, result: Mapping[str, Any]) -> str:
        """Add a result to a conversation, and return its key, a new one for an empty key.

        Args:
            key: of the conversation.
            where: its filter.
            before: the thread that the question was asked in; it counts where the conversation is gone meanwhile.
            result: of the question.
        """
        key = key or new_key()
        with self._lock:
            kept = self._kept.pop(key, None)
            thread = (kept.thread if kept else before).after(result)
            self._kept[key] = _Kept(replace(thread, turns=thread.turns[-MOST_TURNS:]), _spelled(where))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return key


def _spelled(where: Mapping[str, Any]) -> str:
    return json.dumps(where, sort_keys=True)
