"""Processes that do the tasks of a build beside each other.

Each is a fresh interpreter, not a copy of a process with threads, and it does not load the program that builds: a
script without a guard around its main part may build, too.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graph.environment import environment, processors
from graph.errors import OutOfResources

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
        """Start so many processes that do methods of a copy of the build."""
        self._build = build
        self._all = [_start() for _ in range(processes)]
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in self._all:
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(build))
            self._free.put(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._all:
            process.kill()
            process.communicate()

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
            running = [threads.submit(self._call, call) for call in calls]
            try:
                for each in running:
                    each.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _call(self, call: tuple[str, *tuple[int, ...]]) -> None:
        process = self._free.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pickle.dumps(call))
            process.stdin.flush()
            fault = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            fault = OutOfResources(
                f"A process of the build ended with {process.poll()}",
                "It may have run out of memory: free some, or set OMP_NUM_THREADS=1, and run the command again",
            )
        finally:
            self._free.put(process)
        if fault:
            raise fault


def _start() -> subprocess.Popen[bytes]:
    search_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
    variables = {**environment().variables, **_ONE_THREAD, "PYTHONPATH": search_path}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, env=variables)


def serve() -> None:
    """Do the tasks that stand in the standard input until it ends; what a task prints goes to the standard error."""
    gc.disable()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(0, "rb")
    build = pickle.load(requests)
    while requests.peek(1):
        task, *numbers = pickle.load(requests)
        fault = None
        try:
            getattr(build, task)(*numbers)
        except Exception as error:
            fault = error
        answers.write(pickle.dumps(fault))
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
