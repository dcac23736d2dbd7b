"""The questions that a worker answers: each goes on without the window that asked it, and any window may follow it.

Their events are kept where the conversations are, so that every worker may tell of them. One task of a worker does that
for all its runs, a few times a second; it finds there, too, what happened to the turns that windows follow, and which
of its runs were stopped, whichever worker heard of that.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a visitor asks it.

    Attributes:
        keep: keeps the turn; returns it, and the turns before it that count.
        context: its settings.
        tell: returns what visitors may be told of an error.
    """

    keep: Callable[[], tuple[KeptTurn, Sequence[Turn]]]
    context: Context
    tell: Callable[[Exception], str]


class Runs:
    """The runs of a worker, and those who follow any, in one event loop.

    Args:
        store: where their turns are kept.
    """

    def __init__(self, store: Conversations) -> None:
        self._store = store
        self._runs: set[_Run] = set()
        self._followers: set[_Follower] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pulse: asyncio.Task[None] | None = None

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

    async def follow(self, owner: str, turn: KeptTurn, position: int = 0) -> AsyncIterator[str]:
        """Tell what happens to a turn from an event on, as server-sent events, the last of which says how it ended.

        Leaving the iterator ends nothing.
        """
        yield event("begun", turn=shown(turn))
        follower, state, drawn = _Follower(turn.id), RUNNING, Drawn(position)
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
            ended, version = await to_thread(self._store.ended, owner, turn.id)
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
        run, draft = _Run(turn.id), Draft()
        with self._watching(self._runs, run):
            try:
                async with aclosing(aask_stream(turn.question, question.context, turns)) as events:
                    async for run_event in events:
                        if isinstance(run_event, Answered):
                            run.tell(state=ANSWERED, result=run_event.result)
                            service.metrics.answered(run_event.result)
                        else:
                            run.tell([*draft.events_of(run_event)], answer=draft.text)
            except asyncio.CancelledError:  # Of a turn that was stopped, nothing more is kept.
                run.tell(state=CUT)
            except Exception as fault:
                service.metrics.failed(fault)
                run.tell(state=FAILED, error=question.tell(fault))
            self._wake.set()
            is_there = await run.is_kept
        if not is_there and not await to_thread(self._store.turns, turn.conversation):
            # The conversation was deleted, maybe before the run wrote to the history.
            await to_thread(erase_own_conversation, question.context)

    @contextmanager
    def _watching(self, group: set[Any], each: _Run | _Follower) -> Iterator[None]:
        """Have the pulse look after a run, or a window that follows one, within the block."""
        group.add(each)
        if self._pulse is None:
            self._wake = asyncio.Event()
            self._pulse = asyncio.create_task(self._pulses())
        self._wake.set()
        try:
            yield
        finally:
            group.discard(each)

    async def _pulses(self) -> None:
        try:
            while self._runs or self._followers:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), PULSE_S)
                self._wake.clear()
                try:
                    await self._exchange([*self._runs], [*self._followers])
                except Exception as fault:
                    _LOG.exception("The questions under way cannot be kept: it is tried again", exc_info=fault)
                    await asyncio.sleep(PULSE_S)
        finally:
            self._pulse = None

    async def _exchange(self, runs: Sequence[_Run], followers: Sequence[_Follower]) -> None:
        """Keep what is new of runs, and tell them and the followers what is new of their turns."""
        reports = {run: report for run in runs if (report := run.report())}
        if reports:
            await to_thread(self._store.tell, *reports.values())
        for run, report in reports.items():
            run.kept(report)
        positions = [*((run.turn, _NO_EVENTS) for run in runs), *((each.turn, each.position) for each in followers)]
        news = await to_thread(self._store.follow, positions)
        for run, (state, _) in zip(runs, news, strict=False):
            run.hear(state)
        for follower, (state, events) in zip(followers, news[len(runs) :], strict=True):
            follower.hear(state, events)


@dataclass(eq=False)
class _Follower:
    """A window that follows a turn.

    Attributes:
        turn: its id.
        position: of the next event to hear.
        heard: what is new of it: its state and events.
    """

    turn: str
    position: int = 0
    heard: asyncio.Queue[tuple[str, Sequence[str]]] = field(default_factory=asyncio.Queue)

    def hear(self, state: str, events: Sequence[str]) -> None:
        """Queue the state of the turn, empty where it was deleted, and its next events."""
        if events or state != RUNNING:
            self.position += len(events)
            self.heard.put_nowait((state, events))


class _Run:
    """A turn that the current task answers.

    Attributes:
        turn: its id.
        task: the current one.
        is_kept: done once it has ended and that is kept: whether the turn is still there.
    """

    def __init__(self, turn: str) -> None:
        self.turn = turn
        self.task = asyncio.current_task()
        self.is_kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._news, self._events = Report(turn), list[Mapping[str, Any]]()
        self._unkept: Report | None = None
        self._is_stopped = self._has_ended = False
        self._kept_at = time.monotonic()

    def stop(self) -> None:
        """End the task, unless the turn has ended."""
        if self.task and self._news.state == RUNNING and not self._is_stopped:
            self._is_stopped = True
            self.task.cancel()

    def tell(self, events: Sequence[Mapping[str, Any]] = (), **news: Any) -> None:
        """Note what happened, and what a report says of the turn."""
        self._events += events
        self._news = replace(self._news, **news)

    def report(self) -> Report | None:
        """Return what is to be kept now, if anything is: the same until it is kept."""
        is_silent = not self._events and self._news.state == RUNNING
        if self._has_ended or (is_silent and time.monotonic() - self._kept_at < TOUCHED_EVERY_S):
            return self._unkept
        if self._unkept is None:
            self._unkept = replace(self._news, events=tuple(self._events))
            self._events = []
        return self._unkept

    def kept(self, report: Report) -> None:
        """Note that a report is kept."""
        self._news = replace(self._news, first=report.first + len(report.events))
        self._unkept, self._kept_at = None, time.monotonic()
        self._has_ended = report.state != RUNNING

    def hear(self, state: str) -> None:
        """Take in the state of the turn: its end is kept, or it was stopped or deleted, which ends the task."""
        if self._has_ended:
            if not self.is_kept.done():
                self.is_kept.set_result(bool(state))
        elif state in ("", STOPPED):
            self.stop()
