"""The errors of the whole project: one root, each with a message that says what to do.

Shortages of memory, of a disk and of open files are reported as such, not as damage of what could not be read.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal


class MaraError(RuntimeError):
    """Root of every error this project raises on purpose.

    Attributes:
        exit_code: what the command line exits with.
        hint: what to do about it; empty when the message already says so.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint

    def reword(self, words: Callable[[str], str]) -> None:
        """Put other words in place of the message and the hint, for a reader who may not see all that they tell."""
        MaraError.__init__(self, words(self.message), words(self.hint))

    @property
    def kind(self) -> str:
        """The name of the error in JSON output and in the state's ``errors``."""
        return type(self).__name__


class BadInput(MaraError, ValueError):
    """An input cannot be used: a file, a line, a question, a setting."""

    exit_code = 2


class WorkspaceMissing(BadInput):
    """There is no workspace at that place, or it holds no passage yet."""


class EmbeddingMismatch(BadInput):
    """The workspace was written by another embedding model than the one configured."""


class NotInSchema(BadInput):
    """A node or an edge is not as the schema of the relationship graph declares it."""


class MissingEndpoint(BadInput):
    """A node that an edge of the relationship graph is to link is not there."""


class DependencyMissing(BadInput):
    """An optional package is needed for what was asked and is not installed."""


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import packages of an extra within the block. Raises DependencyMissing where one cannot be loaded.

    Args:
        extra: of mara's package.
        what: needs them.
    """
    try:
        yield
    except ImportError as fault:
        hint = f"Install them: pip install 'mara-rag[{extra}]'"
        raise DependencyMissing(f"{what} needs packages that cannot be loaded ({fault})", hint) from fault


class NoAccess(MaraError):
    """The key of a request is unknown, or does not permit the request.

    Attributes:
        status: the HTTP status to answer with: 401 where the key is unknown, 403 where it does not permit the request.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "", *, status: Literal[401, 403] = 403) -> None:
        super().__init__(message, hint)
        self.status = status


class ServiceUnavailable(MaraError):
    """A model or a server that the run needs does not answer as it should."""

    exit_code = 3


class ModelUnavailable(ServiceUnavailable):
    """The chat or embedding endpoint refused the request, or cannot be used at all.

    Attributes:
        status: the HTTP status it answered with; 0 without an answer.
    """

    def __init__(self, message: str, hint: str = "", *, status: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status


TransportCause = Literal["rate limit", "server error", "timeout", "connection", "broken reply"]


class TransportFault(ModelUnavailable):
    """The endpoint could not be reached, was busy or broke off: worth another try.

    Attributes:
        cause: what went wrong; "rate limit" is status 429.
        retry_after_s: how long the endpoint asks to wait, 0 or more seconds; None where it does not say.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        status: int = 0,
        cause: TransportCause = "broken reply",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint, status=status)
        self.cause = cause
        self.retry_after_s = retry_after_s


class SlowReply(TransportFault):
    """The chat endpoint sent no token for longer than it may, or no reply where it cannot stream."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint, cause="timeout")


class BudgetSpent(MaraError):
    """Nothing is left of what one question may take: its seconds, its model calls or its tokens."""


class StoreUnavailable(ServiceUnavailable):
    """The Chroma server that holds the vectors does not answer."""


class RecordUnavailable(ServiceUnavailable):
    """The Postgres server that holds the record does not answer, or refuses."""


class GraphUnavailable(ServiceUnavailable):
    """The graph server does not answer, or refuses."""


class OutOfResources(MaraError):
    """The machine gives the process no more memory, or no more open files."""


class DiskFull(OutOfResources):
    """A disk, or a database's disk, takes no more."""

    exit_code = 6


class WorkspaceDamaged(MaraError):
    """The workspace cannot be read, or was written in a format this version does not know."""

    exit_code = 4


class WorkspaceLocked(MaraError):
    """Another process is writing to the workspace."""

    exit_code = 4


class MalformedReply(MaraError, ValueError):
    """A model's reply is not what it was asked for.

    Attributes:
        reason: what is wrong with it, in words that can be fed back to the model.
        raw: the reply as it came.
    """

    def __init__(self, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.raw = raw


def faults_behind(fault: BaseException) -> Iterator[BaseException]:
    """Yield a fault and those that it comes from, the nearest first."""
    each: BaseException | None = fault
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__


_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAID_FULL = re.compile(r"database or disk is full|[0-9]+ requested and [0-9]+ written")
"""The words of SQLite and numpy for a full disk; neither gives the system's number."""

_FILES_TRIED = 32


def shortage_behind(fault: BaseException) -> OutOfResources | None:
    """Return the shortage that a fault comes from; None where it comes from something else.

    SQLite and Chroma do not tell why they cannot open a file: whether a few more can be opened is tried.
    """
    behind = list(faults_behind(fault))
    if any(isinstance(each, MemoryError) or getattr(each, "errno", None) == errno.ENOMEM for each in behind):
        return out_of_memory()
    if any(_is_of_a_full_disk(each) for each in behind):
        return disk_full()
    if any(getattr(each, "errno", None) in _OUT_OF_FILES for each in behind) or not _can_open_files():
        return _out_of_files()
    return None


def check_files() -> None:
    """Raise OutOfResources where hardly any files can be opened: Chroma panics then."""
    if not _can_open_files():
        raise _out_of_files()


def _out_of_files() -> OutOfResources:
    return OutOfResources("This process may open no more files", "Raise the limit (`ulimit -n`), or run less at once")


def _is_of_a_full_disk(fault: BaseException) -> bool:
    """Tell whether a disk takes no more: by number, by words, or as SQLite finds no room for the index of its log."""
    is_index = getattr(fault, "sqlite_errorname", "") == "SQLITE_IOERR_SHMSIZE"
    return is_index or getattr(fault, "errno", None) in _FULL or _SAID_FULL.search(str(fault)) is not None


def out_of_memory() -> OutOfResources:
    """Return the error of a process that gets no more memory."""
    return OutOfResources("There is not enough memory", "Raise the limit (`ulimit -v`), or run it on a larger machine")


def disk_full(place: str = "the disk") -> DiskFull:
    """Return the error of a place that takes no more."""
    return DiskFull(f"There is no room left on {place}", "Make some, and run it again: what was committed is kept")


def _can_open_files() -> bool:
    opened: list[int] = []
    try:
        for _ in range(_FILES_TRIED):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as fault:
        return fault.errno not in _OUT_OF_FILES
    finally:
        for each in opened:
            with suppress(OSError):
                os.close(each)
    return True
