"""The generation that the questions of a server begin with: the newest that is open and warm.

Opening a large generation takes seconds. Where somebody watches, a question begins with the one that is open, while
the new one is opened and asked once beside it; the next question begins with that. A question under way ends on the
generation that it began with: `graph.retrieve.index_pool` keeps it.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from graph.embedding.embeddings import Embedder
from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import Index
from graph.storage.workspace import Workspace

LOOK_EVERY_S = 1.0
_AGAIN_AFTER_S = 10.0

_IS_WARMING: ContextVar[bool] = ContextVar("mara_is_warming", default=False)
_Place = tuple[Path, str]
_LOG = logging.getLogger(__name__)


class Watch(Protocol):
    """Who watches the generations of a server."""

    def warm_up(self, root: Path) -> None:
        """Ask a workspace once, so that all of its index is open and compiled."""
        ...

    def begun(self, root: Path, generation: int) -> None:
        """Hear that questions to a workspace begin with a generation from now on."""
        ...

    def unopened(self, root: Path, fault: Exception) -> None:
        """Hear that a new generation cannot be opened, and the one before goes on to answer."""
        ...


@dataclass(frozen=True, slots=True)
class _Served:
    """The generation that questions to a workspace begin with."""

    embedder: Embedder
    generation: int
    index: weakref.ref[Index]


class FreshGenerations:
    """The generations that questions begin with. Safe across threads.

    Args:
        pool: has the indexes open.
        clock: seconds, from any moment on.
    """

    def __init__(self, pool: IndexPool, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._watch: Watch | None = None
        self._served: dict[_Place, _Served] = {}
        self._failed: dict[_Place, tuple[int, float]] = {}
        self._renewing = threading.Lock()

    def get(self, root: Path, embedder: Embedder) -> Index:
        """Return the index that a question begins with. Raises what `IndexPool.get` raises."""
        if self._watch is None or _IS_WARMING.get():
            return self._pool.get(root, embedder)
        place = (root.absolute(), embedder.model_id)
        served = self._served.get(place)
        index = self._pool.get(root, embedder, served.generation if served else None)
        if served is None or served.index() is not index:
            self._begin(place, embedder, index)
            if Workspace(root).current() != index.graph.generation:  # It was published while this one was opened.
                self._renew(place)
        return index

    @contextmanager
    def watched(self, watch: Watch) -> Iterator[None]:
        """Begin questions with what is warm within the block; `look` finds what is new."""
        self._watch = watch
        try:
            yield
        finally:
            self._watch = None
            self._served.clear()
            self._failed.clear()

    def look(self) -> None:
        """Open and warm up what is new in each workspace that is open, and let questions begin with it."""
        for place in [*self._served]:
            self._renew(place)

    def catch_up(self, root: Path) -> None:
        """Let questions to a workspace begin with what this process just wrote into it."""
        for place in [place for place in self._served if place[0] == root.absolute()]:
            self._failed.pop(place, None)
            self._renew(place)

    def _renew(self, place: _Place) -> None:
        root, watch = place[0], self._watch
        with self._renewing:
            served, current = self._served.get(place), Workspace(root).current()
            if served is None or watch is None:
                return
            if served.index() is None:
                del self._served[place]
                return
            if current in (None, served.generation) or self._failed_lately(place, current):
                return
            try:
                index = self._warmed(root, served.embedder, watch)
            except Exception as fault:
                self._failed[place] = (current or 0, self._clock())
                _LOG.warning("Generation %s of %s cannot be opened: %s", current, root.name, fault)
                watch.unopened(root, fault)
            else:
                self._failed.pop(place, None)
                self._begin(place, served.embedder, index)

    def _warmed(self, root: Path, embedder: Embedder, watch: Watch) -> Index:
        token = _IS_WARMING.set(True)
        try:
            index = self._pool.get(root, embedder)
            watch.warm_up(root)
        finally:
            _IS_WARMING.reset(token)
        return index

    def _begin(self, place: _Place, embedder: Embedder, index: Index) -> None:
        self._served[place] = _Served(embedder, index.graph.generation, weakref.ref(index))
        if self._watch is not None:
            self._watch.begun(place[0], index.graph.generation)

    def _failed_lately(self, place: _Place, generation: int | None) -> bool:
        failed = self._failed.get(place)
        return failed is not None and failed[0] == generation and self._clock() < failed[1] + _AGAIN_AFTER_S
