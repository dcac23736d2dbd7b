"""The sessions of this process, by run: looks them up, opens them again where they are gone, and closes them."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from weakref import WeakValueDictionary

from agents.chat.throttle import Cancelled
from workflows.indexing_run.run import Session
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import RunKey

IDLE_S = 5.0
"""A session unused for this long gives up its workspace to another run."""

STRAGGLER_S = 0.5
"""For this long after a run failed, nodes of it that start late get the same error instead of restarting it."""

_GLANCE_S = 0.05

_SESSIONS: dict[str, Session] = {}
_CANCELLED: set[str] = set()
_OPENING: WeakValueDictionary[str, Lock] = WeakValueDictionary()
"""Held by the node that looks for a run's session."""
_REGISTRY = Lock()


@contextmanager
def at_work(key: RunKey, context: IndexingContext, *, opened: bool = True) -> Iterator[Session]:
    """Lend a node its run's session. An error closes it; nodes at work beside the failing one tell the same reason."""
    session = _session_of(key, context)
    try:
        _check_not_cancelled(key["run"])
        with session.at_work():
            if opened and not session.opened:
                _close_idle(session)
                session.open()
            yield session
    except BaseException as error:
        with _REGISTRY:
            session.failure = session.failure or error
        session.close()
        if session.failure is error:
            raise
        raise session.failure from None


def close_session(run: str) -> None:
    """Close a run's session, if there is one, and forget about the run."""
    with _REGISTRY:
        _CANCELLED.discard(run)
        session = _SESSIONS.pop(run, None)
    if session is not None:
        session.close()


def cancel_session(run: str) -> None:
    """End a run: its next node fails with Cancelled, and no more requests are sent."""
    with _REGISTRY:
        _CANCELLED.add(run)
        session = _SESSIONS.get(run)
    if session is not None:
        session.cancel()


def _session_of(key: RunKey, context: IndexingContext) -> Session:
    """Return the run's session; a new one where it is gone, or the caller has other settings than it."""
    run = key["run"]
    with _REGISTRY:
        opening = _OPENING.setdefault(run, Lock())
    with opening:
        session = _SESSIONS.get(run)
        if session is not None and (session.key, session.context) == (key, context):
            if not session.closed:
                return session
            _check_not_cancelled(run)
            if session.failure is not None and time.monotonic() - session.last_used < STRAGGLER_S:
                raise session.failure
        if session is not None:
            session.close()
        session = Session(key, context)
        with _REGISTRY:
            for failed in [run for run, each in _SESSIONS.items() if each.closed]:
                del _SESSIONS[failed]
            _SESSIONS[run] = session
        _close_at_exit()
        return session


def _check_not_cancelled(run: str) -> None:
    if run in _CANCELLED:
        raise Cancelled("The run was stopped", "Run it again: what was committed is kept")


def _close_idle(newcomer: Session) -> None:
    """Close unused sessions of the same workspace: those of cancelled or paused runs."""
    place = newcomer.root.absolute()
    with _REGISTRY:
        others = [run for run, each in _SESSIONS.items() if each is not newcomer and each.root.absolute() == place]
    for run in others:
        if _falls_silent(run):
            close_session(run)


def _falls_silent(run: str) -> bool:
    """Wait until a session has been unused for `IDLE_S`, and return True; False if a node is using it."""
    session, pause = _SESSIONS.get(run), threading.Event()
    while session is not None and not session.is_busy:
        left = IDLE_S - (time.monotonic() - session.last_used)
        if left <= 0:
            return True
        pause.wait(min(left, _GLANCE_S))
    return False


@cache
def _close_at_exit() -> None:
    atexit.register(_close_all)


def _close_all() -> None:
    for run in list(_SESSIONS):
        with suppress(Exception):
            close_session(run)
