"""What a run and its coordinator tell each other: pickled objects, one after another."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from graph.errors import MaraError


@dataclass(frozen=True, slots=True)
class ReadJob:
    """Pickled `ReadTask`s to run."""

    tasks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class MakeJob:
    """Shards to make.

    Attributes:
        work: a pickled `Work`.
        tasks: keys and pickled `ShardTask`s.
        root: the workspace, whose folder of shards they are written to.
        replies: the file of kept replies, where a model extracts.
    """

    work: bytes
    tasks: tuple[tuple[str, bytes], ...]
    root: Path
    replies: Path | None


@dataclass(frozen=True, slots=True)
class FilesRead:
    """The pickled outcomes of a task's files."""

    number: int
    outcomes: bytes


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
    """The job is done."""


Job = ReadJob | MakeJob
Event = Ready | FilesRead | ShardMade | JobDone | MaraError


def received(stream: BinaryIO) -> Any:
    """Return the next message. Raises EOFError where the other end is gone."""
    try:
        return pickle.load(stream)
    except (pickle.UnpicklingError, OSError, ValueError) as fault:
        raise EOFError(str(fault)) from fault
