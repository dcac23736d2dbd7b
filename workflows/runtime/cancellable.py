"""Work that Ctrl-C ends promptly, whatever it waits for."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 2.0
"""The time that work may take to stop before it is left behind."""

_LEFT: list[threading.Thread] = []


def interruptibly(work: Callable[[], T], stop: Callable[[], None]) -> T:
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


def in_a_thread(work: Callable[[], T], name: str) -> tuple[threading.Thread, Future[T]]:
    """Begin some work in a thread of that name, in a copy of the caller's context; it keeps no process alive."""
    outcome: Future[T] = Future()
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


def _settle(outcome: Future[T], work: Callable[[], T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)


def _await(outcome: Future[T]) -> None:
    try:
        outcome.exception(PATIENCE_S)
    except TimeoutError:
        return
