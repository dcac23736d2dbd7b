"""Runs of their own: outside of the graph whose node starts them, and ended from outside once their caller is gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context

from workflows.runtime.cancellable import in_a_thread, leave_behind

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")


def on_its_own(work: Callable[Arguments, Outcome], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Outcome:
    """Do work outside of the graph whose node calls it, if any: what it runs is no subgraph of it.

    Who asks, and the trace, stay those of the caller.
    """
    inherited = (ensure_config().get("configurable") or {}).items()
    kept = {key: value for key, value in inherited if not key.startswith(("__", "checkpoint"))}
    with set_config_context(RunnableConfig(configurable=kept)) as outside:
        return outside.run(work, *args, **kwargs)


class Stopped(BaseException):
    """Ends a run whose consumer is gone; no `Exception`, so that nothing tries again or makes another error of it."""


class Brake(BaseCallbackHandler):
    """Once pulled, ends whatever is about to start or to go on; give it to a run among its callbacks."""

    run_inline = True

    def __init__(self) -> None:
        self._pulled = threading.Event()

    def pull(self) -> None:
        """Stop at the next opportunity."""
        self._pulled.set()

    def _check(self, *about: Any, **more: Any) -> None:
        if self._pulled.is_set():
            raise Stopped

    on_chain_start = _check
    on_chat_model_start = _check
    on_llm_new_token = _check


async def braked(work: Callable[[Brake], Outcome]) -> Outcome:
    """Do the work of a run in a thread of its own, in the caller's context, and return what it returns.

    Whoever is cancelled while waiting ends the run and waits for nothing; its thread keeps no process alive.
    """
    brake = Brake()
    thread, outcome = in_a_thread(lambda: work(brake), "question")
    try:
        return await asyncio.wrap_future(outcome)
    except asyncio.CancelledError:
        brake.pull()
        leave_behind(thread)
        raise
