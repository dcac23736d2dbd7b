"""One collection of Chroma's as several: each is an index of its own, which is loaded, and grows, as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

SHARDS = "mara_shards"
"""Under this key a collection says in how many others its records are; it holds none itself then."""

MOST_IN_SHARD = 1_000_000
"""Records a collection: 1.7 GB of vectors and links, of 384 dimensions, that are loaded at once."""

_KEPT_FROM = 0.5
_KEPT_TO = 2.0


def shards_for(size: int, present: int = 1) -> int:
    """Return in how many collections so many records are to be: as many as ``present`` unless those are off by far."""
    if _KEPT_FROM <= size / (present * MOST_IN_SHARD) <= _KEPT_TO and present > 1:
        return present
    return max(1, -(-size // MOST_IN_SHARD))


def shard_name(name: str, shard: int) -> str:
    """Return the name of one of the collections that a collection's records are in."""
    return f"{name}-{shard}"


class ShardedCollection:
    """Several collections that are asked as one. A record is in that which a checksum of its id names."""

    def __init__(
        self,
        head: Any,
        shards: Sequence[Any],
        pages: Callable[..., Iterator[Any]],
        known: Callable[[Any, Sequence[str]], Sequence[str]] | None,
    ) -> None:
        """Take the collection that says what there is, and those that hold it.

        Args:
            head: the former.
            shards: the latter.
            pages: reads one of those page by page.
            known: returns which ids one of those holds; None where only such are searched within.
        """
        self._head = head
        self._shards = shards
        self._pages = pages
        self._known = known

    @property
    def metadata(self) -> dict[str, Any]:
        """What the whole says of itself."""
        return dict(self._head.metadata)

    @property
    def n_shards(self) -> int:
        """In how many collections the records are."""
        return len(self._shards)

    def modify(self, *, metadata: Mapping[str, Any]) -> None:
        """Change what the whole says of itself."""
        self._head.modify(metadata={**metadata, SHARDS: len(self._shards)})

    def count(self) -> int:
        """Return how many records all hold."""
        return sum(int(shard.count()) for shard in self._shards)

    def upsert(
        self,
        *,
        ids: Sequence[str],
        embeddings: NDArray[np.float32],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Put records in, in place of those of the same ids."""
        for shard, rows in self._rows(ids):
            shard.upsert(
                ids=[ids[row] for row in rows],
                embeddings=embeddings[rows],
                metadatas=None if metadatas is None else [metadatas[row] for row in rows],
            )

    def delete(self, *, ids: Sequence[str]) -> None:
        """Take records out; those that are not there do not matter."""
        for shard, rows in self._rows(ids):
            shard.delete(ids=[ids[row] for row in rows])

    def get(self, *, ids: Sequence[str], include: Sequence[str]) -> dict[str, Any]:
        """Return those of some records that any holds, as Chroma does."""
        parts = [shard.get(ids=[ids[row] for row in rows], include=list(include)) for shard, rows in self._rows(ids)]
        answer: dict[str, Any] = {"ids": [key for part in parts for key in part["ids"]]}
        for name in include:
            answer[name] = [each for part in parts for each in part[name]]
        return answer

    def pages(self, *, include: Sequence[str], where: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Yield all records, or those that meet a condition, page by page."""
        asked = {} if where is None else {"where": dict(where)}
        for shard in self._shards:
            yield from self._pages(shard, include=list(include), **asked)

    def query(
        self,
        *,
        query_embeddings: Sequence[NDArray[np.float32]],
        n_results: int,
        include: Sequence[str],
        ids: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return ids and distances of the records nearest to one vector, as Chroma does."""
        hits: list[tuple[float, str]] = []
        for shard, within in self._within(ids):
            found = shard.query(
                query_embeddings=query_embeddings, n_results=n_results, include=list(include), ids=within
            )
            hits += zip(found["distances"][0], found["ids"][0], strict=True)
        nearest = nsmallest(n_results, hits)
        return {"ids": [[key for _, key in nearest]], "distances": [[distance for distance, _ in nearest]]}

    def _within(self, ids: Sequence[str] | None) -> Iterator[tuple[Any, list[str] | None]]:
        """Yield each collection with the ids that a search is within there."""
        if ids is None:
            yield from ((shard, None) for shard in self._shards)
            return
        for shard, rows in self._rows(ids):
            mine = [ids[row] for row in rows]
            known = mine if self._known is None else [*self._known(shard, mine)]
            if known:
                yield shard, known

    def _rows(self, ids: Sequence[str]) -> Iterator[tuple[Any, list[int]]]:
        """Yield each collection with the places of the ids that it is for, if there are any."""
        rows: list[list[int]] = [[] for _ in self._shards]
        for row, key in enumerate(ids):
            rows[crc32(key.encode()) % len(self._shards)].append(row)
        return ((shard, mine) for shard, mine in zip(self._shards, rows, strict=True) if mine)
