"""Streams of answers: a model that writes as slowly as a test wants it to, and what its readers see."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from tests.workflows.small_world import QUESTION
from workflows.context import Context
from workflows.results import Result
from workflows.streaming import Answered, Event, NodeStarted, Token, aask_stream

PATIENCE_S = 10.0
"""How long a test waits for what must happen, before it fails."""


class Dictation:
    """A reply's pieces: one word, then nothing until it may go on, then words without end.

    Attributes:
        began: set when the reply begins.
        go_on: to be set by the test.
        hung_up: set when nobody takes the words any more.
    """

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go_on = threading.Event()
        self.hung_up = threading.Event()

    def __iter__(self) -> Iterator[str]:
        try:
            self.began.set()
            yield "It"
            self.go_on.wait(PATIENCE_S)
            while True:
                yield " was" * 1000
        finally:
            self.hung_up.set()


class Held:
    """A reply's pieces, of which the last come when the test says so."""

    def __init__(self, *pieces: str) -> None:
        self.go_on = threading.Event()
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        *first, last = self._pieces
        yield from first
        self.go_on.wait(PATIENCE_S)
        yield last


def wait_for_the_end() -> None:
    """Wait until no run goes on behind a stream that was left."""
    for thread in threading.enumerate():
        if thread.name.startswith("ask-stream"):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def starts(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.node, event.attempt) for event in events if isinstance(event, NodeStarted)]


def screens(events: list[Event]) -> list[str]:
    """What stood on the screen of someone who wipes it whenever a node starts: each text before it was wiped."""
    shown = [""]
    for event in events:
        if isinstance(event, NodeStarted):
            shown.append("")
        elif isinstance(event, Token):
            shown[-1] += event.text
    return [text for text in shown if text]


def result_in(events: list[Event]) -> Result:
    last = events[-1]
    assert isinstance(last, Answered)
    assert not any(isinstance(event, Answered) for event in events[:-1])
    return last.result


async def every(context: Context, question: str = QUESTION) -> list[Event]:
    """All events of the async twin."""
    return [event async for event in aask_stream(question, context)]
