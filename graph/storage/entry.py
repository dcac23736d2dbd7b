"""A passage as the record keeps it: its row, its hashes, and the names and facts that it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Stated
from graph.errors import BadInput
from graph.schema import MAX_ID, Extraction, Fact, MetadataValue, Passage, RelationType, Triple, entity_id, stable_id
from graph.text import has_controls, normalise_name

COLUMNS = (
    "id, title, text, source, metadata, fingerprint, extractor, entities, triples, notes, failure, windows, vector"
)
"""The columns of the table of passages, in order."""

MAX_METADATA = 2_000
"""Metadata that a passage can be kept with: Chroma writes those of a passage in one statement, and dates twice."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One passage as the record keeps it: what it is, what was found in it, and its unit vector."""

    passage: Passage
    extraction: Extraction
    windows: int
    vector: NDArray[np.float32]

    @property
    def fingerprint(self) -> str:
        """Hash of everything in the entry that was given or extracted; equal means nothing to do."""
        return fingerprint(self.passage, self.extraction)


def check_passage(passage: Passage) -> None:
    """Raise BadInput where a passage cannot be kept: its id has to find it again."""
    if not passage.id.strip() or has_controls(passage.id) or len(passage.id) > MAX_ID:
        raise BadInput(f"{passage.id[:200]!r} is no id of a passage", f"Give 1 to {MAX_ID:,} printable characters")
    if len(passage.metadata) > MAX_METADATA or any(map(has_controls, passage.metadata)):
        raise BadInput(
            f"The metadata of the passage {passage.id!r} cannot be kept",
            f"Give {MAX_METADATA:,} at most, with keys without control characters",
        )


def fingerprint(passage: Passage, extraction: Extraction) -> str:
    """Return a hash of a passage's content, metadata and extraction."""
    return stable_id(
        "entry",
        passage.title,
        passage.text,
        passage.source,
        _metadata_to_json(passage.metadata),
        _entities_to_json(extraction),
        _triples_to_json(extraction.triples),
        extraction.failure,
    )


def content_hash(passage: Passage) -> str:
    """Return a hash of what was given of a passage: its title, text, source and metadata, but not its id."""
    return hash_of(passage.title, passage.text, passage.source, _metadata_to_json(passage.metadata))


def hash_of(title: str, text: str, source: str, metadata: str) -> str:
    """Return the `content_hash` of a passage of which this is given, its metadata as JSON."""
    return stable_id("content", title, text, source, metadata)


def names_of(stated: Stated) -> dict[str, str]:
    """Return {entity id: normal form} of every name of a passage: its title, its entities, its triples' ends."""
    spelled = [*stated.entities, *(end for t in stated.triples for end in (t.subject, t.object)), stated.topic]
    return {entity_id(name): normalise_name(name) for name in spelled if normalise_name(name)}


def facts_of(stated: Stated) -> dict[str, str]:
    """Return {fact id: text to embed} of a passage; its parts' normal forms, so that one id stands for one text."""
    texts = {}
    for triple in stated.triples:
        subject, predicate, object_ = map(normalise_name, (triple.subject, triple.predicate, triple.object))
        fact = Fact(subject, predicate, object_, triple.relation)
        texts[fact.id] = " ".join(fact.text.split())
    return texts


def to_row(entry: Entry) -> tuple[object, ...]:
    """Return what the record's table of passages holds of an entry, in the order of its columns."""
    passage, extraction = entry.passage, entry.extraction
    return (
        passage.id,
        passage.title,
        passage.text,
        passage.source,
        _metadata_to_json(passage.metadata),
        entry.fingerprint,
        extraction.extractor,
        _entities_to_json(extraction),
        _triples_to_json(extraction.triples),
        json.dumps(dict(extraction.notes), sort_keys=True),
        extraction.failure,
        entry.windows,
        entry.vector.astype(np.float32).tobytes(),
    )


def from_row(row: Sequence[Any]) -> Entry:
    """Return the entry that a row holds. Raises ValueError or TypeError where it is none."""
    pid, title, text, source, metadata, _, extractor, entities, triples, notes, failure, windows, vector = row
    passage = Passage(pid, title, text, source, json.loads(metadata))
    names, types = _entities_from_json(entities)
    extraction = Extraction(names, _triples_from_json(triples), extractor, json.loads(notes), failure, types)
    return Entry(passage, extraction, windows, np.frombuffer(vector, dtype=np.float32))


def _metadata_to_json(metadata: Mapping[str, MetadataValue]) -> str:
    return json.dumps(dict(metadata), sort_keys=True, ensure_ascii=False)


def _entities_to_json(extraction: Extraction) -> str:
    """Return the names of a passage; one that has an entity type stands as a pair with it."""
    types = extraction.types
    entities = [[name, types[name]] if name in types else name for name in extraction.entities]
    return json.dumps(entities, ensure_ascii=False)


def _entities_from_json(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    pairs = [(one, "") if isinstance(one, str) else (one[0], one[1]) for one in json.loads(text)]
    return tuple(name for name, _ in pairs), {name: entity_type for name, entity_type in pairs if entity_type}


def _triples_to_json(triples: Sequence[Triple]) -> str:
    return json.dumps(
        [[t.subject, t.predicate, t.object, t.relation.value, t.confidence] for t in triples], ensure_ascii=False
    )


def _triples_from_json(text: str) -> tuple[Triple, ...]:
    return tuple(Triple(s, p, o, RelationType(relation), float(c)) for s, p, o, relation, c in json.loads(text))
