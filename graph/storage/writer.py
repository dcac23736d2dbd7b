"""Writing to the record: passages and what was extracted from them, embedded and committed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Corrections, Stated
from graph.embedding.embeddings import Embedder, check_dimension, check_embedder
from graph.schema import Extraction, Passage, Triple
from graph.storage.database import Database
from graph.storage.entry import Entry, facts_of, names_of
from graph.storage.record import Record
from graph.storage.record_tables import NewVectors
from graph.text import name_length, normalise_name

SYNONYM_COSINE = 0.8
SYNONYM_SHORTEST = 3
"""A synonym edge needs names of at least this many letters or digits."""
_BLOCK_ROWS = 1024
_ROUNDING = 2e-3
"""More than half precision can change the cosine of two unit vectors."""
_GROWTH = 1.5
_SPARE_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class WriteReport:
    """The result of one batch: the number of passages written, and the entries dropped on the way."""

    passages: int
    long_passages: int
    notes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """Passages with their vectors, and those of the names and facts that the record lacks; not committed yet."""

    entries: Sequence[Entry]
    names: NewVectors
    facts: NewVectors


class Writer:
    """Embeds and commits batches of passages; keeps the name vectors in memory to find synonyms of new names."""

    def __init__(self, record: Record, embedder: Embedder) -> None:
        """Raises EmbeddingMismatch when the record holds another model's vectors."""
        if record.embedding_model:
            check_embedder(embedder, record.embedding_model)
        self._record = record
        self._embedder = embedder
        self._names = _names_of(record, embedder)

    def write(self, batch: Sequence[tuple[Passage, Extraction]], removed: Iterable[str] = ()) -> WriteReport:
        """Embed and commit a batch in one transaction; passages of a known id are replaced, ``removed`` ones dropped.

        Raises EmbeddingMismatch when the model's vectors are of another length than the record's.
        """
        return self.commit(self.embed(batch), removed)

    def embed(self, batch: Sequence[tuple[Passage, Extraction]]) -> EmbeddedBatch:
        """Embed a batch, with the names and facts in it that the record does not hold; nothing is written.

        Raises EmbeddingMismatch when the model's vectors are of another length than the record's.
        """
        cleaned = [(passage, clean_extraction(extraction)) for passage, extraction in batch]
        contents = [passage.content for passage, _ in cleaned]
        vectors = self._embedder.embed(contents)
        if contents and self._record.dimension:
            check_dimension(vectors, self._record.dimension)
        windows = self._embedder.count_windows(contents)
        entries = [Entry(p, x, windows[i], vectors[i]) for i, (p, x) in enumerate(cleaned)]
        corrections = Corrections(self._record.corrections())
        stated = [corrections.stated(passage, extraction) for passage, extraction in cleaned]
        return EmbeddedBatch(entries, *self._embed_stated(stated))

    def commit(self, batch: EmbeddedBatch, removed: Iterable[str] = ()) -> WriteReport:
        """Commit the batch that was embedded last, and drop ``removed``, in one transaction."""
        names = batch.names
        synonyms = self._names.add(list(names.texts), list(names.texts.values()), names.vectors)
        gone = self._record.commit(batch.entries, names, batch.facts, synonyms, self._embedder.model_id, removed)
        self._names.forget(gone)
        _keep_names(self._record, self._embedder, self._names)
        notes: dict[str, int] = {}
        for entry in batch.entries:
            for reason, count in entry.extraction.notes.items():
                notes[reason] = notes.get(reason, 0) + count
        return WriteReport(len(batch.entries), sum(entry.windows > 1 for entry in batch.entries), notes)

    def restore(self, entries: Sequence[Entry], removed: Iterable[str]) -> None:
        """Commit entries with the vectors that they carry, and drop ``removed``, in one transaction.

        Of their names and facts those are embedded that the record does not hold.
        """
        corrections = Corrections(self._record.corrections())
        names, facts = self._embed_stated([corrections.stated(e.passage, e.extraction) for e in entries])
        synonyms = self._names.add(list(names.texts), list(names.texts.values()), names.vectors)
        self._record.commit(entries, names, facts, synonyms, self._embedder.model_id, removed)

    def restate(self, stated: Sequence[tuple[Entry, Stated]], change: Callable[[Database], None]) -> None:
        """Change the corrections, and commit what these entries state afterwards, as `Record.restate` does."""
        names, facts = self._embed_stated([says for _, says in stated])
        synonyms = self._names.add(list(names.texts), list(names.texts.values()), names.vectors)
        self._names.forget(self._record.restate(stated, names, facts, synonyms, change))
        _keep_names(self._record, self._embedder, self._names)

    def _embed_stated(self, stated: Sequence[Stated]) -> tuple[NewVectors, NewVectors]:
        """Return the vectors of the names and of the facts that the record lacks."""
        names, facts = (_merge(map(held_by, stated)) for held_by in (names_of, facts_of))
        return self._embed_missing(names, "names"), self._embed_missing(facts, "facts")

    def _embed_missing(self, texts: Mapping[str, str], table: str) -> NewVectors:
        wanted = self._record.missing(table, texts)
        new = {key: text for key, text in texts.items() if key in wanted}
        return NewVectors(new, self._embedder.embed(list(new.values())))


