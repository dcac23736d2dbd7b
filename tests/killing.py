"""The command line in processes to kill: each is forked from a server that has imported everything."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.checks.doctor import differing_files
from tests.builders import DIMENSION, HashEmbedder

KILLED = -signal.SIGKILL
THREADED = 98
"""Exit code of a process that was not forked from a single thread, and proves nothing."""

_PRELOADED = [
    *("pytest", "tests.killing", "tests.builders", "chromadb", "chromadb.api.rust", "scipy.sparse.csgraph", "bm25s"),
    *("workflows.answering", "workflows.cli.app", "workflows.admin.upkeep"),
    *("workflows.indexing", "workflows.admin.removal"),
]
_PASSAGES_A_COMMIT = 8


class NoTies(HashEmbedder):
    """Vectors like those of `HashEmbedder`, of which no two are equally near to a third: what is found is one order."""

    def _vector(self, text: str) -> NDArray[np.float64]:
        family, own = (_noise(part) for part in ((text.casefold().split() or [""])[0], text))
        vector = family + own / 3
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


def _noise(text: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).normal(size=DIMENSION)


@dataclass(frozen=True, slots=True)
class Step:
    """A place in the code where a process kills itself: the n-th time that a function of a file is called."""

    file: str
    function: str
    time: int = 1


_PUBLISHING = (
    Step("graph/publish/derive.py", "publish"),
    Step("graph/construction/build.py", "build_generation"),
    Step("graph/construction/build.py", "read_shard"),
    Step("graph/publish/generation_vectors.py", "write_vectors"),
    *(Step("graph/publish/chroma_store.py", "write", time) for time in (1, 2, 3)),
    Step("graph/storage/workspace.py", "save"),
    Step("graph/storage/workspace.py", "publish"),
    Step("graph/storage/workspace.py", "write_atomically"),
    Step("graph/storage/workspace.py", "write_atomically", 2),
    Step("graph/storage/workspace.py", "prune", 2),
    Step("graph/storage/lock.py", "release"),
)
_INDEXING = (
    Step("graph/storage/record.py", "_make"),
    Step("graph/storage/record.py", "_set_meta", 3),
    Step("workflows/indexing_run/run.py", "extract"),
    Step("workflows/indexing_run/run.py", "extract", 2),
    Step("graph/storage/writer.py", "embed"),
    *(Step("graph/storage/record.py", "commit", time) for time in (1, 2, 3)),
    Step("graph/storage/record.py", "mark_complete", 2),
    *_PUBLISHING,
)
_REMOVING = (Step("workflows/admin/removal.py", "keep"), Step("graph/storage/record.py", "commit"), *_PUBLISHING)
STEPS = {
    "index": _INDEXING,
    "sync": _INDEXING,
    "remove": (*_REMOVING, Step("workflows/admin/removal.py", "keep", 2)),
}
"""Where commands are between reading, extracting, embedding, committing, deriving and publishing."""


def arrays_that_differ(mine: Path, other: Path) -> list[str]:
    """The numbers and texts of a generation that another one has not alike: all of it but its name and its vectors."""
    return [name for name in differing_files(mine, other) if name.endswith(".npy")]


@dataclass(slots=True)
class ForkServer:
    """Starts commands; what they write lies in a folder."""

    folder: Path
    _context: ForkServerContext = field(default_factory=lambda: multiprocessing.get_context("forkserver"))

    def __post_init__(self) -> None:
        """Start the server, whose libraries start no threads: what is forked from one thread is as if it began anew."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENBLAS_NUM_THREADS", "1")
            self._context.set_forkserver_preload(_PRELOADED)
            ensure_running()

    def start(self, *arguments: str | Path, at: Step | None = None) -> ForkServerProcess:
        """Start a command, which kills itself at a step where one is given."""
        process = self._context.Process(target=_run, args=([*map(str, arguments)], self.folder, at), daemon=True)
        process.start()
        return process

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Run a command to its end; return its exit code and what it wrote."""
        process = self.start(*arguments)
        process.join()
        return process.exitcode or 0, *self.written()

    def written(self) -> tuple[str, str]:
        """Return what the last command wrote on standard output and on standard error."""
        out, err = ((self.folder / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return out, err


def _run(arguments: list[str], folder: Path, at: Step | None) -> None:
    if len(os.listdir("/proc/self/task")) > 1:
        os._exit(THREADED)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    from graph.checks import doctor
    from graph.embedding import embeddings
    from workflows import indexing
    from workflows.cli import app

    # Opening a search index in a process of its own, as a doctor does first, takes longer than all else.
    vars(doctor)["why_unreadable"] = lambda *asked: ""
    vars(embeddings)["_embedder"] = lambda *configured: NoTies()
    vars(indexing)["COMMIT_PASSAGES"] = _PASSAGES_A_COMMIT
    if at is not None:
        kill_at(at)
    sys.argv = ["mara", *arguments]
    app.main()


def kill_at(step: Step) -> None:
    """Let this process kill itself at a step."""
    left = step.time

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        code = frame.f_code
        if event == "call" and code.co_name == step.function and code.co_filename.endswith(step.file):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(look)
    sys.setprofile(look)
