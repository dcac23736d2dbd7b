"""The collections of Chroma, or of what is asked as Chroma is: finding, making, deleting and paging through them.

Of many records, one collection is several of Chroma's: each is an index of its own, which is loaded, and grows, whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Protocol, TypeVar, runtime_checkable
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from graph.metadata_filter import FINGERPRINT
from graph.publish.qdrant_collections import QdrantCollections
from graph.publish.vectors import Stamp

T = TypeVar("T")

_PAGE = 5000
EF_SEARCH = 1000
"""How many records a search looks at. Measured on 17,000 facts, in any order of building, the best ten come out exact
in 2.8 ms; 400 miss one of them for 1 question in 400 in 1.6 ms, 100 for 1 in 12 in 1.0 ms."""


SHARDS = "mara_shards"
"""Under this key a collection says in how many others its records are; it holds none itself then."""

MOST_IN_SHARD = 1_000_000
"""Records a collection: 1.7 GB of vectors and links, of 384 dimensions, that are loaded at once."""

_KEPT_FROM = 0.5
_KEPT_TO = 2.0


@runtime_checkable
class Paged(Protocol):
    """A collection that yields its own pages, rather than being asked for one after the other; ids are unknown to none.

    Whatever ids a search is within, those that it does not hold do not matter.
    """

    def pages(self, *, include: Sequence[str], where: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Yield all records, or those that meet a condition, as Chroma would, page by page."""


class Collections:
    """The collections of one workspace, by name; those that were looked at are kept."""

    def __init__(self, client: Any, prefix: str, *, shared: bool) -> None:
        """Take a client, what begins all names, and whether other generations' records lie there, too."""
        self._client = client
        self._prefix = prefix
        self._shared = shared
        self._open: dict[str, Any] = {}

    def forget(self) -> None:
        """Look at every collection again: it may have been made anew."""
        self._open.clear()

    def ready(self, name: str, embedding_model: str, size: int) -> Any:
        """Return a collection to write so many records to; where there is none, or another model's, it is made."""
        collection = self.find(name)
        n_shards = self._shards_for(size, collection)
        if collection is not None and (
            Stamp.of(collection.metadata).embedding_model != embedding_model or n_shards != _n_shards(collection)
        ):
            self.delete(name, collection)
            collection = None
        if collection is None:
            collection = self._make(name, embedding_model, n_shards)
        elif not isinstance(collection, Paged) and collection.configuration_json["hnsw"]["ef_search"] != EF_SEARCH:
            # An index that a server holds in memory looks at as many as before until it is loaded again.
            collection.modify(configuration={"hnsw": {"ef_search": EF_SEARCH}})
        self._open[name] = collection
        return collection

    def _shards_for(self, size: int, collection: Any) -> int:
        """Return in how many of Chroma's collections records are to be; Qdrant sees to that itself."""
        return 1 if isinstance(self._client, QdrantCollections) else shards_for(size, _n_shards(collection))

    def _make(self, name: str, embedding_model: str, n_shards: int) -> Any:
        """Make a collection, and those that its records are in where there are several."""
        stamp = Stamp(embedding_model).metadata()
        names = [self._prefix + name]
        if n_shards > 1:
            names += [shard_name(self._prefix + name, shard) for shard in range(n_shards)]
        for left in {each.name for each in self._client.list_collections()} & {*names[1:]} if n_shards > 1 else ():
            self._client.delete_collection(left)
        for one in reversed(names):
            self._client.get_or_create_collection(
                one,
                embedding_function=None,
                metadata={**stamp, **({SHARDS: n_shards} if n_shards > 1 else {})},
                configuration={"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}},
            )
        return self.open(name)

    def delete(self, name: str, collection: Any) -> None:
        """Delete a collection, and those that its records are in."""
        for shard in range(_n_shards(collection) if isinstance(collection, ShardedCollection) else 0):
            self._client.delete_collection(shard_name(self._prefix + name, shard))
        self._client.delete_collection(self._prefix + name)
        self._open.pop(name, None)

    def find(self, name: str) -> Any:
        """Return a collection as it is now, or None where there is none."""
        from chromadb.errors import NotFoundError

        try:
            return self._get(name)
        except (NotFoundError, LookupError):
            return None

    def open(self, name: str) -> Any:
        """Return a collection that was looked at before, or looks. Raises what the client does where there is none."""
        if name not in self._open:
            self._open[name] = self._get(name)
        return self._open[name]

    def _get(self, name: str) -> Any:
        """Return a collection, or several as one. Raises what the client does where there is none."""
        head = self._client.get_collection(self._prefix + name, embedding_function=None)
        n_shards = int((head.metadata or {}).get(SHARDS, 1))
        if n_shards == 1:
            return head
        names = [shard_name(self._prefix + name, shard) for shard in range(n_shards)]
        shards = [self._client.get_collection(each, embedding_function=None) for each in names]
        return ShardedCollection(head, shards, shared=self._shared)


def pages_of(collection: Any, **asked: Any) -> Iterator[Any]:
    """Yield what a collection answers, page by page."""
    if isinstance(collection, Paged):
        yield from collection.pages(**asked)
        return
    offset = 0
    while True:
        page = collection.get(limit=_PAGE, offset=offset, **asked)
        yield page
        if len(page["ids"]) < _PAGE:
            return
        offset += _PAGE


def held_in(collection: Any) -> Iterator[tuple[str, str | None]]:
    """Yield (id, fingerprint) of every record; the fingerprint is None where there is no metadata."""
    for page in pages_of(collection, include=["metadatas"]):
        for key, metadata in zip(page["ids"], page["metadatas"], strict=True):
            yield key, str(metadata[FINGERPRINT]) if metadata else None


def known_in(collection: Any, ids: Sequence[str]) -> list[str]:
    """Return those ids that the collection holds; Chroma searches within no others."""
    return [key for page in split(ids) for key in collection.get(ids=list(page), include=[])["ids"]]


def split(whole: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield a sequence in pages that Chroma takes."""
    return (whole[start : start + _PAGE] for start in range(0, len(whole), _PAGE))


def _n_shards(collection: Any) -> int:
    return collection.n_shards if isinstance(collection, ShardedCollection) else 1


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

    def __init__(self, head: Any, shards: Sequence[Any], *, shared: bool) -> None:
        """Take the collection that says what there is, those that hold it, and whether other generations' lie there."""
        self._head = head
        self._shards = shards
        self._shared = shared

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
            yield from pages_of(shard, include=list(include), **asked)

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
            known = known_in(shard, mine) if self._shared else mine
            if known:
                yield shard, known

    def _rows(self, ids: Sequence[str]) -> Iterator[tuple[Any, list[int]]]:
        """Yield each collection with the places of the ids that it is for, if there are any."""
        rows: list[list[int]] = [[] for _ in self._shards]
        for row, key in enumerate(ids):
            rows[crc32(key.encode()) % len(self._shards)].append(row)
        return ((shard, mine) for shard, mine in zip(self._shards, rows, strict=True) if mine)
