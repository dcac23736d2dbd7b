"""The vector search index: Chroma, embedded in the workspace or behind a server. Derived from the record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from graph.endpoints import chroma_server, qdrant_server
from graph.errors import DiskFull, MaraError, WorkspaceDamaged
from graph.metadata_filter import FINGERPRINT
from graph.publish.chroma_files import close_client, open_client, wipe_unused
from graph.publish.qdrant_collections import QdrantCollection, QdrantCollections
from graph.publish.vectors import Answer, Hits, Ids, Metadata, Stamp, Vector, Vectors, damaged
from graph.storage.read_only import may_write, writable_copy

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
        """Take the collection that says what there is, those that hold it, and whether others' records lie there."""
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

    def upsert(self, *, ids: Ids, embeddings: Vector, metadatas: Sequence[Metadata] | None = None) -> None:
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

    def query(self, *, query_embeddings: list[Vector], n_results: int, include: Ids, ids: Ids | None = None) -> Answer:
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


_PAGED = (ShardedCollection, QdrantCollection)
"""What yields its own pages, and does not mind ids that it does not hold, whatever ids a search is within."""


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
        elif not isinstance(collection, _PAGED) and collection.configuration_json["hnsw"]["ef_search"] != EF_SEARCH:
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
    if isinstance(collection, _PAGED):
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


_MOST_METADATA = 5_000
"""Measured: at 5,461 a passage, the statement that Chroma writes them with has too many parameters for SQLite."""

_UNNAMED = "unnamed"


