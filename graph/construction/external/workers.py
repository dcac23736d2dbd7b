"""Processes that do the tasks of a build beside each other.

Each is a fresh interpreter, not a copy of a process with threads, and it does not load the program that builds: a
script without a guard around its main part may build, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar, get_type_hints

import graph.errors
from graph.construction.external.layout import Layout, load_layout
from graph.environment import environment
from graph.errors import MaraError, OutOfResources


def written(function: Callable[[Any], None], task: Any) -> bytes:
    """Return a call of a module's function with a task, a dataclass, as a line without its end."""
    names = [[each.__module__, each.__name__] for each in (function, type(task))]
    return json.dumps([*names, _plain(task)]).encode()


def read(line: bytes) -> tuple[Callable[[Any], None], Any]:
    """Return the function and the task that a line says."""
    *names, task = json.loads(line)
    function, kind = (getattr(import_module(module), name) for module, name in names)
    return function, _typed(task, kind)


def _plain(value: Any) -> Any:
    if isinstance(value, Layout):
        return str(value.scratch)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return str(value) if isinstance(value, Path) else value


def _typed(value: Any, wanted: Any) -> Any:
    """Return what `_plain` made of a value of some type."""
    if wanted is Layout:
        return load_layout(Path(value))
    if is_dataclass(wanted) and isinstance(wanted, type):
        return wanted(**{name: _typed(value[name], kind) for name, kind in _types(wanted).items()})
    if wanted is Path:
        return Path(value)
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=64)
def _types(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def told_fault(fault: Exception) -> dict[str, Any]:
    """Return an error as JSON holds it."""
    if isinstance(fault, MaraError):
        return {"error": fault.kind, "message": fault.message, "hint": fault.hint}
    if isinstance(fault, OSError):
        return {"errno": fault.errno, "message": fault.strerror or str(fault), "file": str(fault.filename or "")}
    return {"message": f"{type(fault).__name__}: {fault}"}


def fault_of(said: dict[str, Any]) -> Exception:
    """Return the error that `told_fault` told: ours and the system's as they were, any other by its name."""
    if "error" in said:
        kind = getattr(graph.errors, said["error"], MaraError)
        fault: Exception = kind(said["message"], said["hint"])
        return fault
    if "errno" in said:
        return OSError(said["errno"], said["message"], said["file"])
    return RuntimeError(said["message"])


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
            process.stdin.write(written(function, task) + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            self._free.put(process)
        if not answer.endswith(b"\n"):
            raise OutOfResources(
                f"A process of the build ended with {process.poll()}",
                "It may have run out of memory: free some, or set MARA_BUILD_PROCESSES=1, and run the command again",
            )
        if fault := json.loads(answer):
            raise fault_of(fault)


def _start() -> subprocess.Popen[bytes]:
    found = os.pathsep.join(path or os.getcwd() for path in sys.path)
    variables = {**environment().variables, **_ONE_THREAD, "PYTHONPATH": found}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, env=variables)


def serve() -> None:
    """Do the tasks that stand in the standard input until it ends; what a task prints goes to the standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_fault(line)).encode() + b"\n")
        answers.flush()


def _fault(line: bytes) -> dict[str, Any] | None:
    """Do the task that a line says; return what was raised, if anything was."""
    try:
        function, task = read(line)
        function(task)
    except Exception as fault:
        return told_fault(fault)
    return None
