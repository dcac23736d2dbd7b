"""Asking from Python, event by event: what starts, how far it is, the answer as it is written, and the result."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias, cast

from agents.answers.citations import is_same_but_citations
from agents.chat.replies import ThinkFilter
from agents.chat.usage import Prices, prices_of
from agents.roles import REFUSAL, Turn
from graph.environment import refresh_environment
from workflows.answering import graph_of
from workflows.context import Context, asking, check_question
from workflows.results import Result, result_of
from workflows.runtime.own_run import Brake, leave_behind

ANSWERING = "write_answer"
"""The node whose model's words are the answer."""

FANNED_OUT = ("judge_passage", "search_follow_up")
"""Nodes that run many times side by side: their work is told as progress."""


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """A node begins, or begins again: the tokens before it are void.

    Attributes:
        attempt: from 1; more where a malformed reply is asked for again, or a broken stream taken up anew.
    """

    node: str
    attempt: int
    kind: Literal["node_started"] = field(default="node_started", init=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """A report of a node on its work; its start is reported by `NodeStarted` alone.

    Attributes:
        event: what happened, as the node names it.
        details: numbers and short texts that go with it.
    """

    node: str
    event: str
    details: Mapping[str, Any]
    kind: Literal["progress"] = field(default="progress", init=False)


@dataclass(frozen=True, slots=True)
class Token:
    """The next piece of the answer; the pieces since the last `NodeStarted`, put together, are the answer so far.

    Citations in it that lead nowhere are not in the result. A refusal has none.
    """

    text: str
    kind: Literal["token"] = field(default="token", init=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """The last event.

    Attributes:
        result: what `workflows.answering.ask` returns.
    """

    result: Result
    kind: Literal["answered"] = field(default="answered", init=False)


Event: TypeAlias = NodeStarted | Progress | Token | Answered


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as JSON can hold it, its ``kind`` first."""
    return {"kind": event.kind, **asdict(event)}


class Said:
    """The words of an answer that were told as they came, where none can be taken back."""

    def __init__(self) -> None:
        self._words = ""
        self._may_be_void = False

    def hear(self, event: NodeStarted | Progress | Token) -> tuple[str, bool]:
        """Return the words to tell of an event, and whether those told before are void."""
        if not isinstance(event, Token):
            self._may_be_void = self._may_be_void or isinstance(event, NodeStarted)
            return "", False
        words = event.text if self._may_be_void else self._words + event.text
        self._may_be_void = False
        return self._next(words)

    def rest_of(self, text: str, words: str) -> tuple[str, bool]:
        """Return what is left to tell of the whole text, which begins with these words, and whether it begins anew."""
        if self._words and is_same_but_citations(self._words, words):
            return text[len(words) :], False
        return self._next(text)

    def _next(self, words: str) -> tuple[str, bool]:
        before, self._words = self._words, words
        return (words.removeprefix(before), False) if words.startswith(before) else (words, True)


def ask_stream(question: str, context: Context, turns: Sequence[Turn] = ()) -> Generator[Event, None, None]:
    """Answer a question as `ask` does, telling what happens meanwhile.

    Closing the iterator stops the run: no further node begins, and a model that is writing is broken off at its next
    token. Closing waits for nothing; a request that hangs ends with its time-out, in the background.

    Yields:
        `NodeStarted`, `Progress` and `Token` as they come, then one `Answered`. An answer that no model writes comes
        as one token.

    Raises:
        BadInput: the question cannot be asked (at once); or as `ask` does, and so its other errors (while iterating).
    """
    return _iterated(_Run(check_question(question), context, turns))


def aask_stream(question: str, context: Context, turns: Sequence[Turn] = ()) -> AsyncGenerator[Event, None]:
    """Answer a question as `ask_stream` does, from a coroutine; the event loop goes on while a model is waited for.

    Cancelling the task that iterates stops the run, as ``aclose`` does: use ``contextlib.aclosing`` where the loop may
    be left early.
    """
    return cast("AsyncGenerator[Event, None]", aask_with_pauses(question, context, turns, None))


def aask_with_pauses(
    question: str, context: Context, turns: Sequence[Turn], pause_s: float | None
) -> AsyncGenerator[Event | None, None]:
    """Answer a question as `aask_stream` does, and yield None wherever nothing happened for so many seconds."""
    return _aiterated(_Run(check_question(question), context, turns), pause_s)


_THREAD = "ask-stream"


_Told: TypeAlias = Event | BaseException | None
"""An event, what ended the run before its time, or None after the last event."""


class _Run:
    """One run in a thread of its own, in the caller's context: it goes on whether or not its events are asked for.

    A run that stood still between two events would keep LangGraph's own threads waiting, and the process with them
    when it ends; this one ends by itself, and its thread keeps no process alive.
    """

    def __init__(self, question: str, context: Context, turns: Sequence[Turn]) -> None:
        refresh_environment()
        self._brake = Brake()
        self._events = _events(asking(question, turns), context, self._brake, prices_of())
        self._scope = contextvars.copy_context()
        self._has_ended = False

    def start(self, tell: Callable[[_Told], None]) -> None:
        """Begin to tell what happens, from the run's thread."""
        work = partial(self._scope.run, self._work, tell)
        self._thread = threading.Thread(target=work, name=_THREAD, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the run as soon as what it waits for lets it; wait for nothing."""
        self._brake.pull()
        if not self._has_ended:
            leave_behind(self._thread)

    def _work(self, tell: Callable[[_Told], None]) -> None:
        try:
            with closing(self._events):
                for event in self._events:
                    tell(event)
            self._has_ended = True
            tell(None)
        except BaseException as fault:
            self._has_ended = True
            tell(fault)


def _iterated(run: _Run) -> Generator[Event, None, None]:
    queue: SimpleQueue[_Told] = SimpleQueue()
    run.start(queue.put)
    try:
        while (event := _event_of(queue.get())) is not None:
            yield event
    finally:
        run.stop()


async def _aiterated(run: _Run, pause_s: float | None) -> AsyncGenerator[Event | None, None]:
    queue: asyncio.Queue[_Told] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(event: _Told) -> None:
        with suppress(RuntimeError):  # The loop is closed: no caller listens any more.
            loop.call_soon_threadsafe(queue.put_nowait, event)

    run.start(tell)
    try:
        while True:
            try:
                event = _event_of(await asyncio.wait_for(queue.get(), pause_s))
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event
    finally:
        run.stop()


def _event_of(item: _Told) -> Event | None:
    if isinstance(item, BaseException):
        raise item
    return item


def _events(asked: Any, context: Context, brake: Brake, prices: Prices | None) -> Generator[Event, None, None]:
    graph = graph_of(context.workflow)
    start = time.perf_counter()
    chunks: Any = graph.stream(
        asked,
        {"callbacks": [brake]},
        context=context,
        stream_mode=["tasks", "messages", "custom", "values"],
        output_keys=graph.output_channels,
        subgraphs=True,
    )
    telling = _Telling()
    state: dict[str, Any] = {}
    with closing(chunks):
        for within, mode, chunk in chunks:
            if within:  # What the nodes of a subgraph say of their work, and no more.
                if mode == "custom":
                    yield _progress(chunk)
            elif mode == "values":
                state = chunk
            else:
                yield from telling.about(mode, chunk)
    result = result_of(state, (time.perf_counter() - start) * 1000, prices)
    yield from telling.rest_of(result["answer"] or "")
    yield Answered(result)


_AROUND_REFUSALS = " \t\n.*_>#"


class _Telling:
    """The events of a run's stream."""

    def __init__(self) -> None:
        self._attempts: Counter[str] = Counter()
        self._unheard: set[str] = set()
        self._last = ""
        self._requests: dict[str, str | None] = {}
        self._spoken = ThinkFilter()
        self._said: list[str] = []
        self._held = ""

    def about(self, mode: str, chunk: Any) -> Iterator[Event]:
        """Tell of one chunk of the modes ``tasks``, ``custom`` and ``messages``."""
        if mode == "messages":
            message, metadata = chunk
            # A reply with half of a surrogate pair is refused once it is whole; until then it has to be printable.
            text = str(message.text).encode("utf-8", "replace").decode()
            yield from self._words(metadata["langgraph_node"], message.id, text)
        elif mode == "custom":
            yield from self._told(_progress(chunk))
        elif "input" in chunk and chunk["name"] not in FANNED_OUT:
            self._unheard.add(chunk["name"])
            yield self._start(chunk["name"])

    def rest_of(self, answer: str) -> Iterator[Event]:
        """Tell what no stream told of the answer, which may be all; start over where it told something else."""
        said = "".join(self._said)
        if is_same_but_citations(said, answer):
            return
        if not answer.startswith(said):
            yield self._start_over(self._last)
            said = ""
        if answer not in (said, REFUSAL):
            yield Token(answer[len(said) :])

    def _told(self, progress: Progress) -> Iterator[Event]:
        """A node that says again that it starts is tried again after a fault of the endpoint."""
        if progress.event != "started" or progress.node not in self._attempts:
            yield progress
        elif progress.node in self._unheard:
            self._unheard.remove(progress.node)
        else:
            yield self._start(progress.node)

    def _words(self, node: str, request: str | None, text: str) -> Iterator[Event]:
        if self._requests.setdefault(node, request) != request:
            yield self._start(node)
            self._requests[node] = request
        if node != ANSWERING:
            return
        swallowed = self._spoken.swallowed
        words = self._spoken.feed(text)
        if self._said and self._spoken.swallowed and not swallowed:
            yield self._start_over(node)
        self._held += words
        if self._held and not REFUSAL.casefold().startswith(self._held.strip(_AROUND_REFUSALS).casefold()):
            self._said.append(self._held)
            yield Token(self._held)
            self._held = ""

    def _start(self, node: str) -> NodeStarted:
        self._attempts[node] += 1
        self._requests.pop(node, None)
        self._spoken = ThinkFilter(thinks_first=self._spoken.swallowed)
        return self._start_over(node)

    def _start_over(self, node: str) -> NodeStarted:
        self._last, self._said, self._held = node, [], ""
        return NodeStarted(node, self._attempts[node])


def _progress(chunk: Any) -> Progress:
    """The event that a node wrote to the custom stream; anything but ``{"node", "event", ...}`` goes in whole."""
    if isinstance(chunk, Mapping) and "node" in chunk and "event" in chunk:
        details = {key: value for key, value in chunk.items() if key not in ("node", "event")}
        return Progress(str(chunk["node"]), str(chunk["event"]), details)
    return Progress("", "custom", {"value": chunk})
