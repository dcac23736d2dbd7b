"""Processes that do the tasks of a build beside each other.

Each is a fresh interpreter, not a copy of a process with threads, and it does not load the program that builds: a
script without a guard around its main part may build, too.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from graph.errors import OutOfResources

Task = TypeVar("Task")

_PROGRAM = "from graph.construction.external.workers import serve; serve()"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Workers:
    """Some processes; with none, tasks are done in this one."""

    def __init__(self, processes: int) -> None:
        """Start so many processes."""
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._all = [_start() for _ in range(processes)]
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
                pipe.close()
            process.wait()

    def run(self, function: Callable[[Task], None], tasks: Iterable[Task]) -> None:
        """Call a function of a module with each task.

        Raises what a call raises, and OutOfResources where a process ends.
        """
        if not self._all:
            for task in tasks:
                function(task)
            return
        with ThreadPoolExecutor(len(self._all)) as threads:
            running = [threads.submit(self._call, function, task) for task in tasks]
            try:
                for each in running:
                    each.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _call(self, function: Callable[[Task], None], task: Task) -> None:
        process = self._free.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump((function, task), process.stdin)
            process.stdin.flush()
            fault = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as ended:
            raise OutOfResources(
                f"A process of the build ended with {process.poll()}",
                "It may have run out of memory: free some, or set MARA_BUILD_PROCESSES=1, and run the command again",
            ) from ended
        finally:
            self._free.put(process)
        if fault is not None:
            raise fault


def _start() -> subprocess.Popen[bytes]:
    found = os.pathsep.join(path or os.getcwd() for path in sys.path)
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": found}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, env=environment)


def serve() -> None:
    """Do the tasks that stand in the standard input until it ends; what a task prints goes to the standard error."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while task := _next(asked):
        _answer(answers, _done(*task))


def _next(asked: IO[bytes]) -> tuple[Callable[[Any], None], Any] | None:
    try:
        task: tuple[Callable[[Any], None], Any] = pickle.load(asked)
    except EOFError:
        return None
    return task


def _done(function: Callable[[Any], None], task: Any) -> Exception | None:
    try:
        function(task)
    except Exception as fault:
        return fault
    return None


def _answer(answers: IO[bytes], fault: Exception | None) -> None:
    try:
        said = pickle.dumps(fault)
        pickle.loads(said)
    except Exception:
        said = pickle.dumps(RuntimeError(f"{type(fault).__name__}: {fault}"))
    answers.write(said)
    answers.flush()
