"""Qdrant's collections, asked as Chroma's are: what `VectorStore` needs of either server.

A record is a point whose id is a UUID made of the record's. Metadata are kept as one text, and, to be asked for, as
terms and as numbers with their keys: no key of a user's becomes a name in a query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from graph.metadata_filter import EXCLUDING, FINGERPRINT
from graph.publish.vectors import Answer, Ids, Metadata, Vector
from graph.schema import MetadataValue

_STAMPS = "mara-stamps"
"""The collection of what all others say of themselves: older servers keep nothing of the kind."""

_ID, _METADATA, _TERMS, _NUMBERS = "id", "metadata", "terms", "numbers"
_KEY, _WHOLE, _REAL = "key", "whole", "real"
_RANGES = {"$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}
_OVERSAMPLING = 2.0
_LOOKED_AT = 256
_PAGE = 1_000
_PAGE_BYTES = 8_000_000
_NUMBER_BYTES = 22
"""A request's vectors are JSON, and servers refuse requests of more than 32 MB by default."""

_MOST_WITHIN = 200_000
"""Ids that one search is within: each takes some 40 bytes of the request."""


class QdrantCollections:
    """The collections of a Qdrant server, by name."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get_collection(self, name: str, **_: Any) -> QdrantCollection:
        """Return a collection. Raises LookupError where there is none."""
        stamp = self._stamp(name)
        if stamp is None:
            raise LookupError(name)
        return QdrantCollection(self._client, name, stamp)

    def get_or_create_collection(self, name: str, *, metadata: Mapping[str, Any], **_: Any) -> QdrantCollection:
        """Return a collection, new where there was none; what it holds is kept once the first record is put in."""
        stamp = self._stamp(name)
        collection = QdrantCollection(self._client, name, dict(metadata) if stamp is None else stamp)
        if stamp is None:
            collection.modify(metadata=metadata)
        return collection

    def delete_collection(self, name: str) -> None:
        """Delete a collection, and what it says of itself."""
        from qdrant_client import models

        self._client.delete_collection(name)
        self._client.delete(_STAMPS, points_selector=models.PointIdsList(points=[_point(name)]))

    def _stamp(self, name: str) -> dict[str, Any] | None:
        if not self._client.collection_exists(_STAMPS):
            return None
        held = self._client.retrieve(_STAMPS, ids=[_point(name)], with_payload=True)
        return dict(held[0].payload) if held else None


class QdrantCollection:
    """One collection. It is made on the server when the first record tells how long vectors are."""

    def __init__(self, client: Any, name: str, metadata: Mapping[str, Any]) -> None:
        self._client = client
        self._name = name
        self.metadata = dict(metadata)

    def modify(self, *, metadata: Mapping[str, Any]) -> None:
        """Change what it says of itself."""
        from qdrant_client import models

        if not self._client.collection_exists(_STAMPS):
            self._client.create_collection(_STAMPS, vectors_config={})
        point = models.PointStruct(id=_point(self._name), vector={}, payload=dict(metadata))
        self._client.upsert(_STAMPS, points=[point])
        self.metadata = dict(metadata)

    def count(self) -> int:
        """Return how many records it holds."""
        return int(self._client.count(self._name).count) if self._is_there() else 0

    def upsert(self, *, ids: Ids, embeddings: Vector, metadatas: Sequence[Metadata] | None = None) -> None:
        """Put records in, in place of those of the same ids."""
        from qdrant_client import models

        if not self._is_there():
            self._create(embeddings.shape[1])
        most = max(1, min(_PAGE, _PAGE_BYTES // (_NUMBER_BYTES * embeddings.shape[1])))
        for start in range(0, len(ids), most):
            page = range(start, min(start + most, len(ids)))
            batch = models.Batch(
                ids=[_point(ids[row]) for row in page],
                vectors=embeddings[start : start + most].tolist(),
                payloads=[_payload(ids[row], metadatas[row] if metadatas is not None else None) for row in page],
            )
            self._client.upsert(self._name, points=batch, wait=True)

    def delete(self, *, ids: Sequence[str]) -> None:
        """Take records out; those that are not there do not matter."""
        from qdrant_client import models

        if self._is_there():
            selector = models.PointIdsList(points=[_point(key) for key in ids])
            self._client.delete(self._name, points_selector=selector, wait=True)

    def get(self, *, ids: Sequence[str], include: Sequence[str]) -> dict[str, Any]:
        """Return those of some records that it holds, as Chroma does."""
        if not self._is_there():
            return _answer([], include)
        points = [_point(key) for key in ids]
        held = self._client.retrieve(self._name, points, with_payload=True, with_vectors="embeddings" in include)
        return _answer(held, include)

    def pages(self, *, include: Sequence[str], where: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """Yield all records, or those that meet a condition, as Chroma would, page by page."""
        offset: Any = None
        while self._is_there():
            held, offset = self._client.scroll(
                self._name,
                scroll_filter=None if where is None else condition(where),
                limit=_PAGE,
                offset=offset,
                with_payload=True,
                with_vectors="embeddings" in include,
            )
            yield _answer(held, include)
            if offset is None:
                return

    def query(self, *, query_embeddings: list[Vector], n_results: int, include: Ids, ids: Ids | None = None) -> Answer:
        """Return ids and distances of the records nearest to one vector, as Chroma does."""
        if not self._is_there():
            return {"ids": [[]], "distances": [[]]}
        starts = range(0, len(ids or ()), _MOST_WITHIN)
        pages = [None] if ids is None else [ids[start : start + _MOST_WITHIN] for start in starts]
        found = chain.from_iterable(self._nearest(query_embeddings[0], n_results, page) for page in pages)
        points = sorted(found, key=lambda point: -point.score)[:n_results]
        return {"ids": [[p.payload[_ID] for p in points]], "distances": [[1.0 - p.score for p in points]]}

    def _nearest(self, vector: Vector, n_results: int, within: Sequence[str] | None) -> list[Any]:
        """Return the points nearest to a vector, of all or of those of some ids."""
        from qdrant_client import models

        ids = within and models.HasIdCondition(has_id=[_point(key) for key in within])
        search = models.SearchParams(
            hnsw_ef=max(_LOOKED_AT, 2 * n_results),
            quantization=models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING),
        )
        answer = self._client.query_points(
            self._name,
            query=np.asarray(vector).tolist(),
            query_filter=ids and models.Filter(must=[ids]),
            search_params=search,
            limit=n_results,
            with_payload=[_ID],
        )
        return list(answer.points)

    def _is_there(self) -> bool:
        return bool(self._client.collection_exists(self._name))

    def _create(self, dimension: int) -> None:
        """Make it on the server: vectors on the disk, their 8-bit codes in memory."""
        from qdrant_client import models

        codes = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        self._client.create_collection(
            self._name,
            vectors_config=models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True),
            quantization_config=models.ScalarQuantization(scalar=codes),
            on_disk_payload=True,
        )
        kinds = models.PayloadSchemaType
        fields = {_TERMS: kinds.KEYWORD, _KEY: kinds.KEYWORD, _WHOLE: kinds.FLOAT, _REAL: kinds.FLOAT}
        for field, kind in fields.items():
            path = field if field == _TERMS else f"{_NUMBERS}[].{field}"
            self._client.create_payload_index(self._name, field_name=path, field_schema=kind)


def condition(where: Mapping[str, Any]) -> Any:
    """Return a condition in Chroma's terms in those of Qdrant."""
    from qdrant_client import models

    ((key, wanted),) = where.items()
    if key == "$and":
        return models.Filter(must=[condition(each) for each in wanted])
    if key == "$or":
        return models.Filter(should=[condition(each) for each in wanted])
    ((operator, operand),) = wanted.items()
    if operator in EXCLUDING:
        return models.Filter(must_not=[_holding(key, EXCLUDING[operator], operand)])
    return models.Filter(must=[_holding(key, operator, operand)])


