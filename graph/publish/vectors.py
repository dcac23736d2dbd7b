"""What lies in a search index: ids, vectors and metadata, and what a collection of them says of itself."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph.errors import MaraError, WorkspaceDamaged, shortage_behind
from graph.metadata_filter import FINGERPRINT, askable_metadata

_MODEL, _COMMIT, _HOLDS, _WRITING = "mara_embedding_model", "mara_commit", "mara_holds", "mara_writing"
_METADATA_FORMAT = "2"
"""Part of every passage's fingerprint: what an older version wrote is written again."""


Ids: TypeAlias = Sequence[str]
Metadata: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]
Vector: TypeAlias = NDArray[np.float32]
Hits: TypeAlias = list[tuple[str, float]]
"""The ids and cosines of what was found, nearest first."""


class Rows(Protocol):
    """A matrix, or what reads some rows of one when they are asked for."""

    def __getitem__(self, rows: list[int], /) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class Vectors:
    """The wanted content of a collection: ids, unit vectors, and the metadata of each."""

    ids: Sequence[str]
    vectors: Rows
    metadata: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The metadata of a collection.

    Attributes:
        embedding_model: whose vectors it holds.
        commit: the commit of the record that it was last brought up to; empty where that was not said.
        holds: commits all of whose ids it holds, ``commit`` among them; of older ones those that were to be spared.
        writing: the commit that somebody is bringing it up to, or was when he was killed; else empty.
    """

    embedding_model: str
    commit: str = ""
    holds: frozenset[str] = frozenset()
    writing: str = ""

    @staticmethod
    def of(metadata: Mapping[str, Any] | None) -> Stamp:
        """Read the stamp in a collection's metadata."""
        kept = {key: str(value) for key, value in (metadata or {}).items()}
        holds = frozenset(kept.get(_HOLDS, "").split())
        return Stamp(kept.get(_MODEL, ""), kept.get(_COMMIT, ""), holds, kept.get(_WRITING, ""))

    def is_at(self, commit: str) -> bool:
        """Tell whether the collection is exactly as far as a commit."""
        return self.commit == commit and not self.writing

    def metadata(self) -> dict[str, str]:
        """Return what `of` reads."""
        kept = {_COMMIT: self.commit, _HOLDS: " ".join(sorted(self.holds)), _WRITING: self.writing}
        return {_MODEL: self.embedding_model, **{key: value for key, value in kept.items() if value}}


def passage_metadata(fingerprint: str, source: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Chroma keeps of a passage: what ``where`` filters may ask for, and the record's fingerprint.

    Keys that are reserved are left out; the record keeps them.
    """
    return {**askable_metadata({**metadata, "source": source}), FINGERPRINT: stored_fingerprint(fingerprint)}


def stored_fingerprint(fingerprint: str) -> str:
    """Return how a passage's fingerprint stands in Chroma."""
    return f"{_METADATA_FORMAT}:{fingerprint}"


T = TypeVar("T")

_KEPT = 16


class LastAsked(Generic[T]):
    """What was worked out of the last few collections, told apart as objects: comparing them would take as long.

    Safe across threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], tuple[Collection[str], T]] = OrderedDict()

    def get(self, name: str, ids: Collection[str], work_out: Callable[[], T]) -> T:
        """Return what is kept of some ids of a collection, or work it out."""
        asked = name, id(ids)
        with self._lock:
            kept = self._kept.get(asked)
        # It is kept with the ids, so that no others are at their place in memory meanwhile.
        found = kept[1] if kept is not None and kept[0] is ids else work_out()
        with self._lock:
            self._kept[asked] = ids, found
            self._kept.move_to_end(asked)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def damaged(fault: Exception) -> MaraError:
    """Return the error of a search index whose files cannot be read."""
    return shortage_behind(fault) or WorkspaceDamaged(
        f"The search index cannot be used ({type(fault).__name__}: {fault})",
        "Run `mara index` again: it is rebuilt from the record",
    )
