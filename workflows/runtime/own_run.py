"""Work in threads of its own, and runs outside of the graph whose node starts them: ended once their caller is gone."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import Any, ParamSpec, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")


def on_its_own(work: Callable[Arguments, Outcome], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Outcome:
    """Do work outside of the graph whose node calls it, if any: what it runs is no subgraph of it.

    The user and the trace stay those of the caller.
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

    A caller that is cancelled while waiting ends the run and waits for nothing; its thread keeps no process alive.
    """
    brake = Brake()
    thread, outcome = in_a_thread(lambda: work(brake), "question")
    try:
        return await asyncio.wrap_future(outcome)
    except asyncio.CancelledError:
        brake.pull()
        leave_behind(thread)
        raise


PATIENCE_S = 2.0
"""The time that work may take to stop before it is left behind."""

_LEFT: list[threading.Thread] = []


def interruptibly(work: Callable[[], Outcome], stop: Callable[[], None]) -> Outcome:
    """Do some work in a thread of its own, and return what it returns, or raise what it raises.

    Args:
        work: runs in a copy of the caller's context.
        stop: called when the caller is interrupted, to tell the work so; what does not end soon is left behind.
    """
    thread, outcome = in_a_thread(work, "interruptible")
    try:
        return outcome.result()
    except BaseException:
        if not outcome.done():
            stop()
            leave_behind(thread)
            _await(outcome)
        raise


def in_a_thread(work: Callable[[], Outcome], name: str) -> tuple[threading.Thread, Future[Outcome]]:
    """Begin some work in a thread of that name, in a copy of the caller's context; it keeps no process alive."""
    outcome: Future[Outcome] = Future()
    outcome.set_running_or_notify_cancel()
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=(_settle, outcome, work), name=name, daemon=True)
    thread.start()
    return thread, outcome


def leave_behind(thread: threading.Thread) -> None:
    """Note the thread of work that was told to stop, and may still wait for something."""
    _LEFT[:] = [*filter(threading.Thread.is_alive, _LEFT), thread]


def work_is_left_behind() -> bool:
    """Tell whether interrupted work still waits for something, and would keep the process from ending."""
    return any(thread.is_alive() for thread in _LEFT)


def _settle(outcome: Future[Outcome], work: Callable[[], Outcome]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)


def _await(outcome: Future[Outcome]) -> None:
    try:
        outcome.exception(PATIENCE_S)
    except TimeoutError:
        return