class VectorStore:
    """Two collections, ``facts`` and ``passages``; every record is an id, a vector and, for passages, metadata.

    Of over a million records, Chroma holds each as several: see `ShardedCollection`.
    """

    def __init__(
        self,
        client: Any,
        where: str,
        prefix: str = "",
        folder: Path | None = None,
        unavailable: Callable[[str, Exception], MaraError] = chroma_server.unavailable,
    ) -> None:
        self._client = client
        self._unavailable = unavailable
        self._folder = folder
        self._searched: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._copy: TemporaryDirectory[str] | None = None
        self._prefix = prefix
        self.where = where
        """``embedded`` or the server's address without its secrets: said in every result."""
        self.shared = where != "embedded"
        """Whether all generations lie in the same collections, rather than each in its own."""
        self._collections = Collections(client, prefix, shared=self.shared)

    @staticmethod
    def embedded(folder: Path, *, to_write: bool = False) -> VectorStore:
        """Open the Chroma database in a folder, which no other process may be writing.

        Chroma writes into what it opens: one that may not be written, or whose disk is full, is copied first.

        Raises:
            WorkspaceDamaged: it cannot be read.
            BadInput: there is no room for the copy.
            OutOfResources: the machine gives no more memory or open files.
        """
        copy = writable_copy(folder) if folder.is_dir() and not may_write(folder) else None
        try:
            client = _opened(folder if copy is None else Path(copy.name))
        except DiskFull:
            if copy is not None or to_write:
                raise
            copy = writable_copy(folder)
            client = _opened(Path(copy.name))
        folder = folder if copy is None else Path(copy.name)
        store = VectorStore(client, "embedded", folder=folder)
        store._copy = copy
        return store

    @staticmethod
    def server(url: str, prefix: str) -> VectorStore:
        """Connect to a Chroma server; the names of a workspace's collections begin with a prefix of its own.

        Raises:
            BadInput: the address is not one.
            StoreUnavailable: the server does not answer.
        """
        address = chroma_server.server_address(url)
        return VectorStore(chroma_server.connect(address), address.url, prefix)

    @staticmethod
    def qdrant(prefix: str) -> VectorStore:
        """Connect to the Qdrant server of ``MARA_QDRANT_URL``; a workspace's collections begin with a prefix.

        Raises:
            BadInput: the address is not one, or is not set.
            DependencyMissing: qdrant-client is not installed.
        """
        address = qdrant_server.qdrant_address()
        client = QdrantCollections(qdrant_server.connect(address))
        return VectorStore(client, address.url, prefix, unavailable=qdrant_server.unavailable)

    def close(self) -> None:
        """Let go of the client; an embedded database's files are free after that."""
        if not self.shared:
            close_client(self._client)
            if self._copy is not None:
                self._copy.cleanup()

    def count(self, name: str) -> int:
        """Return how many records a collection holds; 0 when it does not exist."""
        with self._faults():
            collection = self._collections.find(name)
            return 0 if collection is None else int(collection.count())

    def stamp(self, name: str) -> Stamp | None:
        """Return what a collection says of itself; None when it does not exist."""
        with self._faults():
            collection = self._collections.find(name)
            return None if collection is None else Stamp.of(collection.metadata)

    def fingerprints(self, name: str) -> dict[str, str | None]:
        """Return {id: fingerprint} of every record; the fingerprint is None where there is no metadata."""
        with self._faults():
            collection = self._collections.find(name)
            return {} if collection is None else dict(held_in(collection))

    def vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return {id: vector} of those ids that a collection holds, read as a search reads them."""
        found: dict[str, Vector] = {}
        with self._faults():
            collection = self._collections.find(name)
            for page in split(ids) if collection is not None else ():
                held = collection.get(ids=list(page), include=["embeddings"])
                found.update(zip(held["ids"], np.asarray(held["embeddings"], dtype=np.float32), strict=True))
        return found

    def search(self, name: str, vector: Vector, k: int, within: Collection[str] | None = None) -> Hits:
        """Return the ids and cosines of the ``k`` records nearest to a unit vector, nearest first.

        With ``within``, of those records alone: found by going through the index past all others, in some
        milliseconds however few they are. An embedded index of up to a thousand records is searched exactly.
        """
        if k < 1:
            return []
        with self._faults():
            collection = self._collections.open(name)
            if within is not None and self.shared and not isinstance(collection, _PAGED):
                within = known_in(collection, [*within])
            if within is not None and not within:
                return []
            size = 0 if self.shared else self._size(name) if within is None else len(within)
            few = size if size <= EF_SEARCH else 0
            found = collection.query(
                query_embeddings=[vector],
                n_results=max(k, few),
                include=["distances"],
                ids=None if within is None else [*within],
            )
        if name not in self._searched and self._folder is not None:
            # The first search makes the files anew that an index of few records never fills.
            wipe_unused(self._folder)
            self._searched.add(name)
        hits = [(key, 1.0 - float(d)) for key, d in zip(found["ids"][0], found["distances"][0], strict=True)]
        if len(hits) < few:
            hits = self._with_unreached(name, hits, vector, within)
        return hits[:k]

    def _size(self, name: str) -> int:
        """Return how many records an embedded collection holds, which nobody writes while it is searched."""
        if name not in self._sizes:
            self._sizes[name] = self.count(name)
        return self._sizes[name]

    def _with_unreached(self, name: str, hits: Hits, vector: Vector, within: Collection[str] | None) -> Hits:
        """Add what the graph of the index has no way to: it is laid out on several threads, anew in each process."""
        known = set(self.fingerprints(name) if within is None else within)
        unreached = self.vectors(name, sorted(known - {key for key, _ in hits}))
        added = [(key, float(np.dot(held, vector))) for key, held in unreached.items()]
        return sorted([*hits, *added], key=lambda hit: -hit[1])

    def select(self, where: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return {id: metadata} of the passages that Chroma selects; the metadata only from a server, else empty.

        A server may hold a passage as a newer generation has it, which the metadata tell.
        """
        include = ["metadatas"] if self.shared else []
        selected: dict[str, Mapping[str, Any]] = {}
        with self._faults():
            for page in pages_of(self._collections.open("passages"), where=dict(where), include=include):
                selected.update(zip(page["ids"], page["metadatas"] or [{}] * len(page["ids"]), strict=True))
        return selected

    def synchronise(
        self,
        name: str,
        wanted: Vectors,
        embedding_model: str,
        *,
        commit: str = "",
        spared: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Make a collection hold exactly ``wanted``: write what is new or changed, delete what is gone.

        Everything held is listed for it. Another model's collection is built again.

        Args:
            name: the collection.
            wanted: what it is to hold.
            embedding_model: whose vectors they are.
            commit: the record's commit that it is brought up to.
            spared: {commit: ids} of other generations that may be read: what of them is held is not deleted.
        """
        spared = spared or {}
        with self._faults():
            collection = self._collections.ready(name, embedding_model, len(wanted.ids))
            held = dict(held_in(collection))
            gone = sorted(held.keys() - set(wanted.ids) - set(chain.from_iterable(spared.values())))
            rows = [i for i, key in enumerate(wanted.ids) if held.get(key, "") != _fingerprint_of(wanted, i)]
            replaced = [] if self.shared else [wanted.ids[i] for i in rows if wanted.ids[i] in held]
            self._write(collection, wanted, rows, gone, commit, spared, replaced)

    def apply(
        self,
        name: str,
        changed: Vectors,
        removed: Sequence[str],
        embedding_model: str,
        *,
        base: str,
        commit: str,
        spared: Collection[str] = (),
    ) -> bool:
        """Bring a collection from one commit to another by what the caller knows to differ; nothing is listed.

        Args:
            name: the collection.
            changed: what is new or changed.
            removed: ids to delete; those that are not held do not matter.
            embedding_model: whose vectors they are.
            base: the commit that the collection has to be at.
            commit: the commit that it is brought up to.
            spared: commits that none of the removed ids belongs to.

        Returns:
            Whether it could be done. Where not, as the collection is not at ``base``, nothing was written.
        """
        with self._faults():
            collection = self._collections.find(name)
            if collection is None:
                return False
            stamp = Stamp.of(collection.metadata)
            if not base or not stamp.is_at(base) or stamp.embedding_model != embedding_model:
                return False
            self._write(collection, changed, range(len(changed.ids)), removed, commit, spared)
        return True

    def drop(self) -> None:
        """Delete this workspace's collections."""
        with self._faults():
            for name in ("facts", "passages"):
                if (collection := self._collections.find(name)) is not None:
                    self._collections.delete(name, collection)
        self._collections.forget()

    def _write(
        self,
        collection: Any,
        wanted: Vectors,
        rows: Sequence[int],
        gone: Sequence[str],
        commit: str,
        spared: Collection[str],
        replaced: Sequence[str] = (),
    ) -> None:
        """Write some rows and delete some ids; the stamp says before what is begun, and after what is done.

        What is ``replaced`` is deleted first: Chroma replays its log on several threads, and would move a vector in
        place while others are put in. Of an index that others read, nothing may be missing meanwhile.
        """
        _check_number_of_metadata(wanted, rows)
        before = Stamp.of(collection.metadata)
        if not rows and not gone and commit and before.is_at(commit):
            return
        self._sizes.clear()
        holds = before.holds & {*spared, *([] if gone else [before.commit])}
        _put(collection, Stamp(before.embedding_model, before.commit, holds, commit or _UNNAMED))
        _delete(collection, replaced)
        for page in split(rows):
            collection.upsert(
                ids=[wanted.ids[i] for i in page],
                embeddings=wanted.vectors[list(page)],
                metadatas=[dict(wanted.metadata[i]) for i in page] if wanted.metadata is not None else None,
            )
        _delete(collection, gone)
        _put(collection, Stamp(before.embedding_model, commit, holds | {commit} - {""}))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceDamaged:
            raise
        except Exception as fault:
            # It may have been made anew: the next call looks.
            self._collections.forget()
            raise (self._unavailable(self.where, fault) if self.shared else damaged(fault)) from fault


def _check_number_of_metadata(wanted: Vectors, rows: Sequence[int]) -> None:
    """Raise WorkspaceDamaged naming the passage that Chroma would fail on, and with it on everything."""
    if wanted.metadata is None:
        return
    for row in rows:
        count = len(wanted.metadata[row])
        if count > _MOST_METADATA:
            raise WorkspaceDamaged(
                f"The passage {wanted.ids[row]!r} has {count:,} metadata, more than the search index takes",
                "Index its source again, which leaves out what is over the limits, or remove it with `mara remove ID`",
            )


def _fingerprint_of(wanted: Vectors, row: int) -> str | None:
    return str(wanted.metadata[row][FINGERPRINT]) if wanted.metadata is not None else None


def _delete(collection: Any, ids: Sequence[str]) -> None:
    for page in split(ids):
        collection.delete(ids=list(page))


def _put(collection: Any, stamp: Stamp) -> None:
    collection.modify(metadata=stamp.metadata())


def _opened(folder: Path) -> Any:
    try:
        return open_client(folder)
    except MaraError:
        raise
    except Exception as fault:
        raise damaged(fault) from fault
