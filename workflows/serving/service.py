"""What a process that serves questions keeps beside its site: its places, its figures, and whether it is ready."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
from workflows.serving.places import ASKED_OF_MODEL, Places, places_by_cores
from workflows.settings.mara import Context

STARTING, READY, DRAINING = "starting", "ready", "draining"
_AGAIN_AFTER_S = 5.0
_ENDING_S = 5.0

_LOG = logging.getLogger(__name__)


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

    def drain(self) -> None:
        """Say that no more questions should come."""
        self._is_draining = True

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

        from workflows.ask import ask

        with tracing_context(enabled=False):
            on_its_own(ask, "Which?", Context(workspace=self._name_of(root), model=OFFLINE).within({}))

    def begun(self, root: Path, generation: int) -> None:
        """Note the generation that questions to a workspace begin with."""
        self.metrics.generation(root.name, generation)
        if root == self._own:
            self._generation, self._trouble = generation, ""

    def closed(self, root: Path) -> None:
        """Note that a workspace made room for others."""
        self.metrics.closed(root.name)

    def unopened(self, root: Path, fault: Exception) -> None:
        """Note that a new generation cannot be opened."""
        self.metrics.unopened(fault)
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
