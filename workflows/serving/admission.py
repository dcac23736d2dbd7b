"""Which questions a server works on: a few at once, a few more that wait a little, and the others are refused.

A server that is asked more than it can answer would otherwise make everybody wait for ever longer, until each of them
has gone before the answer is there. Refusing at once is cheap, and what is let in is answered in time.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from graph.errors import MaraError

ASKED_OF_MODEL = 32
"""Questions that a worker has under way where a chat model answers: they wait for it most of their time."""

PATIENCE_S = 5.0
_WAITING_PER_PLACE = 4
_LONGEST_RETRY_S = 60


class Overloaded(MaraError):
    """The server has as many questions as it takes.

    Attributes:
        status: the HTTP status to answer with.
        retry_after_s: whole seconds after which asking again is worth a try.
    """

    status = 429

    def __init__(self, retry_after_s: int = 1) -> None:
        super().__init__("The server has as many questions as it takes", f"Ask again in {_seconds(retry_after_s)}")
        self.retry_after_s = retry_after_s


class Gone(Exception):
    """Whoever asked has gone before it was their turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of what is asked a worker takes.

    Attributes:
        at_once: questions at work.
        waiting: questions that wait for their turn.
        patience_s: how long one may wait.
    """

    at_once: int
    waiting: int
    patience_s: float = PATIENCE_S

    @classmethod
    def of(cls, at_once: int | None, *, workers: int, asks_model: bool) -> Limits:
        """Return the limits of a worker.

        Args:
            at_once: questions at work; None: by cores where this machine does all the work, else `ASKED_OF_MODEL`.
            workers: how many workers share the machine.
            asks_model: whether a chat model answers.
        """
        cores = max(1, math.ceil((os.cpu_count() or 1) / workers))
        places = at_once or (ASKED_OF_MODEL if asks_model else cores)
        return cls(places, _WAITING_PER_PLACE * places)


class Admission:
    """The places of a worker. For one event loop; whoever holds a place gives it back as they leave the block.

    Args:
        limits: how many places there are.
        clock: seconds, from any moment on.
        on_change: is called with how many are at work and how many wait, whenever that changes.
    """

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float] | None = None,
        on_change: Callable[[int, int], None] = lambda at_work, waiting: None,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._on_change = on_change
        self._at_work = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._took_s = 0.0

    @property
    def at_work(self) -> int:
        """Questions at work."""
        return self._at_work

    @property
    def waiting(self) -> int:
        """Questions that wait for their turn."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether the next question is refused at once."""
        return self._at_work >= self.limits.at_once and self.waiting >= self.limits.waiting

    def refusal(self) -> Overloaded:
        """Return what a refused question is told: to come back when those before it will be done."""
        ahead = (self._at_work + self.waiting) / self.limits.at_once
        return Overloaded(max(1, min(_LONGEST_RETRY_S, math.ceil(ahead * self._took_s))))

    @asynccontextmanager
    async def place(self, gone: asyncio.Future[None] | None = None) -> AsyncIterator[None]:
        """Work on a question within the block.

        Args:
            gone: done once whoever asked has gone; they wait no longer then.

        Raises:
            Overloaded: too many wait already, or it took too long.
            Gone: whoever asked has gone.
        """
        await self._take(gone)
        start = self._now()
        try:
            yield
        finally:
            # Of the last ten or so: a model that got slow is noticed, a single long answer hardly.
            self._took_s += (self._now() - start - self._took_s) / 10
            self._give_back()

    async def _take(self, gone: asyncio.Future[None] | None) -> None:
        if self._at_work < self.limits.at_once:
            self._at_work += 1
            self._tell()
            return
        if self.is_full:
            raise self.refusal()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        self._tell()
        awaited = {turn} if gone is None else {turn, gone}
        try:
            await asyncio.wait(awaited, timeout=self.limits.patience_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._leave(turn)
            raise
        if turn.done() and not (gone is not None and gone.done()):
            return
        self._leave(turn)
        raise Gone if gone is not None and gone.done() else self.refusal()

    def _leave(self, turn: asyncio.Future[None]) -> None:
        """Wait no longer; a place that was just given goes to the next one."""
        if turn.done():
            self._give_back()
        else:
            turn.cancel()
            self._queue.remove(turn)
            self._tell()

    def _give_back(self) -> None:
        """Let the next one in, or have one place more."""
        if self._queue:
            self._queue.popleft().set_result(None)
        else:
            self._at_work -= 1
        self._tell()

    def _tell(self) -> None:
        self._on_change(self._at_work, len(self._queue))

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()


def _seconds(number: int) -> str:
    return "a second" if number == 1 else f"{number} seconds"
