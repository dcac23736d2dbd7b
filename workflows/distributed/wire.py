"""What goes between processes and machines: passages, files that were read, tasks, settings and errors, as JSON.

Nothing that is received is ever executed, as a pickle might be. Ray itself pickles what its own processes exchange.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO

from graph import errors
from graph.errors import MaraError, ModelUnavailable
from graph.own_types import OwnTypes
from graph.sources.documents import ToRead
from graph.sources.loaders.document import (
    Loaded,
    loaded_from_json,
    loaded_to_json,
    passage_from_json,
    passage_to_json,
)
from workflows.distributed.shards import ShardTask
from workflows.distributed.work import ReadTask, Work
from workflows.settings.indexing import IndexingContext


@dataclass(frozen=True, slots=True)
class Failed:
    """What a worker could not do, as it is sent."""

    kind: str
    message: str
    hint: str
    status: int = 0

    @staticmethod
    def of(error: MaraError) -> Failed:
        """Return what is sent of an error."""
        status = error.status if isinstance(error, ModelUnavailable) else 0
        return Failed(error.kind, error.message, error.hint, status)

    def remade(self) -> MaraError:
        """Return the error again."""
        kind = getattr(errors, self.kind, MaraError)
        if isinstance(kind, type) and issubclass(kind, ModelUnavailable):
            return ModelUnavailable(self.message, self.hint, status=self.status)
        known = isinstance(kind, type) and issubclass(kind, MaraError) and kind.__init__ is MaraError.__init__
        return kind(self.message, self.hint) if known else MaraError(self.message, self.hint)


def task_to_json(task: ShardTask) -> str:
    """Return a task as JSON."""
    passages = [passage_to_json(passage) for passage in task.passages]
    return json.dumps({"key": task.key, "passages": passages, "given": dict(task.given)})


def task_from_json(text: str) -> ShardTask:
    """Return what `task_to_json` gave."""
    told = json.loads(text)
    return ShardTask(told["key"], tuple(map(passage_from_json, told["passages"])), told["given"])


def work_to_json(work: Work) -> str:
    """Return the settings of workers as JSON."""
    told = {each.name: getattr(work, each.name) for each in fields(work)}
    return json.dumps({**told, "context": work.context.model_dump(mode="json"), "own": work.own.to_json()})


def work_from_json(text: str) -> Work:
    """Return what `work_to_json` gave."""
    told = json.loads(text)
    context, own = IndexingContext.model_validate(told.pop("context")), OwnTypes.from_json(told.pop("own"))
    return Work(context=context, own=own, **told)


def reading_to_json(task: ReadTask) -> str:
    """Return a task of reading as JSON."""
    files = [[str(file.path), file.source] for file in task.files]
    held = {"sizes": task.sizes, "digests": task.digests}
    return json.dumps({"files": files, **held, "context": task.context.model_dump(mode="json")})


def reading_from_json(text: str) -> ReadTask:
    """Return what `reading_to_json` gave."""
    told = json.loads(text)
    files = tuple(ToRead(Path(path), source) for path, source in told["files"])
    context = IndexingContext.model_validate(told["context"])
    return ReadTask(files, tuple(told["sizes"]), tuple(told["digests"]), context)


def files_to_json(files: Sequence[Loaded | None]) -> str:
    """Return what files hold as JSON; None stays."""
    return json.dumps([None if file is None else loaded_to_json(file) for file in files])


def files_from_json(text: str) -> list[Loaded | None]:
    """Return what `files_to_json` gave. The pages of a list of links are not among it: such a list is read at home."""
    return [None if told is None else loaded_from_json(told) for told in json.loads(text)]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the workers are: what the coordinator is told first.

    Attributes:
        address: of a running cluster; empty for one on this machine, for the length of the run.
        workers: how many cores are to work; 0 for all that there are.
        folder: for sockets and logs of a local one; its path is short.
    """

    address: str
    workers: int
    folder: str


@dataclass(frozen=True, slots=True)
class ReadJob:
    """Files to read: `ReadTask`s as JSON."""

    tasks: list[str]


@dataclass(frozen=True, slots=True)
class MakeJob:
    """Shards to make.

    Attributes:
        work: a `Work` as JSON.
        extractors: how many workers ask a model.
        tasks: `ShardTask`s as JSON, by key.
        root: the workspace, whose folder of shards they are written to.
        replies: the file of kept replies, where a model extracts; else empty.
    """

    work: str
    extractors: int
    tasks: dict[str, str]
    root: str
    replies: str


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What the files of a task hold, as JSON."""

    number: int
    files: str


@dataclass(frozen=True, slots=True)
class ShardMade:
    """A shard lies in its file."""

    key: str
    passages: int
    failed: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Ray is there, with so many workers."""

    workers: int


@dataclass(frozen=True, slots=True)
class JobDone:
    """All of the job is done."""


Job = ReadJob | MakeJob
Event = Ready | FilesRead | ShardMade | JobDone | Failed
Message = Cluster | Job | Event

_KINDS: dict[str, type[Message]] = {
    kind.__name__: kind for kind in (Cluster, ReadJob, MakeJob, FilesRead, ShardMade, Ready, JobDone, Failed)
}


def send(stream: IO[bytes], message: Message) -> None:
    """Send a message. Raises OSError or ValueError where the other end is gone."""
    stream.write(json.dumps([type(message).__name__, asdict(message)]).encode() + b"\n")
    stream.flush()


def receive(stream: IO[bytes]) -> Message:
    """Return the next message. Raises EOFError where the other end is gone, in the middle of one, too."""
    try:
        line = stream.readline()
        if not line.endswith(b"\n"):
            raise EOFError("The other end is gone")
        kind, values = json.loads(line)
    except (OSError, ValueError) as fault:
        raise EOFError(str(fault)) from fault
    return _KINDS[kind](**values)
