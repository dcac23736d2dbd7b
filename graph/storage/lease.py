"""The one writer of a workspace: a lease in its record, with an owner and an expiry, that every commit is fenced by.

The lease ends when it is released, when its process ends (a lock file of the system tells, or a lock of the Postgres
server, which ends with the connection), or when it was not renewed in time: a writer that hangs keeps nobody out for
ever, and if it wakes up, it commits nothing.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from graph.errors import MaraError, WorkspaceLocked
from graph.storage.place import Place, place_of
from graph.storage.record import Record

if TYPE_CHECKING:
    from graph.storage.postgres import SessionLock

LEASE_S = 300.0
"""Seconds after which a lease that was not renewed ends."""

_WRITER = "writer"
_RENEWALS = 10


@dataclass(frozen=True, slots=True)
class _Claim:
    """A lease as the record holds it; ``locked``: its process holds the lock."""

    token: str
    owner: str
    expires: float
    locked: bool

    @staticmethod
    def read(record: Record) -> _Claim | None:
        """Return the claim that a record holds; none where it holds none that can be read."""
        try:
            claim = _Claim(**json.loads(record.note(_WRITER) or "null"))
        except (ValueError, TypeError):
            return None
        return claim if isinstance(claim.expires, float | int) else None


@contextmanager
def alone(path: Path, wait_s: float, told: str, hint: str) -> Iterator[None]:
    """Let no other process or thread into such a block meanwhile. Raises WorkspaceLocked with a message and a hint."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(path, timeout=wait_s, thread_local=False):
            yield
    except Timeout as fault:
        raise WorkspaceLocked(told, hint) from fault


class _LockFile:
    """A lock on a file of this machine."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock

        self._lock = FileLock(path, timeout=0, thread_local=False)

    def acquire(self) -> bool:
        """Take the lock; False where another process holds it."""
        from filelock import Timeout

        try:
            self._lock.acquire()
        except Timeout:
            return False
        return True

    def release(self) -> None:
        """Give the lock free."""
        self._lock.release()


class Lease:
    """A writer's claim on a workspace."""

    def __init__(
        self,
        record_path: Path,
        claim: _Claim,
        lock: _LockFile | SessionLock | None,
        seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._record_path = record_path
        self._claim = claim
        self._lock = lock
        self._seconds = seconds
        self._clock = clock
        self._renewed = clock()

    def check(self, record: Record) -> None:
        """Raise WorkspaceLocked when another writer took over. Within a transaction, that cannot happen before its end.

        A commit renews the lease.
        """
        held = _Claim.read(record)
        if held is None or held.token != self._claim.token:
            who = held.owner if held else "nobody"
            raise WorkspaceLocked(
                f"This writer did not renew its lease within {self._seconds:g} s and lost the workspace to {who}",
                "Run the same command again: it resumes after the last commit",
            )
        self._store(record)

    def renew(self) -> None:
        """Say that the writer is at work; writes only now and then. Raises WorkspaceLocked when the lease was lost."""
        if self._clock() - self._renewed < self._seconds / _RENEWALS:
            return
        with Record(self._record_path) as record, record.transaction():
            self.check(record)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew it for the length of a block, which may be long and commit nothing, as long as the process runs."""
        ended = Event()

        def renew() -> None:
            while not ended.wait(self._seconds / _RENEWALS):
                # The next transaction tells what is wrong.
                with suppress(MaraError):
                    self.renew()

        thread = Thread(target=renew, name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def release(self) -> None:
        """Give the workspace free; a lease that was lost is nobody's to give."""
        try:
            with Record(self._record_path) as record, record.transaction():
                held = _Claim.read(record)
                if held is not None and held.token == self._claim.token:
                    record.set_note(_WRITER, "")
        finally:
            if self._lock is not None:
                self._lock.release()

    def _store(self, record: Record) -> None:
        self._renewed = self._clock()
        claim = replace(self._claim, expires=self._renewed + self._seconds)
        record.set_note(_WRITER, json.dumps(asdict(claim)))


def claim_lease(
    record_path: Path, lock_path: Path, seconds: float = LEASE_S, clock: Callable[[], float] | None = None
) -> Lease:
    """Become the writer.

    Args:
        record_path: the record, which exists.
        lock_path: a file that the process locks for as long as it lives and holds the lease; a record in Postgres has
            a lock of the server in its place.
        seconds: after which the lease ends when it is not renewed.
        clock: seconds since the epoch, the same for all processes; by default that of the machine, or of the server.

    Raises:
        WorkspaceLocked: another writer holds it, who is named.
        RecordUnavailable: the record is in Postgres, and the server does not answer.
    """
    place = place_of(record_path)
    clock = clock or _clock_of(place)
    file = _lock_of(place, lock_path)
    lock = file if file.acquire() else None
    try:
        with Record(record_path) as record, record.transaction():
            _refuse_if_held(_Claim.read(record), lock is not None, record_path.parent, clock())
            owner = f"process {os.getpid()} on {socket.gethostname()}"
            claim = _Claim(uuid.uuid4().hex, owner, clock() + seconds, lock is not None)
            record.set_note(_WRITER, json.dumps(asdict(claim)))
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return Lease(record_path, claim, lock, seconds, clock)


def is_locked(record_path: Path, lock_path: Path) -> bool:
    """Tell whether a living process holds the lock of a record's writer. Raises RecordUnavailable."""
    place = place_of(record_path)
    if place is None and not lock_path.exists():
        return False
    lock = _lock_of(place, lock_path)
    if not lock.acquire():
        return True
    lock.release()
    return False


def holder_of(record: Record, clock: Callable[[], float] = time.time) -> str:
    """Return who holds the lease and for how long at most; empty where nobody does, or nobody living can tell."""
    claim = _Claim.read(record)
    return f"{claim.owner}, for {max(0.0, claim.expires - clock()):.0f} s at most" if claim else ""


def _refuse_if_held(held: _Claim | None, got_lock: bool, root: Path, now: float) -> None:
    """Raise WorkspaceLocked while a lease is good: it has not expired, and its process may be alive."""
    if held is None:
        if got_lock:
            return
        raise WorkspaceLocked(f"{root} is being written by another process", "Wait until it is done, or stop it")
    dead = got_lock and held.locked
    if not dead and now < held.expires:
        raise WorkspaceLocked(
            f"{root} is being written by {held.owner}",
            f"Wait until it is done, or stop that process; its lease ends in {held.expires - now:.0f} s unless renewed",
        )


def _lock_of(place: Place | None, lock_path: Path) -> _LockFile | SessionLock:
    if place is None:
        return _LockFile(lock_path)
    from graph.storage.postgres import SessionLock

    return SessionLock(place)


def _clock_of(place: Place | None) -> Callable[[], float]:
    """Return the clock that all who write the record go by: the machine's, or the server's."""
    if place is None:
        return time.time
    from graph.storage.postgres import server_time

    ahead = server_time(place) - time.time()
    return lambda: time.time() + ahead
