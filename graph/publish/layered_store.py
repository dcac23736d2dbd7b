"""An embedded index that is a layer over an older generation's.

A small change costs what it changes: the large index is neither copied nor loaded a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.publish.vector_store import Stamp, VectorStore
from graph.storage.generation import Layer


class LayeredStore:
    """A layer over a base: what the base holds, less what is removed, and what the layer holds."""

    where = "embedded"
    shared = False

    def __init__(self, base: VectorStore, top: VectorStore, layer: Layer) -> None:
        self._base = base
        self._top = top
        self._layer = layer
        self._removed = {name: frozenset(ids) for name, ids in layer.removed.items()}
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
        self, name: str, vector: NDArray[np.float32], k: int, within: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """Search both, and merge what they find; see `VectorStore.search`."""
        if k < 1:
            return []
        removed = self._removed_of(name)
        if within is None:
            found = self._base.search(name, vector, k + len(removed))
            found = [hit for hit in found if hit[0] not in removed]
            found += self._top.search(name, vector, k)
        else:
            found = self._base.search(name, vector, k, within=self._below(name, within))
            found += self._top.search(name, vector, k, within=self._above(name, within))
        return sorted(found, key=lambda hit: -hit[1])[:k]

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

    def _below(self, name: str, ids: Sequence[str]) -> list[str]:
        hidden = self._removed_of(name) | self._own(name)
        return [key for key in ids if key not in hidden]

    def _above(self, name: str, ids: Sequence[str]) -> list[str]:
        return [key for key in ids if key in self._own(name)]


SearchIndex = VectorStore | LayeredStore
"""What a generation is searched by: one Chroma, or one layer over another."""


def open_layers(folder: Path, base_folder: Path | None, layer: Layer | None) -> SearchIndex:
    """Open the embedded index in a folder, and the one that it lies on, if it lies on one.

    Raises:
        WorkspaceDamaged: one of them cannot be read.
    """
    if base_folder is None or layer is None:
        return VectorStore.embedded(folder)
    base = VectorStore.embedded(base_folder)
    try:
        return LayeredStore(base, VectorStore.embedded(folder), layer)
    except BaseException:
        base.close()
        raise
