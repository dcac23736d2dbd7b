"""Where the pairs of synonyms come from: the record up to a number of names, above it an index as the graph is built.

A writer that adds names finds their pairs at once, each new name by its product with every other. Above `EXACT_NAMES`
it finds none, the record holds none and notes so; the build finds all of them by an index that misses a few. Which of
the two holds follows from the number of names alone, however the record came by it.
"""

from __future__ import annotations

from graph import synonyms
from graph.embedding.embeddings import understanding_of
from graph.storage.name_vectors import NameVectors
from graph.storage.record import SYNONYMS, Record

_BY_INDEX = "index"


def are_left_to_build(record: Record) -> bool:
    """Tell whether the record holds no pairs of synonyms, since the build finds them."""
    return record.note(SYNONYMS) == _BY_INDEX


def leave_to_build(record: Record, names: int) -> bool:
    """Tell whether a writer is to find no pairs, where the record is about to hold so many names; note it if so."""
    if are_left_to_build(record):
        return True
    if names <= synonyms.EXACT_NAMES:
        return False
    record.replace_synonyms([], _BY_INDEX)
    return True


def settle_synonyms(record: Record) -> None:
    """Let the record hold every pair, or none, as the number of its names asks for; the caller holds the lock."""
    if not leave_to_build(record, record.count_names()) or record.count_names() > synonyms.EXACT_NAMES:
        return
    ids, names, vectors = record.names()
    known = NameVectors(understanding_of(record.embedding_model), record.name_vectors)
    record.replace_synonyms(known.add(ids, names, vectors), "")
