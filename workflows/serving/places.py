"""Which questions a server works on: a few at once, a few more that wait a little, and the others are refused.

A server that is asked more than it can answer would otherwise make everybody wait for ever longer, until each of them
has gone before the answer is there. Refusing at once is cheap, and what is let in is answered in time.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from graph.errors import MaraError

ASKED_OF_MODEL = 32
"""Questions that a worker has under way where a chat model answers: they wait for it most of their time."""

PATIENCE_S = 5.0
WAITING_PER_PLACE = 4
_LONGEST_RETRY_S = 60


class Overloaded(MaraError):
    """The server has as many questions as it takes.

    Attributes:
        status: the HTTP status to answer with.
        retry_after_s: whole seconds after which asking again is worth a try.
    """

    status = 429

    def __init__(self, retry_after_s: int = 1) -> None:
        seconds = "a second" if retry_after_s == 1 else f"{retry_after_s} seconds"
        super().__init__("The server has as many questions as it takes", f"Ask again in {seconds}")
        self.retry_after_s = retry_after_s


def places_by_cores(workers: int) -> int:
    """Return how many questions one of several workers has at work where this machine does all the work."""
    return max(1, math.ceil((os.cpu_count() or 1) / workers))


class Places:
    """The places of a worker, for one event loop.

    Args:
        at_once: questions at work.
        waiting: questions that wait for their turn; None: `WAITING_PER_PLACE` for each place.
        patience_s: how long one may wait.
        on_change: is called with how many are at work and how many wait, whenever that changes.
        clock: seconds, from any moment on.
    """

    def __init__(
        self,
        at_once: int,
        waiting: int | None = None,
        patience_s: float = PATIENCE_S,
        on_change: Callable[[int, int], None] = lambda at_work, waiting: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.at_once = at_once
        self.most_waiting = WAITING_PER_PLACE * at_once if waiting is None else waiting
        self.at_work = self.waiting = 0
        self._free = asyncio.Semaphore(at_once)
        self._patience_s = patience_s
        self._on_change = on_change
        self._clock = clock
        self._took_s = 0.0

    @property
    def is_full(self) -> bool:
        """Whether the next question is refused at once."""
        return self.at_work >= self.at_once and self.waiting >= self.most_waiting

    def refusal(self) -> Overloaded:
        """Return what tells a refused caller to come back when the questions before theirs will be done."""
        ahead = (self.at_work + self.waiting) / self.at_once
        return Overloaded(max(1, min(_LONGEST_RETRY_S, math.ceil(ahead * self._took_s))))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Work on a question within the block. Raises Overloaded where too many wait already, or it took too long."""
        await self._take()
        start = self._clock()
        try:
            yield
        finally:
            # Of the last ten or so: a model that got slow is noticed, a single long answer hardly.
            self._took_s += (self._clock() - start - self._took_s) / 10
            self._free.release()
            self._count(at_work=-1)

    async def _take(self) -> None:
        if self.is_full:
            raise self.refusal()
        self._count(waiting=1)
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            raise self.refusal() from None
        finally:
            self._count(waiting=-1)
        self._count(at_work=1)

    def _count(self, at_work: int = 0, waiting: int = 0) -> None:
        self.at_work += at_work
        self.waiting += waiting
        self._on_change(self.at_work, self.waiting)
