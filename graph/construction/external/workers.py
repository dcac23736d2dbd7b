"""Processes that do the tasks of a build beside each other.

Each is a fresh interpreter, not a copy of a process with threads, and it does not load the program that builds: a
script without a guard around its main part may build, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import graph.errors
from graph.construction.external.layout import Layout, load_layout
from graph.environment import environment
from graph.errors import MaraError, OutOfResources


def written(call: partial[None]) -> bytes:
    """Return a call of a module's function with plain values, paths and layouts, as a line without its end."""
    return json.dumps([call.func.__module__, call.func.__name__, call.args], default=_plain).encode()


def read(line: bytes) -> partial[None]:
    """Return the call that a line says."""
    module, name, arguments = json.loads(line, object_hook=_typed)
    return partial(getattr(import_module(module), name), *arguments)


def _plain(value: object) -> dict[str, str]:
    return {"layout": str(value.folder)} if isinstance(value, Layout) else {"path": str(value)}


def _typed(said: dict[str, str]) -> object:
    return load_layout(Path(said["layout"])) if "layout" in said else Path(said["path"])


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

    def run(self, calls: Iterable[partial[None]]) -> None:
        """Call functions of modules.

        Raises what a call raises, and OutOfResources where a process ends.
        """
        if not self._all:
            for call in calls:
                call()
            return
        with ThreadPoolExecutor(len(self._all)) as threads:
            running = [threads.submit(self._call, call) for call in calls]
            try:
                for each in running:
                    each.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _call(self, call: partial[None]) -> None:
        process = self._free.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(written(call) + b"\n")
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
        read(line)()
    except Exception as fault:
        return told_fault(fault)
    return None
