"""A search index that is a layer over an older generation's.

A small change costs what it changes: the large index is neither copied nor loaded a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph.publish.mapped_store import MappedStore
from graph.publish.vector_store import VectorStore
from graph.publish.vectors import LastAsked, Stamp
from graph.storage.generation import Layer

_SPARE = 20


SearchIndex: TypeAlias = "VectorStore | MappedStore | LayeredStore"
"""The vectors of a generation's facts and passages, and the passages' metadata, to be searched."""


class LayeredStore:
    """A layer over a base: what the base holds, less what is removed, and what the layer holds."""

    shared = False

    def __init__(self, base: SearchIndex, top: SearchIndex, layer: Layer) -> None:
        self.where: str = base.where
        self._base = base
        self._top = top
        self._layer = layer
        self._removed = {name: frozenset(ids) for name, ids in layer.removed.items()}
        self._asked = LastAsked[tuple[list[str], list[str]]]()
        self._own = cache(lambda name: frozenset(top.fingerprints(name)))

    def count(self, name: str) -> int:
        """Return how many records both hold."""
        return self._base.count(name) - len(self._removed_of(name)) + self._top.count(name)

    def stamp(self, name: str) -> Stamp | None:
        """Return the layer's stamp; None where the base is not the one that it was laid over."""
        base = self._base.stamp(name)
        return self._top.stamp(name) if base is not None and base.is_at(self._layer.commit) else None

    def fingerprints(self, name: str) -> dict[str, str | None]:
        """Return {id: fingerprint} of every record of both."""
        removed = self._removed_of(name)
        kept = {key: content for key, content in self._base.fingerprints(name).items() if key not in removed}
        return kept | self._top.fingerprints(name)

    def vectors(self, name: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return {id: vector} of those ids that either holds."""
        return self._base.vectors(name, self._below(name, ids)) | self._top.vectors(name, self._above(name, ids))

    def search(
        self, name: str, vector: NDArray[np.float32], k: int, within: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """Search both, and merge what they find; see `VectorStore.search`."""
        if k < 1:
            return []
        removed = self._removed_of(name)
        if within is None:
            found = self._search_base(name, vector, k, removed)
            found += self._top.search(name, vector, k)
        else:
            below, above = self._parts(name, within)
            found = self._base.search(name, vector, k, within=below)
            found += self._top.search(name, vector, k, within=above)
        return sorted(found, key=lambda hit: -hit[1])[:k]

    def _search_base(
        self, name: str, vector: NDArray[np.float32], k: int, removed: frozenset[str]
    ) -> list[tuple[str, float]]:
        """Search the base for what is not removed: for some more at first, and for all that may be in the way last."""
        for wanted in sorted({min(k + _SPARE, k + len(removed)), k + len(removed)}):
            hits = self._base.search(name, vector, wanted)
            found = [hit for hit in hits if hit[0] not in removed]
            if len(found) >= k:
                break
        return found

    def select(self, where: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return the passages of both that meet a condition."""
        removed = self._removed_of("passages")
        kept = {key: known for key, known in self._base.select(where).items() if key not in removed}
        return kept | self._top.select(where)

    def close(self) -> None:
        """Let go of the files of both."""
        self._base.close()
        self._top.close()

    def _removed_of(self, name: str) -> frozenset[str]:
        return self._removed.get(name, frozenset())

    def _parts(self, name: str, within: Collection[str]) -> tuple[list[str], list[str]]:
        """Return which of some ids lie in the base and which in the layer; for the last few, the same lists again."""
        return self._asked.get(name, within, lambda: (self._below(name, within), self._above(name, within)))

    def _below(self, name: str, ids: Collection[str]) -> list[str]:
        hidden = self._removed_of(name) | self._own(name)
        return [key for key in ids if key not in hidden]

    def _above(self, name: str, ids: Collection[str]) -> list[str]:
        return [key for key in ids if key in self._own(name)]


def open_layers(
    folder: Path,
    base_folder: Path | None,
    layer: Layer | None,
    opening: Callable[[Path], SearchIndex] = VectorStore.embedded,
) -> SearchIndex:
    """Open the index in a folder, and the one that it lies on, if it lies on one.

    Raises:
        WorkspaceDamaged: one of them cannot be read.
    """
    if base_folder is None or layer is None:
        return opening(folder)
    base = opening(base_folder)
    try:
        return LayeredStore(base, opening(folder), layer)
    except BaseException:
        base.close()
        raise
