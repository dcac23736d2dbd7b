"""The vector search index: Chroma, embedded in the workspace or behind a server. Derived from the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from graph.errors import BadInput, StoreUnavailable, WorkspaceDamaged
from graph.where import FINGERPRINT, askable_metadata

_PAGE = 5000
_EF_SEARCH = 100
_MODEL = "mara_embedding_model"
_METADATA_FORMAT = "2"
"""Part of every passage's fingerprint: what an older version wrote is written again."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """What a collection should hold: ids, unit vectors, and what is known of each."""

    ids: Sequence[str]
    vectors: NDArray[np.float32]
    metadata: Sequence[Mapping[str, Any]] | None = None


class VectorStore:
    """Two collections, ``facts`` and ``passages``; every record is an id, a vector and, for passages, metadata."""

    def __init__(self, client: Any, where: str, prefix: str = "") -> None:
        self._client = client
        self._prefix = prefix
        self._collections: dict[str, Any] = {}
        self.where = where
        """``embedded`` or the server's address: said in every result."""

    @staticmethod
    def embedded(folder: Path) -> VectorStore:
        """Open the Chroma database in a folder, which no other process may be writing.

        Raises:
            WorkspaceDamaged: it cannot be read.
        """
        import chromadb
        from chromadb.config import Settings

        try:
            client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        except Exception as fault:
            raise _damaged(fault) from fault
        return VectorStore(client, "embedded")

    @staticmethod
    def server(url: str, workspace_id: str) -> VectorStore:
        """Connect to a Chroma server; this workspace's collections are prefixed by its id.

        Raises:
            BadInput: the address is not one.
            StoreUnavailable: the server does not answer.
        """
        import chromadb
        from chromadb.config import Settings

        secure, host, port = _address(url)
        try:
            client = chromadb.HttpClient(
                host=host,
                port=port,
                ssl=secure,
                settings=Settings(anonymized_telemetry=False),
            )
        except Exception as fault:
            raise _unavailable(url) from fault
        return VectorStore(client, url, f"{workspace_id}-")

    def close(self) -> None:
        """Let go of the client; an embedded database's files are free after that."""
        self._client.close()

    def count(self, name: str) -> int:
        """Return how many records a collection holds; 0 when it does not exist."""
        with self._faults():
            known = {collection.name for collection in self._client.list_collections()}
            return int(self._collection(name).count()) if self._prefix + name in known else 0

    def search(
        self, name: str, vector: NDArray[np.float32], k: int, within: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """Return the ids and cosines of the ``k`` records nearest to a unit vector, nearest first.

        With ``within``, of those records alone: found by going through the index past all others, in some
        milliseconds however few they are.
        """
        if k < 1:
            return []
        with self._faults():
            collection = self._collection(name)
            if within is not None and self.where != "embedded":
                within = _known(collection, within)
            if within is not None and not within:
                return []
            found = collection.query(
                query_embeddings=[vector], n_results=k, include=["distances"], ids=None if within is None else [*within]
            )
        return [(key, 1.0 - float(d)) for key, d in zip(found["ids"][0], found["distances"][0], strict=True)]

    def select(self, where: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return {id: metadata} of the passages that Chroma selects; the metadata only from a server, else empty.

        A server may hold a passage as a newer generation has it, which the metadata tell.
        """
        include = [] if self.where == "embedded" else ["metadatas"]
        selected: dict[str, Mapping[str, Any]] = {}
        with self._faults():
            for page in _pages(self._collection("passages"), where=dict(where), include=include):
                selected.update(zip(page["ids"], page["metadatas"] or [{}] * len(page["ids"]), strict=True))
        return selected

    def embedding_model(self) -> str:
        """Return the model whose vectors the collections hold; empty when there are none."""
        with self._faults():
            for collection in self._client.list_collections():
                if collection.name == f"{self._prefix}facts":
                    return str((collection.metadata or {}).get(_MODEL, ""))
        return ""

    def synchronise(self, name: str, wanted: Vectors, embedding_model: str) -> None:
        """Make a collection hold exactly ``wanted``: write what is new or changed, delete what is gone."""
        with self._faults():
            collection = self._collection(name, create_for=embedding_model)
            held = dict(self._held(collection))
            gone = sorted(held.keys() - set(wanted.ids))
            for start in range(0, len(gone), _PAGE):
                collection.delete(ids=gone[start : start + _PAGE])
            rows = [i for i, key in enumerate(wanted.ids) if held.get(key, "") != _fingerprint_of(wanted, i)]
            for start in range(0, len(rows), _PAGE):
                page = rows[start : start + _PAGE]
                collection.upsert(
                    ids=[wanted.ids[i] for i in page],
                    embeddings=wanted.vectors[page],
                    metadatas=[dict(wanted.metadata[i]) for i in page] if wanted.metadata is not None else None,
                )

    def drop(self) -> None:
        """Delete this workspace's collections."""
        with self._faults():
            known = {collection.name for collection in self._client.list_collections()}
            for name in ("facts", "passages"):
                if self._prefix + name in known:
                    self._client.delete_collection(self._prefix + name)
        self._collections.clear()

    def _held(self, collection: Any) -> Iterator[tuple[str, str | None]]:
        """Yield (id, fingerprint) of every record; the fingerprint is None where there is no metadata."""
        for page in _pages(collection, include=["metadatas"]):
            for key, metadata in zip(page["ids"], page["metadatas"], strict=True):
                yield key, str(metadata[FINGERPRINT]) if metadata else None

    def _collection(self, name: str, *, create_for: str | None = None) -> Any:
        if name not in self._collections:
            full_name = self._prefix + name
            if create_for is not None:
                self._collections[name] = self._client.get_or_create_collection(
                    full_name,
                    embedding_function=None,
                    metadata={_MODEL: create_for},
                    configuration={"hnsw": {"space": "cosine", "ef_search": _EF_SEARCH}},
                )
            else:
                self._collections[name] = self._client.get_collection(full_name, embedding_function=None)
        return self._collections[name]

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except Exception as fault:
            if self.where != "embedded":
                raise _unavailable(self.where) from fault
            raise _damaged(fault) from fault


def passage_metadata(fingerprint: str, source: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Chroma keeps of a passage: what ``where`` filters may ask for, and the record's fingerprint.

    Keys that are reserved are left out; the record keeps them.
    """
    return {**askable_metadata({**metadata, "source": source}), FINGERPRINT: f"{_METADATA_FORMAT}:{fingerprint}"}


def _fingerprint_of(wanted: Vectors, row: int) -> str | None:
    return str(wanted.metadata[row][FINGERPRINT]) if wanted.metadata is not None else None


def _pages(collection: Any, **asked: Any) -> Iterator[Any]:
    """Yield what a collection answers, page by page."""
    offset = 0
    while True:
        page = collection.get(limit=_PAGE, offset=offset, **asked)
        yield page
        if len(page["ids"]) < _PAGE:
            return
        offset += _PAGE


def _known(collection: Any, ids: Sequence[str]) -> list[str]:
    """Return those ids that the collection holds; Chroma searches within no others."""
    pages = (ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE))
    return [key for page in pages for key in collection.get(ids=list(page), include=[])["ids"]]


def _address(url: str) -> tuple[bool, str, int]:
    """Return (whether by TLS, host, port) of a server's address. Raises BadInput when it is none."""
    try:
        parts = urlsplit(url)
        secure, host, port = parts.scheme == "https", parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise BadInput(f"MARA_CHROMA_URL is {url!r}", "Set it to an address such as http://localhost:8000")
    return secure, host, port or (443 if secure else 80)


def _damaged(fault: Exception) -> WorkspaceDamaged:
    return WorkspaceDamaged(
        f"The search index cannot be used ({type(fault).__name__}: {fault})",
        "Run `mara index` again: it is rebuilt from the record",
    )


def _unavailable(url: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The Chroma server at {url} does not answer as it should",
        "Start it with `chroma run`, or unset MARA_CHROMA_URL to use the embedded one",
    )