def reembed(record: Record, embedder: Embedder) -> None:
    """Replace every vector of the record by another model's, in one commit."""
    entries = list(record.entries())
    contents = {entry.passage.id: entry.passage.content for entry in entries}
    corrections = Corrections(record.corrections())
    stated = [corrections.stated(entry.passage, entry.extraction) for entry in entries]
    name_texts, fact_texts = _merge(map(names_of, stated)), _merge(map(facts_of, stated))
    passages = NewVectors(contents, embedder.embed(list(contents.values())))
    names = NewVectors(name_texts, embedder.embed(list(name_texts.values())))
    facts = NewVectors(fact_texts, embedder.embed(list(fact_texts.values())))
    found = _NameVectors(embedder.understands, record.name_vectors).add(
        list(name_texts), list(name_texts.values()), names.vectors
    )
    windows = embedder.count_windows(list(contents.values()))
    record.replace_vectors(passages, windows, names, facts, found, embedder.model_id)


def clean_extraction(extraction: Extraction) -> Extraction:
    """Drop what cannot stand in a graph (a triple without a name at an end) and collapse identical triples.

    Identical means the same (subject, predicate, object, relation); the highest confidence is kept. What was
    dropped is counted in ``notes``.
    """
    kept: dict[tuple[str, str, str, str], Triple] = {}
    nameless = 0
    for triple in extraction.triples:
        confidence = min(1.0, max(0.0, triple.confidence))
        subject, object_ = normalise_name(triple.subject), normalise_name(triple.object)
        if not subject or not object_:
            nameless += 1
            continue
        key = (subject, normalise_name(triple.predicate), object_, triple.relation.value)
        if key not in kept or confidence > kept[key].confidence:
            kept[key] = replace(triple, confidence=confidence)
    entities = tuple(dict.fromkeys(name for name in extraction.entities if normalise_name(name)))
    collapsed = len(extraction.triples) - nameless - len(kept)
    dropped = {"triples without a name": nameless, "identical triples": collapsed}
    notes = {**extraction.notes, **{reason: count for reason, count in dropped.items() if count}}
    types = {name: extraction.types[name] for name in entities if name in extraction.types}
    return replace(extraction, entities=entities, triples=tuple(kept.values()), notes=notes, types=types)


