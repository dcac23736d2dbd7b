"""Writing to the record: passages and what was extracted from them, embedded and committed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graph.corrections.apply import Corrections, Stated
from graph.embedding.embeddings import Embedder, check_dimension, check_embedder
from graph.schema import Extraction, Passage, Triple
from graph.storage.database import Database
from graph.storage.entry import Entry, facts_of, names_of
from graph.storage.record import Record
from graph.storage.record_tables import Additions, NewVectors
from graph.text import normalise_name


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """Passages with their vectors, and those of the names and facts that the record lacks; not committed yet."""

    entries: Sequence[Entry]
    new: Additions


class Writer:
    """Embeds and commits batches of passages."""

    def __init__(self, record: Record, embedder: Embedder) -> None:
        """Raises EmbeddingMismatch when the record holds another model's vectors."""
        if record.embedding_model:
            check_embedder(embedder, record.embedding_model)
        self._record = record
        self._embedder = embedder

    def write(self, batch: Sequence[tuple[Passage, Extraction]], removed: Iterable[str] = ()) -> None:
        """Embed and commit a batch in one transaction; passages of a known id are replaced, ``removed`` ones dropped.

        Raises EmbeddingMismatch when the model's vectors are of another length than the record's.
        """
        self.commit(self.embed(batch), removed)

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
        return EmbeddedBatch(entries, self._embed_stated(stated))

    def commit(self, batch: EmbeddedBatch, removed: Iterable[str] = ()) -> None:
        """Commit the batch that was embedded last, and drop ``removed``, in one transaction."""
        self._record.commit(batch.entries, batch.new, self._embedder.model_id, removed)

    def restore(self, entries: Sequence[Entry], removed: Iterable[str]) -> None:
        """Commit entries with the vectors that they carry, and drop ``removed``, in one transaction.

        Of their names and facts those are embedded that the record does not hold.
        """
        corrections = Corrections(self._record.corrections())
        new = self._embed_stated([corrections.stated(e.passage, e.extraction) for e in entries])
        self._record.commit(entries, new, self._embedder.model_id, removed)

    def restate(self, stated: Sequence[tuple[Entry, Stated]], change: Callable[[Database], None]) -> None:
        """Change the corrections, and commit what these entries state afterwards, as `Record.restate` does."""
        self._record.restate(stated, self._embed_stated([says for _, says in stated]), change)

    def _embed_stated(self, stated: Sequence[Stated]) -> Additions:
        """Return the names and the facts that the record lacks, with their vectors."""
        names, facts = (_merge(map(held_by, stated)) for held_by in (names_of, facts_of))
        return Additions(self._embed_missing(names, "names"), self._embed_missing(facts, "facts"))

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
    windows = embedder.count_windows(list(contents.values()))
    record.replace_vectors(passages, windows, Additions(names, facts), embedder.model_id)


def clean_extraction(extraction: Extraction) -> Extraction:
    """Drop what cannot stand in a graph (a triple without a name at an end) and collapse identical triples.

    Identical means the same (subject, predicate, object, relation); the highest confidence is kept. The number
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


def _merge(texts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {key: text for some in texts for key, text in some.items()}
