"""What Chroma leaves in the files of a set that was written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graph.errors import WorkspaceDamaged
from graph.publish import chroma_store
from graph.publish.chroma_store import ChromaStore, drop_queue
from graph.publish.vector_store import Place
from tests.graph.publish.test_vector_store import DIMENSION, unit_vectors, vectors_of

FACTS, PASSAGES = 2_500, 20


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a set that was written in several pages."""
    monkeypatch.setattr(chroma_store, "_PAGE", 700)
    place = Place(tmp_path, "chroma", "0a")
    parts = {"facts": vectors_of(unit_vectors(FACTS)), "passages": vectors_of(unit_vectors(PASSAGES))}
    ChromaStore().write(place, parts)
    return place.files


def told(files: Path, query: str) -> int:
    with closing(sqlite3.connect(files / "chroma.sqlite3")) as database:
        ((number,),) = database.execute(query)
        return int(number)


def test_all_records_of_a_large_collection_are_in_its_index_and_no_vector_of_them_in_the_queue(files: Path) -> None:
    taken = {
        chroma_store._HNSW_HEADER.unpack(header.read_bytes()[: chroma_store._HNSW_HEADER.size])[3]
        for header in files.glob("*/header.bin")
    }
    assert FACTS in taken
    assert told(files, "SELECT count(*) FROM embeddings") == FACTS + PASSAGES
    assert told(files, f"SELECT count(*) FROM embeddings_queue WHERE length(vector) = {4 * DIMENSION}") <= PASSAGES + 1


def test_the_database_keeps_no_room_that_it_does_not_use(files: Path) -> None:
    assert told(files, "PRAGMA freelist_count") == 0


def test_a_database_that_cannot_be_read_is_told_of(files: Path) -> None:
    (files / "chroma.sqlite3").write_bytes(b"no database" * 1_000)
    with pytest.raises(WorkspaceDamaged):
        drop_queue(files)
