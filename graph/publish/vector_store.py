"""Vector stores: a protocol of a few methods, which an entry point of the group ``mara.vector_stores`` names.

A store keeps sets. A set is written once, by one generation, and never changed: it has the vectors of all of the
generation's facts and passages, or of those that changed since an older set. Its vectors are numbered from 0 on, in the
order in which they were written. `graph.publish.generation_vectors` sees to the rest: what a generation consists of,
which rows of it a number stands for, and which passages a filter selects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph.endpoints.address import unreadable
from graph.environment import environment
from graph.errors import DependencyMissing, MaraError, WorkspaceDamaged, shortage_behind

GROUP = "mara.vector_stores"
EMBEDDED = "chroma"
"""The store of new workspaces, and of those that no server may hold."""

COLLECTIONS = ("facts", "passages")

VECTORS_VARIABLE = "MARA_VECTORS"
"""Names the store of the next generation, with its server's address."""

Vector: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.intp]
Hits: TypeAlias = list[tuple[int, float]]
"""Numbers and cosines of what was found, nearest first."""


def named_store() -> tuple[str, str]:
    """Return the store of the next generation, which ``MARA_VECTORS`` names, and its server's address.

    Both may be empty; an empty name keeps the store that a workspace has.

    Raises:
        BadInput: what it holds begins with no store's name; the message shows nothing secret of it.
    """
    name, _, url = environment().mara_vectors.strip().partition("+")
    if not re.fullmatch(r"[\w.-]*", name) or (url and "://" not in url):
        raise unreadable(VECTORS_VARIABLE, "mapped or chroma+http://host:8000")
    return name, url


@dataclass(frozen=True, slots=True)
class Place:
    """Where a set lies.

    Attributes:
        folder: of the generation that wrote it.
        store: the name of what keeps it.
        key: the set's own, never used twice.
        prefix: what the names of a workspace's sets on a server begin with; empty where no server may hold them.
    """

    folder: Path
    store: str
    key: str
    prefix: str = ""

    @property
    def files(self) -> Path:
        """The folder for what a store keeps in files; nothing else lies there."""
        return self.folder / self.store / self.key

    def collection(self, name: str) -> str:
        """Return the name on a server of the set's facts or passages."""
        return f"{self.prefix}{self.key}-{name}"


@dataclass(frozen=True, slots=True)
class Vectors:
    """The unit vectors that are to be written as the facts or the passages of a set.

    Attributes:
        count: how many there are.
        dimension: how long each is.
        blocks: yields them in their order, some thousand at a time.
        file: in the generation's folder, one of ``numpy.save`` that has them all; None where there is none.
    """

    count: int
    dimension: int
    blocks: Callable[[], Iterator[Vector]]
    file: Path | None = None

    def pages(self, size: int) -> Iterator[tuple[int, Vector]]:
        """Yield the number of the first vector and the vectors of blocks of at most some size."""
        start = 0
        for block in self.blocks():
            for first in range(0, len(block), size):
                page = block[first : first + size]
                yield start, page
                start += len(page)


@dataclass(frozen=True, slots=True)
class OpenCost:
    """The resources that something open takes, or may take.

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


class OpenSet(Protocol):
    """A set that is open for reading. Safe across threads."""

    def count(self, name: str) -> int:
        """Return how many facts or passages it has."""

    def search(self, name: str, vector: Vector, k: int, within: Numbers | None = None) -> Hits:
        """Return the ``k`` nearest to a unit vector, at least 1; with ``within``, ascending and not empty, of those."""

    def vectors(self, name: str, numbers: Sequence[int]) -> Vector:
        """Return some vectors as a search reads them, in the order of their numbers as they are given."""

    def close(self) -> None:
        """Let go of what is open."""


class VectorStore(Protocol):
    """A store of sets. It is made without arguments, and reads the environment when it is asked.

    It raises WorkspaceDamaged where a set cannot be read, so that it is made again from the record, and
    StoreUnavailable where its server does not answer.
    """

    @property
    def remote(self) -> bool:
        """Whether sets are kept by a server, in collections that `Place.collection` names."""

    def address(self, place: Place) -> str:
        """Return what results say of where a set lies: one word, or a server's address without its secrets."""

    def write(self, place: Place, vectors: Mapping[str, Vectors]) -> None:
        """Write a set, which has ``facts`` and ``passages``."""

    def open(self, place: Place, *, untouched: bool = False) -> OpenSet:
        """Open a set; ``untouched``: so that not a byte of its files changes."""

    def cost(self, place: Place) -> OpenCost:
        """Return what a set takes of this process while it is open."""

    def forget(self, prefix: str, kept: Collection[str]) -> None:
        """Delete a workspace's sets on the server but for those of some keys."""


@cache
def installed_stores() -> Mapping[str, EntryPoint]:
    """Return the stores that are installed, by name; none is imported yet."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


@cache
def store_named(name: str) -> VectorStore:
    """Return a store. Raises DependencyMissing where none of that name is installed."""
    if name not in installed_stores():
        raise DependencyMissing(
            f"The vector store {name!r} is not installed",
            "Install the package that has it; mara's own are there once mara is installed again",
        )
    store: VectorStore = installed_stores()[name].load()()
    return store


def damaged(fault: Exception) -> MaraError:
    """Return the error of a set whose files cannot be read."""
    return shortage_behind(fault) or WorkspaceDamaged(
        f"The search index cannot be used ({type(fault).__name__}: {fault})",
        "Run `mara index` again: it is rebuilt from the record",
    )


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder and below it; 0 where there is none."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
