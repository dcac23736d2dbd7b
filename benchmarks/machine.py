"""What a benchmark ran on, how fast its memory is, and how much of it a walk must touch."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from graph.construction.edges import TypedGraph

_PACKAGES = ("numpy", "scipy", "igraph", "numba")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_MEASURED_BYTES = 256 * 1024**2
_ROUNDS = 5
_ID = 4
_WEIGHT = 4
_KIND = 1
_CELL = 16


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a benchmark ran, without names or paths.

    Attributes:
        processor: model name; empty where the system does not tell.
        cores: how many this process may use.
        memory: bytes; 0 where the system does not tell.
        caches: size of each level of the first core's data caches, as the system spells it.
        system: operating system and architecture.
        packages: version of Python and of what the engines run on.
        load: mean number of running processes over the last minute, before the benchmark began.
    """

    processor: str
    cores: int
    memory: int
    caches: dict[str, str]
    system: str
    packages: dict[str, str]
    load: float


@dataclass(frozen=True, slots=True)
class MemorySpeed:
    """What one thread gets from memory, in bytes a second: the best of five passes over arrays of 256 MiB.

    Attributes:
        copied: read and written by copying, both counted.
        read: read by summing 64-bit numbers.
    """

    copied: float
    read: float

    @property
    def best(self) -> float:
        """The larger of the two."""
        return max(self.copied, self.read)


@dataclass(frozen=True, slots=True)
class Touched:
    """The least that a walk must touch in memory, whether or not it comes from a cache.

    Attributes:
        streamed: bytes read or written one after the other.
        scattered: bytes read or written at places that the graph dictates.
        places: how many such places.
    """

    streamed: int
    scattered: int
    places: int


def describe_machine() -> Machine:
    """Return what is known of this machine."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory=_memory(),
        caches=_caches(),
        system=f"{platform.system()} {platform.machine()}",
        packages={"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan"),
    )


def measure_memory() -> MemorySpeed:
    """Measure what one thread gets from memory."""
    numbers = np.ones(_MEASURED_BYTES // 8)
    copy = np.empty_like(numbers)
    copied = 2 * numbers.nbytes / _fastest(lambda: np.copyto(copy, numbers))
    return MemorySpeed(copied, numbers.nbytes / _fastest(numbers.sum))


def measure_gather(graph: TypedGraph, dtype: type[np.floating[Any]]) -> float:
    """Return how long one of many scattered reads takes, in ns: a number of each edge's target, edge by edge."""
    numbers, places = np.ones(graph.n_nodes, dtype), graph.target.astype(np.intp)
    gathered = np.empty(len(graph), dtype)
    seconds = _fastest(lambda: np.take(numbers, places, out=gathered, mode="wrap"))
    return 1e9 * seconds / max(1, len(graph))


def bytes_of_arrays(graph: TypedGraph) -> int:
    """Return the bytes of all arrays that the engines ``matrix`` and ``push`` read."""
    arrays = (graph.source, *graph.forward, *graph.backward, *graph.arriving, graph.n_arcs, graph.kind_degrees)
    return sum(array.nbytes for array in arrays)


def touched_by_matrix(graph: TypedGraph, arcs: int, width: int) -> Touched:
    """Return what the engine ``matrix`` must touch.

    An arc: its end and its weight, and a number of a vector to read. Before that, the weights are multiplied by the
    factors of their kinds.

    Args:
        graph: the graph.
        arcs: how many the walk followed.
        width: bytes of a number.
    """
    weighing = 2 * len(graph) * (_KIND + _WEIGHT + 3 * width)
    return Touched(arcs * (_ID + width) + weighing, arcs * width, arcs)


def touched_by_push(arcs: int) -> Touched:
    """Return what the engine ``push`` must touch.

    An arc: its end, weight and kind in runs; what is known of its end, to read and to write.
    """
    return Touched(arcs * (_ID + _WEIGHT + _KIND), arcs * 2 * _CELL, arcs)


def _fastest(run: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def _caches() -> dict[str, str]:
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        level, sort, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size"))
        if sort != "Instruction":
            found[f"L{level}"] = size
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
