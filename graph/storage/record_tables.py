"""The tables of a record, and the rows that are written to them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graph.storage import correction_table

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
    id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL, source TEXT NOT NULL, metadata TEXT NOT NULL,
    fingerprint TEXT NOT NULL, extractor TEXT NOT NULL, entities TEXT NOT NULL, triples TEXT NOT NULL,
    notes TEXT NOT NULL, failure TEXT NOT NULL, windows INTEGER NOT NULL, vector BLOB NOT NULL
);
CREATE TABLE names (id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TABLE facts (id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TABLE passage_names (
    passage_id TEXT NOT NULL REFERENCES passages(id) ON DELETE CASCADE, name_id TEXT NOT NULL,
    PRIMARY KEY (passage_id, name_id)
) WITHOUT ROWID;
CREATE INDEX passages_of_name ON passage_names (name_id);
CREATE TABLE passage_facts (
    passage_id TEXT NOT NULL REFERENCES passages(id) ON DELETE CASCADE, fact_id TEXT NOT NULL,
    PRIMARY KEY (passage_id, fact_id)
) WITHOUT ROWID;
CREATE INDEX passages_of_fact ON passage_facts (fact_id);
CREATE TABLE synonyms (
    a TEXT NOT NULL REFERENCES names(id) ON DELETE CASCADE, b TEXT NOT NULL REFERENCES names(id) ON DELETE CASCADE,
    cosine REAL NOT NULL, PRIMARY KEY (a, b), CHECK (a < b)
) WITHOUT ROWID;
CREATE INDEX synonyms_of_b ON synonyms (b);
"""

HELD_BY = {"names": "name_id", "facts": "fact_id"}
"""The tables whose rows passages hold, and the column of ``passage_names`` or ``passage_facts`` that refers to them."""

TEXT_COLUMN = {"names": "name", "facts": "text"}
RESTORE = "Restore the record from a backup, or index the documents into a new workspace"


@dataclass(frozen=True, slots=True)
class State:
    """The state of an entry, to compare with the wanted one.

    Attributes:
        fingerprint: of all that was given and extracted.
        extractor: who extracted.
        failure: why nothing could be extracted; empty otherwise.
        content_hash: of what was given.
    """

    fingerprint: str
    extractor: str
    failure: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class NewVectors:
    """Vectors of names or facts that the record does not hold yet; texts and rows correspond."""

    texts: Mapping[str, str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """The rows of a record that follow from its passages and vectors.

    Attributes:
        texts: by table, {id: text} of the names and facts that passages hold.
        links: by table, (passage id, id of what it holds).
        synonyms: {(smaller id, larger id) of two names: their cosine}.
        renamed: {id of a passage: the one to keep it under}, where the id holds a control character.
        corrected: {id of a passage: what corrections made of it}, where they change it.
    """

    texts: Mapping[str, Mapping[str, str]]
    links: Mapping[str, set[tuple[str, str]]]
    synonyms: Mapping[tuple[str, str], float]
    renamed: Mapping[str, str]
    corrected: Mapping[str, correction_table.Corrected] = field(default_factory=dict)
