"""Vectors on a Qdrant server, which ``MARA_VECTORS`` names: of a set, a collection of facts, one of passages."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import timeout_s
from graph.errors import BadInput, DependencyMissing, MaraError, StoreUnavailable, WorkspaceDamaged, faults_behind
from graph.publish.vector_store import (
    COLLECTIONS,
    VECTORS_VARIABLE,
    Hits,
    Numbers,
    OpenCost,
    Place,
    Vector,
    Vectors,
    named_stores,
    unused_collections,
)

_EXAMPLE = "qdrant+http://localhost:6333"
_REPAIR = "If it stays so, `mara doctor --repair` writes the vectors again from the record"

_OVERSAMPLING = 2.0
_LOOKED_AT = 256
_PAGE = 1_000
_PAGE_BYTES = 8_000_000
_NUMBER_BYTES = 22
"""A request's vectors are JSON, and servers refuse requests of more than 32 MB by default."""

_MOST_WITHIN = 1_000_000
"""Numbers that one search is within: each takes some 8 bytes of the request."""


class QdrantStore:
    """Sets on a Qdrant server."""

    remote = True

    def address(self, place: Place) -> str:
        """Return the server's address. Raises BadInput where that is none, or is not set."""
        return qdrant_address().url

    def write(self, place: Place, vectors: Mapping[str, Vectors]) -> None:
        """Write a set."""
        with _faults():
            written = QdrantSet(_client(), place)
            for name, content in vectors.items():
                written.write(name, content)

    def open(self, place: Place, *, untouched: bool = False) -> QdrantSet:
        """Open a set. Raises WorkspaceDamaged where the server does not have it."""
        with _faults():
            client = _client()
            for name in COLLECTIONS:
                if not client.collection_exists(place.collection(name)):
                    raise WorkspaceDamaged(f"The server has no {place.collection(name)}", "Run `mara index` again")
        return QdrantSet(client, place)

    def cost(self, place: Place) -> OpenCost:
        """Return nothing: it is the server's."""
        return OpenCost()

    def forget(self, prefix: str, kept: Collection[str]) -> None:
        """Delete a workspace's collections that belong to no set that is kept."""
        with _faults():
            client = _client()
            names = [each.name for each in client.get_collections().collections]
            for name in unused_collections(names, prefix, kept):
                client.delete_collection(name)


class QdrantSet:
    """A set on a Qdrant server. A vector's point has its number for an id."""

    def __init__(self, client: Any, place: Place) -> None:
        self._client = client
        self._place = place

    def write(self, name: str, vectors: Vectors) -> None:
        """Make the collection of the facts or the passages: vectors on the disk, their 8-bit codes in memory."""
        from qdrant_client import models

        codes = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        size = models.VectorParams(size=vectors.dimension, distance=models.Distance.COSINE, on_disk=True)
        self._client.create_collection(
            self._place.collection(name),
            vectors_config=size,
            quantization_config=models.ScalarQuantization(scalar=codes),
        )
        for start, page in vectors.pages(max(1, min(_PAGE, _PAGE_BYTES // (_NUMBER_BYTES * vectors.dimension)))):
            batch = models.Batch(ids=[*range(start, start + len(page))], vectors=page.tolist())
            self._client.upsert(self._place.collection(name), points=batch, wait=True)

    def count(self, name: str) -> int:
        """Return how many facts or passages it has."""
        with _faults():
            return int(self._client.count(self._place.collection(name)).count)

    def search(self, name: str, vector: Vector, k: int, within: Numbers | None = None) -> Hits:
        """Return the ``k`` nearest to a unit vector."""
        parts = [None] if within is None else np.split(within, range(_MOST_WITHIN, len(within), _MOST_WITHIN))
        points = [point for part in parts for point in self._nearest(name, vector, k, part)]
        return sorted(((int(p.id), float(p.score)) for p in points), key=lambda hit: -hit[1])[:k]

    def vectors(self, name: str, numbers: Sequence[int]) -> Vector:
        """Return some vectors as a search reads them."""
        with _faults():
            points = self._client.retrieve(self._place.collection(name), ids=[*numbers], with_vectors=True)
            vector_of = {point.id: point.vector for point in points}
            return np.asarray([vector_of[number] for number in numbers], dtype=np.float32)

    def close(self) -> None:
        """Do nothing: one client serves the process."""

    def _nearest(self, name: str, vector: Vector, k: int, within: Numbers | None) -> list[Any]:
        """Return the points nearest to a vector, of all or of some; they are scored by the vectors themselves."""
        from qdrant_client import models

        own = None if within is None else models.HasIdCondition(has_id=within.tolist())
        with _faults():
            answer = self._client.query_points(
                self._place.collection(name),
                query=vector.tolist(),
                query_filter=own and models.Filter(must=[own]),
                search_params=models.SearchParams(
                    hnsw_ef=max(_LOOKED_AT, 2 * k),
                    quantization=models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING),
                ),
                limit=k,
            )
        return list(answer.points)


def _client() -> Any:
    return connect(qdrant_address())


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        raise unavailable(qdrant_address().url, fault) from fault


def qdrant_address() -> Address:
    """Return the address of the server that ``MARA_VECTORS`` names; a key stands before the host, without a password.

    Raises:
        BadInput: it names none; the message shows nothing secret of it.
    """
    text = named_stores().get("qdrant", "")
    if not text:
        raise BadInput(
            f"The vectors of this workspace are on a Qdrant server, and {VECTORS_VARIABLE} does not name it",
            f"Set it to {_EXAMPLE}, or to move them to another store, to mapped,{_EXAMPLE}",
        )
    return Address.parse(text, VECTORS_VARIABLE, _EXAMPLE)


def connect(address: Address) -> Any:
    """Return the client of a Qdrant server, the process's only one, whose requests take ``MARA_TIMEOUT_S`` at most.

    Without a port in the address, it is Qdrant's own, 6333. The key, or name and password, are
    sent along.

    Raises:
        DependencyMissing: qdrant-client is not installed.
    """
    return _client_of(address, timeout_s())


@cache
def _client_of(address: Address, seconds: float) -> Any:
    try:
        from qdrant_client import QdrantClient
    except ImportError as fault:
        raise DependencyMissing(
            f"A Qdrant server needs qdrant-client, which cannot be loaded ({fault})",
            "Install it: pip install 'mara-rag[qdrant]'",
        ) from fault
    name, password = address.credentials or ("", "")
    headers = {"Authorization": address.authorization} if password else {}
    return QdrantClient(
        url=address.url,
        api_key=None if password else name or None,
        timeout=math.ceil(seconds),
        metadata=headers,
        check_compatibility=False,
    )


def unavailable(url: str, fault: Exception) -> MaraError:
    """Translate what Qdrant's client raised into an error that says what the server did and what to do."""
    if isinstance(fault, MaraError):
        return fault
    status = next((each.status_code for each in faults_behind(fault) if hasattr(each, "status_code")), None)
    if status in (401, 403):
        return StoreUnavailable(
            f"The Qdrant server at {url} refuses the credentials",
            f"Put its key into {VECTORS_VARIABLE}: qdrant+https://key@host",
        )
    if status is not None:
        said = censored(str(fault)).splitlines()[0]
        return StoreUnavailable(f"The Qdrant server at {url} answers with an error ({said})", _REPAIR)
    return StoreUnavailable(
        f"The Qdrant server at {url} does not answer as it should ({type(fault).__name__})",
        f"Start it, or check {VECTORS_VARIABLE}",
    )
