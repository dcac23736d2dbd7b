"""Processes that do the tasks of a build beside each other.

Each is a fresh interpreter, not a copy of a process with threads, and it does not load the program that builds: a
script without a guard around its main part may build, too.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import graph.errors
from graph.environment import environment, processors
from graph.errors import MaraError, OutOfResources

_PROGRAM = "from graph.construction.workers import serve; serve()"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_LARGE = 5_000
"""Passages from which on starting processes is worth its while."""


def build_processes(passages: int) -> int:
    """Return how many processes build beside the one that asks: one a core.

    With one core, and for a small corpus, the one that asks builds alone. Raises BadInput: see `processors`.
    """
    several = processors()
    return several if several > 1 and passages >= _LARGE else 0


class Workers:
    """Some processes; with none, tasks are done in this one."""

    def __init__(self, build: Any, processes: int) -> None:
        """Start so many processes that do methods of what the build's type loads from the build's folder."""
        self._build = build
        self._all = [_start(build) for _ in range(processes)]
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in self._all:
            self._free.put(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._all:
            if kind is not None:
                process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                # The rest cannot be written to a process that ended.
                with suppress(BrokenPipeError):
                    pipe.close()
            process.wait()

    @property
    def count(self) -> int:
        """How many tasks are done at once."""
        return len(self._all) or 1

    def run(self, calls: Sequence[tuple[str, *tuple[int, ...]]]) -> None:
        """Call methods of the build, each with some numbers; a single call is done here, while processes start.

        Raises what a call raises, and OutOfResources where a process ends.
        """
        if not self._all or len(calls) == 1:
            for task, *numbers in calls:
                getattr(self._build, task)(*numbers)
            return
        with ThreadPoolExecutor(len(self._all)) as threads:
            running = [threads.submit(self._call, json.dumps(call)) for call in calls]
            try:
                for each in running:
                    each.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _call(self, line: str) -> None:
        process = self._free.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            self._free.put(process)
        if not answer.endswith(b"\n"):
            raise OutOfResources(
                f"A process of the build ended with {process.poll()}",
                "It may have run out of memory: free some, or set OMP_NUM_THREADS=1, and run the command again",
            )
        if fault := json.loads(answer):
            raise fault_of(*fault)


def _arguments_of(fault: Exception) -> tuple[object, ...]:
    if isinstance(fault, MaraError):
        return fault.message, fault.hint
    return (fault.errno, fault.strerror, fault.filename) if isinstance(fault, OSError) else fault.args


def fault_of(kind: str, *arguments: Any) -> Exception:
    """Return an error of this project, or of Python's, by its name; any other as a RuntimeError that names it."""
    known = getattr(graph.errors, kind, getattr(builtins, kind, None))
    fault: Exception = known(*arguments) if known else RuntimeError(f"{kind}: {', '.join(map(str, arguments))}")
    return fault


def _start(build: Any) -> subprocess.Popen[bytes]:
    search_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
    variables = {**environment().variables, **_ONE_THREAD, "PYTHONPATH": search_path}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _PROGRAM, type(build).__module__, type(build).__name__, build.folder]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables)


def serve() -> None:
    """Do the tasks that stand in the standard input until it ends; what a task prints goes to the standard error."""
    module, name, folder = sys.argv[1:]
    gc.disable()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    build = None
    for line in sys.stdin.buffer:
        task, *numbers = json.loads(line)
        fault = None
        try:
            build = build or getattr(import_module(module), name).load(Path(folder))
            getattr(build, task)(*numbers)
        except Exception as error:
            fault = [type(error).__name__, *_arguments_of(error)]
        answers.write(json.dumps(fault, default=str).encode() + b"\n")
        answers.flush()


def even_size(total: int, most: int, processes: int) -> int:
    """Return how much a part is, ``most`` at most, so that every process has as many of them."""
    parts = processes * -(-total // (most * processes))
    return -(-total // max(1, parts)) or 1


def even_ranges(weights: NDArray[np.int64], budget: int) -> list[tuple[int, int]]:
    """Return the ranges into which a column is cut that have about so much weight each."""
    ends = np.cumsum(weights)
    cut = np.searchsorted(ends, np.arange(budget, int(ends[-1]) if len(ends) else 0, budget))
    return list(pairwise(sorted({0, *cut.tolist(), len(ends)})))
