"""The questions that a worker answers: each goes on without the window that asked it, and any window may follow it.

Their events are kept where the conversations are, so that every worker may tell of them. One thread of a worker
does that for all its runs, a few times a second; it finds there, too, what happened to the turns that windows follow,
and which of its runs were stopped, whichever worker was told so.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from agents.roles import Turn
from workflows.conversation.kept import (
    ANSWERED,
    CUT,
    FAILED,
    RUNNING,
    STOPPED,
    TOUCHED_EVERY_S,
    Conversations,
    KeptTurn,
    NoConversation,
    Report,
)
from workflows.runtime.history import erase_own_conversation
from workflows.serving.page.turns import Draft, Drawn, event, shown
from workflows.settings.mara import Context
from workflows.streaming import Answered, aask_stream

if TYPE_CHECKING:
    from workflows.serving.service import Service

PULSE_S = 0.2
"""How often news is kept and looked for."""

_ENDING_S = 2.0
_NO_EVENTS = sys.maxsize

_Kind = TypeVar("_Kind", bound="_Watched")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a visitor asks it.

    Attributes:
        store: where its turn is kept.
        keep: keeps the turn; returns it, and the turns before it that count.
        context: its settings.
        tell: returns what visitors may be told of an error.
    """

    store: Conversations
    keep: Callable[[], tuple[KeptTurn, Sequence[Turn]]]
    context: Context
    tell: Callable[[Exception], str]


