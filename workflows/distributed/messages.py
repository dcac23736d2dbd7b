"""What a run and its coordinator tell each other: a line of JSON each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import IO

from workflows.distributed.wire import Failed


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