class _NameVectors:
    """The names that may have synonyms; a block product of their rounded vectors finds pairs of new names.

    Rounded to half precision, the vectors of 100,000 names take 77 MB; what the product finds near enough is computed
    from the vectors themselves.
    """

    def __init__(
        self, understands: Callable[[str], bool], read: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> None:
        """``read`` returns the vectors of names that are known already."""
        self._understands = understands
        self._read = read
        self._ids: list[str] = []
        self._rounded: NDArray[np.float16] = np.zeros((0, 0), dtype=np.float16)

    def read_from(self, record: Record) -> None:
        """Read vectors from this opening of the record."""
        self._read = record.name_vectors

    def add(
        self, ids: Sequence[str], names: Sequence[str], vectors: NDArray[np.float32]
    ) -> list[tuple[str, str, float]]:
        """Take in new names; return (smaller id, larger id, cosine) of each new pair that reaches the bar."""
        first = len(self._ids)
        self.learn(ids, names, vectors)
        pairs = [pair for pairs in self._near(first) for pair in pairs]
        row_of = {key: row for row, key in enumerate(ids)}
        known = sorted({key for pair in pairs for key in pair} - row_of.keys())
        row_of.update((key, len(ids) + row) for row, key in enumerate(known))
        every = np.concatenate([vectors, self._read(known)]) if known else vectors
        return list(self._exact(pairs, every, row_of))

    def learn(self, ids: Sequence[str], names: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Take in names whose pairs are known already."""
        rows = [i for i, name in enumerate(names) if name_length(name) >= SYNONYM_SHORTEST and self._understands(name)]
        if not rows:
            return
        first, needed = len(self._ids), len(self._ids) + len(rows)
        if needed > len(self._rounded):
            grown = np.zeros((max(needed + _SPARE_ROWS, int(_GROWTH * first)), vectors.shape[1]), dtype=np.float16)
            if first:
                grown[:first] = self._rounded[:first]
            self._rounded = grown
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            self._rounded[first + start : first + start + len(block)] = vectors[block]
        self._ids.extend(ids[i] for i in rows)

    def forget(self, ids: Collection[str]) -> None:
        """Let go of names that are no more."""
        kept = [row for row, key in enumerate(self._ids) if key not in ids] if ids else []
        if ids and len(kept) < len(self._ids):
            self._rounded[: len(kept)] = self._rounded[kept]
            self._ids = [self._ids[row] for row in kept]

    def _near(self, first: int) -> Iterator[list[tuple[str, str]]]:
        """Yield the pairs (smaller id, larger id) of a name from ``first`` on and an earlier one that may be near."""
        n = len(self._ids)
        blocks = product(range(first, n, _BLOCK_ROWS), range(0, n, _BLOCK_ROWS))
        for start, other in ((start, other) for start, other in blocks if other < start + _BLOCK_ROWS):
            new = self._rounded[start : min(n, start + _BLOCK_ROWS)].astype(np.float32)
            old = self._rounded[other : min(n, other + _BLOCK_ROWS)].astype(np.float32)
            rows, columns = np.nonzero(new @ old.T >= SYNONYM_COSINE - _ROUNDING)
            rows, columns = rows + start, columns + other
            earlier = columns < rows
            ends = zip(rows[earlier].tolist(), columns[earlier].tolist(), strict=True)
            yield [_in_order(self._ids[row], self._ids[column]) for row, column in ends]

    @staticmethod
    def _exact(
        pairs: Sequence[tuple[str, str]], vectors: NDArray[np.float32], row_of: Mapping[str, int]
    ) -> Iterator[tuple[str, str, float]]:
        """Yield the pairs that reach the bar, each computed by itself: whatever else is, their cosine is the same."""
        for start in range(0, len(pairs), _BLOCK_ROWS):
            block = pairs[start : start + _BLOCK_ROWS]
            left, right = ([row_of[key] for key in ends] for ends in zip(*block, strict=True))
            cosines = (vectors[left].astype(np.float64) * vectors[right]).sum(axis=1)
            for (a, b), cosine in zip(block, cosines.tolist(), strict=True):
                if cosine >= SYNONYM_COSINE:
                    yield a, b, min(1.0, cosine)


def _in_order(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


_KEPT: dict[str, tuple[tuple[str, ...], _NameVectors]] = {}
"""The names of the workspace that this process wrote last, with what they were read from."""


def _names_of(record: Record, embedder: Embedder) -> _NameVectors:
    """Return the record's names: those that the last writer of this process left, where nobody wrote since."""
    state, kept = _KEPT.pop(record.workspace_id, ((), None))
    if kept is not None and state == (record.commit_id, embedder.model_id):
        kept.read_from(record)
        return kept
    names = _NameVectors(embedder.understands, record.name_vectors)
    names.learn(*record.names())
    return names


def _keep_names(record: Record, embedder: Embedder, names: _NameVectors) -> None:
    _KEPT.clear()
    _KEPT[record.workspace_id] = ((record.commit_id, embedder.model_id), names)


def _merge(texts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for some in texts:
        merged.update(some)
    return merged