class Runs:
    """The runs of a worker, and those who follow any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._runs: set[_Run] = set()
        self._followers: set[_Follower] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, question: Question, service: Service) -> KeptTurn:
        """Begin to answer a question in a place of the worker's, and return its turn; the run outlives the caller.

        Raises:
            Overloaded: there is no place; nothing is kept then.
            MaraError: the turn cannot be kept.
        """
        begun: asyncio.Future[KeptTurn] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._answer(question, service, begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(begun)

    async def follow(self, store: Conversations, owner: str, turn: KeptTurn, position: int = 0) -> AsyncIterator[str]:
        """Tell what happens to a turn from an event on, as server-sent events, the last of which says how it ended.

        Leaving the iterator ends nothing.
        """
        yield event("begun", turn=shown(turn))
        follower, state, drawn = _Follower(store, turn.id, 0), RUNNING, Drawn(position)
        with self._watching(self._followers, follower):
            while state == RUNNING:
                try:
                    state, events = await asyncio.wait_for(follower.heard.get(), TOUCHED_EVERY_S)
                except TimeoutError:
                    yield ": at work\n\n"
                    continue
                for each in drawn.told(events):
                    yield f"data: {each}\n\n"
        try:
            ended, version = await to_thread(store.ended, owner, turn.id)
        except NoConversation:
            yield event("gone")
        else:
            yield event("ended", turn=shown(ended), version=version)

    async def end(self, within_s: float) -> None:
        """Let the runs end for some seconds at most, and say of the others that they were cut."""
        if not self._tasks:
            return
        _, under_way = await asyncio.wait([*self._tasks], timeout=within_s)
        at_work = {each.task: each for each in self._runs}
        for task in under_way:
            if task in at_work:
                at_work[task].stop()
            else:  # It waits for a place.
                task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=_ENDING_S)

    async def _answer(self, question: Question, service: Service, begun: asyncio.Future[KeptTurn]) -> None:
        try:
            async with service.places.place():
                turn, turns = await to_thread(question.keep)
                begun.set_result(turn)
                await self._run(turn, turns, question, service)
        except asyncio.CancelledError:
            begun.cancel()
        except Exception as fault:
            if begun.done():
                _LOG.exception("A question under way cannot be kept", exc_info=fault)
            else:
                begun.set_exception(fault)

    async def _run(self, turn: KeptTurn, turns: Sequence[Turn], question: Question, service: Service) -> None:
        run, draft = _Run(question.store, turn.id), Draft()
        with self._watching(self._runs, run):
            try:
                async with aclosing(aask_stream(turn.question, question.context, turns)) as events:
                    async for run_event in events:
                        if isinstance(run_event, Answered):
                            run.end(ANSWERED, result=run_event.result)
                            service.metrics.answered(run_event.result)
                        else:
                            run.tell([*draft.events_of(run_event)], draft.text)
            except asyncio.CancelledError:  # Of a turn that was stopped, nothing more is kept.
                run.end(CUT)
            except Exception as fault:
                service.metrics.failed(fault)
                run.end(FAILED, error=question.tell(fault))
            self._wake.set()
            is_there = await run.is_kept
        if not is_there and not await to_thread(question.store.turns, turn.conversation):
            # The conversation was deleted, maybe before the run wrote to the history.
            await to_thread(erase_own_conversation, question.context)

    @contextmanager
    def _watching(self, group: set[_Kind], each: _Kind) -> Iterator[None]:
        """Have the pulse look after a run, or a window that follows one, within the block."""
        with self._lock:
            group.add(each)
            if self._thread is None:
                self._thread = threading.Thread(target=self._pulses, name="runs", daemon=True)
                self._thread.start()
        self._wake.set()
        try:
            yield
        finally:
            with self._lock:
                group.discard(each)

    def _pulses(self) -> None:
        while True:
            self._wake.wait(PULSE_S)
            self._wake.clear()
            with self._lock:
                runs, followers = [*self._runs], [*self._followers]
                if not runs and not followers:
                    self._thread = None
                    return
            try:
                for store in {each.store for each in (*runs, *followers)}:
                    _pulse(store, [each for each in runs if each.store == store])
                    _listen(store, [each for each in (*runs, *followers) if each.store == store])
            except Exception as fault:
                _LOG.exception("The questions under way cannot be kept: it is tried again", exc_info=fault)
                time.sleep(PULSE_S)


def _pulse(store: Conversations, runs: Sequence[_Run]) -> None:
    """Keep what is new of runs."""
    reports = [(run, report) for run in runs if (report := run.report())]
    if reports:
        store.tell(*(report for _, report in reports))
    for run, report in reports:
        run.kept(report)


def _listen(store: Conversations, watched: Sequence[_Watched]) -> None:
    """Tell each what is new of its turn."""
    news = store.follow((each.turn, each.position) for each in watched)
    for each, (state, events) in zip(watched, news, strict=True):
        each.hear(state, events)


class _Watched:
    """A run or a window that has to hear of a turn, in an event loop.

    Attributes:
        store: where the turn is kept.
        turn: its id.
        position: of the next event to hear.
    """

    def __init__(self, store: Conversations, turn: str, position: int) -> None:
        self.store, self.turn, self.position = store, turn, position
        self._loop = asyncio.get_running_loop()

    def hear(self, state: str, events: Sequence[str]) -> None:
        """Take in the state of the turn, empty where it was deleted, and its next events."""
        raise NotImplementedError

    def _soon(self, act: Callable[..., Any], *values: Any) -> None:
        with suppress(RuntimeError):  # The loop is closed: no window listens any more.
            self._loop.call_soon_threadsafe(act, *values)


class _Follower(_Watched):
    """A window that follows a turn.

    Attributes:
        heard: what is new of it: its state and events.
    """

    def __init__(self, store: Conversations, turn: str, position: int) -> None:
        super().__init__(store, turn, position)
        self.heard: asyncio.Queue[tuple[str, Sequence[str]]] = asyncio.Queue()

    def hear(self, state: str, events: Sequence[str]) -> None:
        """Queue what is new."""
        if events or state != RUNNING:
            self.position += len(events)
            self._soon(self.heard.put_nowait, (state, events))


class _Run(_Watched):
    """A turn that the current task answers.

    Attributes:
        task: the current one.
        is_kept: done once it has ended and that is kept: whether the turn is still there.
    """

    def __init__(self, store: Conversations, turn: str) -> None:
        super().__init__(store, turn, _NO_EVENTS)
        self.is_kept: asyncio.Future[bool] = self._loop.create_future()
        self.task = asyncio.current_task()
        self._lock = threading.Lock()
        self._report = Report(turn)
        self._events: list[Mapping[str, Any]] = []
        self._n_sent = 0
        self._kept_at = time.monotonic()
        self._has_ended = self._is_stopped = False

    def stop(self) -> None:
        """End the task, unless the turn has ended."""
        if self.task and self._report.state == RUNNING and not self._is_stopped:
            self._is_stopped = True
            self.task.cancel()

    def tell(self, events: Iterable[Mapping[str, Any]], answer: str) -> None:
        """Note what happened; tokens in a row are one event."""
        with self._lock:
            for each in events:
                last = self._events[-1] if len(self._events) > self._n_sent else None
                if last and last["kind"] == each["kind"] == "token":
                    self._events[-1] = {**last, "text": last["text"] + each["text"]}
                else:
                    self._events.append(each)
            self._report = replace(self._report, answer=answer)

    def end(self, state: str, result: Mapping[str, Any] | None = None, error: str = "") -> None:
        """Note how the turn ended."""
        with self._lock:
            self._report = replace(self._report, state=state, result=result, error=error)

    def report(self) -> Report | None:
        """Return what is to be kept now, if anything is."""
        with self._lock:
            is_silent = not self._events and self._report.state == RUNNING
            if is_silent and time.monotonic() - self._kept_at < TOUCHED_EVERY_S:
                return None
            self._n_sent = len(self._events)
            return replace(self._report, events=tuple(self._events))

    def kept(self, report: Report) -> None:
        """Note that a report is kept."""
        with self._lock:
            del self._events[: len(report.events)]
            self._n_sent = 0
            self._report = replace(self._report, first=report.first + len(report.events))
            self._kept_at = time.monotonic()
            self._has_ended = report.state != RUNNING

    def hear(self, state: str, events: Sequence[str]) -> None:
        """End the task where the turn was stopped or deleted."""
        if self._has_ended:
            self._soon(self._settle, bool(state))
        elif state in ("", STOPPED):
            self._soon(self.stop)

    def _settle(self, is_there: bool) -> None:
        if not self.is_kept.done():
            self.is_kept.set_result(is_there)
