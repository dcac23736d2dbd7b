"""The state of a process that serves questions, beside its site: its places, its figures, and whether it is ready.

A server that is asked more than it can answer would otherwise make everybody wait for ever longer, until each of them
has gone before the answer is there. Refusing at once is cheap, and what is let in is answered in time.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from graph.errors import MaraError
from graph.server_clients import serves_clients
from workflows.access.key_file import OWN_WORKSPACE
from workflows.runtime.fresh_generations import LOOK_EVERY_S
from workflows.runtime.own_run import on_its_own
from workflows.runtime.resources import FRESH_GENERATIONS, INDEX_POOL, OFFLINE, chat_model_name
from workflows.serving.metrics import Metrics
from workflows.settings.mara import Context

ASKED_OF_MODEL = 32
"""Questions that a worker has under way where a chat model answers: they wait for it most of their time."""

PATIENCE_S = 5.0
WAITING_PER_PLACE = 4
RETRY_AFTER_S = 5
"""Seconds after which a refused caller is told to come back."""


STARTING, READY, DRAINING = "starting", "ready", "draining"
_AGAIN_AFTER_S = 5.0
_ENDING_S = 5.0

_LOG = logging.getLogger(__name__)


class Overloaded(MaraError):
    """The server has as many questions as it takes.

    Attributes:
        status: the HTTP status to answer with.
    """

    status = 429

    def __init__(self) -> None:
        super().__init__("The server has as many questions as it takes", f"Ask again in {RETRY_AFTER_S} seconds")


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
    """

    def __init__(
        self,
        at_once: int,
        waiting: int | None = None,
        patience_s: float = PATIENCE_S,
        on_change: Callable[[int, int], None] = lambda at_work, waiting: None,
    ) -> None:
        self.at_once = at_once
        self.most_waiting = WAITING_PER_PLACE * at_once if waiting is None else waiting
        self.at_work = self.waiting = 0
        self._free = asyncio.Semaphore(at_once)
        self._patience_s = patience_s
        self._on_change = on_change

    @property
    def is_full(self) -> bool:
        """Whether the next question is refused at once."""
        return self.at_work >= self.at_once and self.waiting >= self.most_waiting

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Work on a question within the block. Raises Overloaded where too many wait already, or it took too long."""
        await self._take()
        try:
            yield
        finally:
            self._free.release()
            self._count(at_work=-1)

    async def _take(self) -> None:
        if self.is_full:
            raise Overloaded
        self._count(waiting=1)
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            raise Overloaded from None
        finally:
            self._count(waiting=-1)
        self._count(at_work=1)

    def _count(self, at_work: int = 0, waiting: int = 0) -> None:
        self.at_work += at_work
        self.waiting += waiting
        self._on_change(self.at_work, self.waiting)


class Service:
    """A process that serves questions.

    Args:
        at_once: questions at work; None: `ASKED_OF_MODEL` where a chat model answers, else by cores.
        workers: how many such processes share the machine.
    """

    def __init__(self, at_once: int | None = None, workers: int = 1) -> None:
        self.metrics = Metrics()
        self._at_once = at_once
        self._workers = workers
        INDEX_POOL.sharing = workers
        self._generation: int | None = None
        self._own = Path()
        self._is_warm = False
        self._is_draining = False
        self._ends_at = 0.0
        self._trouble = ""

    @cached_property
    def places(self) -> Places:
        """The places for questions."""
        own = places_by_cores(self._workers) if chat_model_name(Context()) == OFFLINE else ASKED_OF_MODEL
        return Places(self._at_once or own, on_change=self.metrics.load)

    @property
    def state(self) -> str:
        """Whether it is starting, ready or draining."""
        if self._is_draining:
            return DRAINING
        return READY if self._is_warm else STARTING

    def told(self) -> dict[str, Any]:
        """Return the state in JSON, with the generation that answers, and the kind of what keeps a newer one away."""
        return {"state": self.state, "generation": self._generation, "trouble": self._trouble or None}

    def drain(self, within_s: float = 0.0) -> None:
        """Say that no more questions should come, and how long those under way may take."""
        self._is_draining = True
        self._ends_at = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        """The seconds that questions under way may still take."""
        return max(0.0, self._ends_at - time.monotonic())

    @contextmanager
    def kept_open(self, root: Path) -> Iterator[None]:
        """Open a workspace, and every new generation of those that are asked, in the background within the block.

        Args:
            root: the absolute path of the server's own workspace; it is ready once that answers.
        """
        self._own = root
        ended = threading.Event()
        with FRESH_GENERATIONS.watched(self):
            opening = threading.Thread(target=self._keep_open, args=(ended,), name="opening", daemon=True)
            opening.start()
            try:
                yield
            finally:
                ended.set()
                # A process whose threads are within compiled code as it ends can end by a signal.
                opening.join(_ENDING_S)

    def open_own(self) -> None:
        """Open the server's own workspace and ask it once, where it can be asked."""
        try:
            self.warm_up(self._own)
        except Exception as fault:
            self._trouble = type(fault).__name__
            if not isinstance(fault, MaraError | OSError):
                _LOG.exception("The workspace cannot be opened", exc_info=fault)
        else:
            self._is_warm = True

    def warm_up(self, root: Path) -> None:
        """Ask once, without a model and unseen, so that the first question finds everything open and compiled."""
        from langsmith import tracing_context

        from workflows.answering import ask

        with tracing_context(enabled=False):
            on_its_own(ask, "Which?", Context(workspace=self._name_of(root), model=OFFLINE).within({}))

    def begun(self, root: Path, generation: int) -> None:
        """Note the generation that questions to a workspace begin with."""
        if root == self._own:
            self._generation, self._trouble = generation, ""

    def unopened(self, root: Path, fault: Exception) -> None:
        """Note that a new generation cannot be opened."""
        if root == self._own:
            self._trouble = type(fault).__name__

    def _name_of(self, root: Path) -> str:
        """Return what a run's settings call a workspace; a LangGraph server knows no paths."""
        if not serves_clients():
            return str(root)
        return OWN_WORKSPACE if root == self._own else root.name

    def _keep_open(self, ended: threading.Event) -> None:
        self.metrics.start()
        while not ended.is_set():
            if not self._is_warm:
                self.open_own()
            else:
                FRESH_GENERATIONS.look()
            ended.wait(LOOK_EVERY_S if self._is_warm else _AGAIN_AFTER_S)
