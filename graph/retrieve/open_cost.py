"""What an open workspace takes of a process: memory, open files, threads; and what the process may take in all.

Memory is estimated from the sizes of a generation's files, which costs no look into them; docs/deployment.md says how
far that is off.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from graph.environment import environment
from graph.errors import BadInput
from graph.storage.generation import Layer

OPEN_BYTES_VARIABLE = "MARA_OPEN_BYTES"
"""Names the memory that the open workspaces of a process may take together."""

_SHARE = 0.5
"""Of the memory, open files and threads that a process may have: what open workspaces may take by default."""

_UNKNOWN_MEMORY = 4 * 2**30
_MOST_THREADS = 16_000
"""Half of what Linux numbers by default: threads of all processes together."""

_CGROUP = Path("/sys/fs/cgroup")

_CHROMA_BYTES = 6_000_000
_CHROMA_FILES = 20
_CHROMA_THREADS = 8
"""Of an embedded Chroma, however little it holds, beside what follows from the sizes of its files."""

_PER_VECTOR_BYTE = 1.1
"""Of memory for each byte of the files that hold an index's vectors and links."""

_DATABASE_CONNECTIONS = 3
_DATABASE_CACHE = 2_000_000
"""What each connection to Chroma's database keeps of it, at most."""

_OWN_BYTES = 300_000
_OWN_FILES = 8
"""Of a generation, however small, beside what follows from the sizes of its files."""

_PER_MAPPED_BYTE = 1.0
"""Of memory for each byte of a mapped index: what questions touch of it."""

_PER_BYTE = 2.0
"""Of memory for each byte of the other files: mapped pages, and what is derived from them once questions are asked."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT])(?:i?B)?|B)?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class OpenCost:
    """What something open takes, or may take.

    Attributes:
        bytes: of memory.
        files: open ones.
        threads: of the process.
    """

    bytes: float = 0
    files: float = 0
    threads: float = 0

    def __add__(self, other: OpenCost) -> OpenCost:
        return OpenCost(self.bytes + other.bytes, self.files + other.files, self.threads + other.threads)

    def __sub__(self, other: OpenCost) -> OpenCost:
        return OpenCost(self.bytes - other.bytes, self.files - other.files, self.threads - other.threads)

    def fits(self, budget: OpenCost) -> bool:
        """Tell whether it is within a budget in every respect."""
        return self.bytes <= budget.bytes and self.files <= budget.files and self.threads <= budget.threads


Parts = Mapping[Path, OpenCost]
"""What an open generation consists of, by folder: two generations may lie on one search index, open once."""


def parts_of(folder: Path) -> Parts:
    """Return what an open generation takes, by what it consists of."""
    layer = Layer.load(folder)
    generations = {folder, *([folder.parent / str(layer.base)] if layer else ())}
    parts = {folder: OpenCost(_OWN_BYTES + _PER_BYTE * _size(folder), files=_OWN_FILES)}
    for generation in generations:
        for name, cost_of in _STORES.items():
            if (store := generation / name).is_dir():
                parts[store] = cost_of(store)
    return parts


def _cost_of_chroma(folder: Path) -> OpenCost:
    database, vectors = 0, 0
    for each in folder.iterdir():
        if each.is_dir():
            vectors += _size(each)
        else:
            database += each.stat().st_size
    cached = _DATABASE_CONNECTIONS * min(database, _DATABASE_CACHE)
    return OpenCost(_CHROMA_BYTES + cached + _PER_VECTOR_BYTE * vectors, _CHROMA_FILES, _CHROMA_THREADS)


def _cost_of_mapped(folder: Path) -> OpenCost:
    return OpenCost(_PER_MAPPED_BYTE * _size(folder), len(list(folder.iterdir())))


_STORES: Mapping[str, Callable[[Path], OpenCost]] = {"chroma": _cost_of_chroma, "vectors": _cost_of_mapped}
"""What the search index in a folder of a generation takes, by the folder's name."""


def _size(folder: Path) -> int:
    """Return the bytes of the files in a folder and, but for a search index, in those below it."""
    total = 0
    for each in os.scandir(folder):
        if each.is_file():
            total += each.stat().st_size
        elif each.name not in _STORES:
            total += _size(Path(each.path))
    return total


class Taken:
    """What several open generations take together: what they share counts once."""

    def __init__(self) -> None:
        self._holders: Counter[Path] = Counter()
        self.total = OpenCost()

    def add(self, parts: Parts) -> None:
        """Count a generation."""
        for folder, cost in parts.items():
            self._holders[folder] += 1
            if self._holders[folder] == 1:
                self.total += cost

    def remove(self, parts: Parts) -> None:
        """Count a generation that was added no more."""
        for folder, cost in parts.items():
            self._holders[folder] -= 1
            if not self._holders[folder]:
                del self._holders[folder]
                self.total -= cost


def budget_of_environment(sharing: int = 1) -> OpenCost:
    """Return what the open workspaces of this process may take: ``MARA_OPEN_BYTES``, or half of what there is.

    Args:
        sharing: how many processes share what the machine, or its container, has.

    Raises:
        BadInput: ``MARA_OPEN_BYTES`` is no number of bytes.
    """
    told = environment().mara_open_bytes
    memory = _bytes_in(told) if told else _SHARE * _memory() / sharing
    return OpenCost(memory, _SHARE * _files(), _SHARE * _threads() / sharing)


def _bytes_in(text: str) -> float:
    read = _SIZE.fullmatch(text.strip())
    if not read:
        raise BadInput(f"{OPEN_BYTES_VARIABLE} is {text!r}", "Set it to a number of bytes, such as 2000000000 or 2G")
    return float(read[1]) * _UNITS[read[2] or ""]


def _memory() -> float:
    """Return the bytes of memory that this process may have: the machine's, or its cgroup's where that is less."""
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = _UNKNOWN_MEMORY
    return min(machine, _least_in("memory.max", "memory/memory.limit_in_bytes"))


def _files() -> float:
    """Return how many files this process may have open."""
    if sys.platform == "win32":
        return math.inf
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _threads() -> float:
    """Return how many threads the processes of this one's cgroup, or of the machine, may have."""
    return min(_MOST_THREADS, _least_in("pids.max", "pids/pids.max"))


def _least_in(*names: str) -> float:
    """Return the least limit that the cgroup of this container sets; infinite where none is set."""
    limits = [math.inf]
    for name in names:
        with suppress(OSError, ValueError):
            limits.append(float(_CGROUP.joinpath(name).read_text(encoding="ascii")))
    return min(limits)