def _holding(key: str, operator: str, operand: Any) -> Any:
    from qdrant_client import models

    if operator in ("$eq", "$in"):
        values = operand if operator == "$in" else [operand]
        terms = [term for value in values for term in _terms_of_operand(key, value)]
        return models.FieldCondition(key=_TERMS, match=models.MatchAny(any=terms))
    # Chroma cuts what it compares an integer with.
    bounds = {_WHOLE: int(operand), _REAL: operand}
    named = models.FieldCondition(key=_KEY, match=models.MatchValue(value=key))
    return models.Filter(
        should=[
            models.NestedCondition(
                nested=models.Nested(
                    key=_NUMBERS,
                    filter=models.Filter(
                        must=[
                            named,
                            models.FieldCondition(key=kind, range=models.Range(**{_RANGES[operator]: bound})),
                        ]
                    ),
                )
            )
            for kind, bound in bounds.items()
        ]
    )


def _terms_of_operand(key: str, value: MetadataValue) -> list[str]:
    """Return the terms of all values that a value equals: an integer also what Chroma cuts to it."""
    if isinstance(value, str | bool):
        return [_term(key, value)]
    return [_term(key, int(value)), _term(key, float(value))]


def _term(key: str, value: MetadataValue) -> str:
    return json.dumps([key, value])


def _payload(key: str, metadata: Mapping[str, MetadataValue] | None) -> dict[str, Any]:
    """Return what is kept of a record beside its vector."""
    if metadata is None:
        return {_ID: key}
    asked = {name: value for name, value in metadata.items() if name != FINGERPRINT}
    numbers = [
        {_KEY: name, _WHOLE if isinstance(value, int) else _REAL: value}
        for name, value in asked.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    terms = [_term(name, value) for name, value in asked.items()]
    return {_ID: key, _METADATA: json.dumps(dict(metadata)), _TERMS: terms, _NUMBERS: numbers}


def _answer(points: Sequence[Any], include: Sequence[str]) -> dict[str, Any]:
    """Return records as Chroma does."""
    answer: dict[str, Any] = {"ids": [point.payload[_ID] for point in points], "metadatas": None}
    if "embeddings" in include:
        answer["embeddings"] = [point.vector for point in points]
    if "metadatas" in include:
        kept = [point.payload.get(_METADATA) for point in points]
        answer["metadatas"] = [None if text is None else json.loads(text) for text in kept]
    return answer


def _point(key: str) -> str:
    """Return the id of a record's point: Qdrant takes UUIDs and numbers alone."""
    return str(uuid5(NAMESPACE_URL, key))
