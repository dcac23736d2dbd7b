"""Reading files in a process of its own, whose time and memory are limited: a hostile file costs no more than that.

Requests and answers are lines of JSON. The process stays for a run; where a file ends it, the next file starts another.
Its memory is limited on Linux alone, where the system enforces the limit.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from graph.environment import environment
from graph.errors import BadInput, DependencyMissing, MaraError
from graph.sources.loaders import load_file
from graph.sources.loaders.document import Loaded
from graph.sources.loaders.fields import FieldMap
from graph.sources.loaders.files import readable_path

MOST_BYTES = 2 * 2**30
"""Memory of the process."""

SECONDS, SECONDS_A_MEBIBYTE = 60.0, 20.0
"""Time for a file: at least so much, and more for a large one."""

_GRACE_S = 30
_KEPT_FROM_IT = ("MARA_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "CHROMA_CLIENT_", "OTEL_")
"""Variables that begin so hold keys and addresses, which no loader needs."""

_ERRORS = {kind.__name__: kind for kind in (BadInput, DependencyMissing)}


class Child:
    """A process that reads files, started with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, path: Path, source: str, fields: FieldMap) -> Loaded:
        """Return what a file holds. Raises as `load_file` does, and BadInput where it takes too much time or memory."""
        if self._process is None:
            self._process = _start()
        seconds = SECONDS + SECONDS_A_MEBIBYTE * (path.stat().st_size / 2**20 if path.exists() else 0)
        request = {"path": str(path), "source": source, "fields": to_json(FieldMap, fields), "seconds": seconds}
        timer = Timer(seconds, self._process.kill)
        timer.start()
        answer = b""
        try:
            answer = _ask(self._process, request)
        finally:
            timer.cancel()
            if not answer:
                self.close()
        if not answer:
            raise BadInput(
                f"{readable_path(path)} cannot be read in {seconds:.0f} s and {MOST_BYTES >> 30} GiB of memory",
                "Split it, or leave it out",
            )
        reply = json.loads(answer)
        if "error" in reply:
            raise _ERRORS.get(reply["error"], BadInput)(reply["message"], reply["hint"])
        try:
            loaded: Loaded = _adapter(Loaded).validate_python(reply)
        except ValidationError as fault:
            raise _unreadable(path, fault) from fault
        return loaded

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    modules = os.pathsep.join(map(os.path.abspath, sys.path))
    variables = {name: value for name, value in environment().variables.items() if not name.startswith(_KEPT_FROM_IT)}
    return subprocess.Popen(
        [sys.executable, "-m", "graph.sources.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**variables, "PYTHONPATH": modules},
    )


def _ask(process: subprocess.Popen[bytes], request: dict[str, Any]) -> bytes:
    """Return the answer to a request; empty where the process has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except OSError:
        return b""
    return answer if answer.endswith(b"\n") else b""


def _answer(request: dict[str, Any]) -> str:
    path = Path(request["path"])
    try:
        return to_json(Loaded, load_file(path, request["source"], from_json(FieldMap, request["fields"])))
    except MaraError as fault:
        error = fault
    except Exception as fault:
        error = _unreadable(path, fault)
    return json.dumps({"error": error.kind, "message": error.message, "hint": error.hint})


def to_json(kind: Any, value: object) -> str:
    """Return a value of a type as JSON, which runs nothing when it is received, as a pickle might."""
    return json.dumps(_adapter(kind).dump_python(value, mode="json"))


def from_json(kind: Any, text: str) -> Any:
    """Return the value that `to_json` gave."""
    return _adapter(kind).validate_python(json.loads(text))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _unreadable(path: Path, fault: Exception) -> BadInput:
    return BadInput(f"{readable_path(path)} cannot be read ({type(fault).__name__})", "Leave it out")


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, hard))


def _serve() -> None:
    """Answer requests until there are no more; whatever libraries print goes nowhere."""
    _limit_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if hasattr(signal, "alarm"):
            # Where the run has been killed, there is no one else to end this process.
            signal.alarm(int(request["seconds"]) + _GRACE_S)
        answers.write(_answer(request).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
