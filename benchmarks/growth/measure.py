"""Running a stage in a process of its own, and what it takes: seconds, processor time, and memory by sort."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_EVERY_S = 0.5
_GIB = 2**20
"""KiB that make one."""

Figures = dict[str, Any]


def measured(stage: Callable[..., Figures], *arguments: Any) -> Figures:
    """Run a stage in a new process; return its figures with what it took, or with ``error`` where it failed.

    Memory is in GiB, sampled twice a second: ``anonymous`` is that of the process and its children, ``mapped`` the part
    of files that the one of them holds which maps most. Processes share what they map, and the system may take it back.
    """
    context = get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sending, stage, arguments))
    load, start = os.getloadavg()[0], time.perf_counter()
    process.start()
    sending.close()
    peak = _Peak(process.pid or 0)
    try:
        figures: Figures = receiving.recv()
    except EOFError:
        figures = {"error": "the process ended without a word: memory ran out?"}
    seconds = time.perf_counter() - start
    peak.stop()
    process.join()
    return {"seconds": round(seconds, 2), **peak.gib(), "load": round(max(load, os.getloadavg()[0]), 1), **figures}


def memory_of(pid: int) -> tuple[int, int]:
    """Return the KiB of a process that are its own, and those of the files that it maps."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0, 0
    # Shares of what several processes map (smaps) cost seconds where gigabytes are mapped.
    fields = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.split()}
    return int(fields.get("RssAnon", 0)) + int(fields.get("RssShmem", 0)), int(fields.get("RssFile", 0))


def _run(sending: Connection, stage: Callable[..., Figures], arguments: tuple[Any, ...]) -> None:
    try:
        figures = stage(*arguments)
    except Exception as fault:
        traceback.print_exc()
        figures = {"error": f"{type(fault).__name__}: {fault}"}
    took = os.times()
    figures.setdefault("processor_seconds", round(sum(took[:4]), 2))
    sending.send(figures)


class _Peak:
    """The most memory that a process and its children have had, looked at from time to time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._most = {"anonymous": 0, "mapped": 0, "together": 0}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def gib(self) -> Figures:
        """Return the peaks."""
        return {f"peak_{name}_gib": round(most / _GIB, 3) for name, most in self._most.items()}

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            anonymous = mapped = 0
            for pid in _family(self._pid):
                own, files = memory_of(pid)
                anonymous, mapped = anonymous + own, max(mapped, files)
            for name, now in (("anonymous", anonymous), ("mapped", mapped), ("together", anonymous + mapped)):
                self._most[name] = max(self._most[name], now)


def _family(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
        except OSError:
            continue
        found.extend(map(int, children))
    return found
