"""The errors of the whole project: one root, each with a message that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from graph.server_clients import told


class MaraError(RuntimeError):
    """Root of every error this project raises on purpose. In a LangGraph server, it names no folder of the machine.

    Attributes:
        exit_code: what the command line exits with.
        hint: what to do about it; empty when the message already says so.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        message, hint = told(message), told(hint)
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint

    @property
    def kind(self) -> str:
        """The name of the error in JSON output and in the state's ``errors``."""
        return type(self).__name__


class BadInput(MaraError, ValueError):
    """An input cannot be used: a file, a line, a question, a setting."""

    exit_code = 2


class UnknownColumn(BadInput):
    """A field is mapped to a column or key that the documents do not have."""


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


class NoAccess(MaraError):
    """Nobody is known by the key that a request has, or who it is may not do what is asked.

    Attributes:
        status: the HTTP status to answer with: 401 where nobody is known, 403 where it is not allowed.
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
    """The Chroma or Qdrant server that holds the vectors does not answer."""


class RecordUnavailable(ServiceUnavailable):
    """The Postgres server that holds the record does not answer, or refuses."""


class GraphUnavailable(ServiceUnavailable):
    """The graph server does not answer, or refuses."""


class ClusterUnavailable(ServiceUnavailable):
    """Ray cannot be started or reached, or its processes end again and again."""


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
