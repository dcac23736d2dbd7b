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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from graph.environment import environment
from graph.errors import BadInput
from graph.publish.vector_store import OpenCost, Place, size_of, store_named
from graph.storage.generation import Layer

OPEN_BYTES_VARIABLE = "MARA_OPEN_BYTES"
"""Names the memory that the open workspaces of a process may take together."""

_SHARE = 0.5
"""Of the memory, open files and threads that a process may have: what open workspaces may take by default."""

_UNKNOWN_MEMORY = 4 * 2**30
_MOST_THREADS = 16_000
"""Half of what Linux numbers by default: threads of all processes together."""

_CGROUP = Path("/sys/fs/cgroup")

_OWN_BYTES = 300_000
_OWN_FILES = 8
"""Of a generation, however small, beside what follows from the sizes of its files."""

_PER_BYTE = 2.0
"""Of memory for each byte of the other files: mapped pages, and what is derived from them once questions are asked."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT])(?:i?B)?|B)?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


Parts = Mapping[Path, OpenCost]
"""The parts of an open generation, by folder: two generations may lie on one set of vectors, open once."""


def parts_of(folder: Path) -> Parts:
    """Return what an open generation takes, by what it consists of."""
    layer = Layer.load(folder)
    sets = {} if layer is None else {folder: layer.key, folder.parent / str(layer.base): layer.base_key}
    places = [Place(generation, layer.store, key) for generation, key in sets.items()] if layer else []
    own = size_of(folder) - sum(size_of(place.files) for place in places if place.folder == folder)
    costs = {place.files: store_named(place.store).cost(place) for place in places}
    return {folder: OpenCost(_OWN_BYTES + _PER_BYTE * own, files=_OWN_FILES), **costs}


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
