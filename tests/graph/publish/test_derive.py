from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest

from graph.construction.bm25 import SparseIndex
from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import WorkspaceDamaged
from graph.publish.derive import publish
from graph.publish.search_indexes import open_store
from graph.publish.vector_store import VectorStore
from graph.storage.entry import MAX_METADATA
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace, write_passages

PASSAGES = [passage_of(key, f"Title {key}", f"{key} is text") for key in "abcd"]
TRIPLES: dict[str, list[TripleParts]] = {key: [(f"{key} thing", "is", "text")] for key in "abcd"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "workspace", PASSAGES, TRIPLES).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids that are written to Chroma from here on."""
    ids: list[str] = []
    upsert = chromadb.Collection.upsert

    def watched(self: chromadb.Collection, **content: Any) -> None:
        ids.extend(content["ids"])
        upsert(self, **content)

    monkeypatch.setattr(chromadb.Collection, "upsert", watched)
    return ids


@pytest.fixture
def store(workspace: Workspace) -> Iterator[VectorStore]:
    store = open_store(workspace, "unused", workspace.current() or 0)
    assert isinstance(store, VectorStore)
    yield store
    store.close()


def nearest(workspace: Workspace, embedder: HashEmbedder, text: str) -> tuple[str, float]:
    store = open_store(workspace, "unused", workspace.current() or 0)
    try:
        ((key, cosine),) = store.search("passages", embedder.embed([text])[0], 1)
        return key, round(cosine, 5)
    finally:
        store.close()


def published(workspace: Workspace) -> KnowledgeGraph:
    return load(workspace.index_folder(workspace.current() or 0))


class TestPublishing:
    def test_a_generation_holds_snapshot_words_and_vectors(self, workspace: Workspace, store: VectorStore) -> None:
        graph = published(workspace)
        folder = workspace.index_folder(1)
        assert graph.generation == 1
        assert (store.count("passages"), store.count("facts")) == (4, 4)
        assert SparseIndex.load(folder / "bm25", 4).scores("Title b").argmax() == 1

    def test_it_is_what_the_record_says(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            assert published(workspace).facts == derive_graph(record).facts

    def test_a_small_change_writes_little(self, workspace: Workspace, written: list[str]) -> None:
        changed = [passage_of("b", "Title b", "other text"), passage_of("e", "Title e", "more")]
        publish_workspace(workspace.root, changed, {"b": TRIPLES["b"], "e": TRIPLES["a"]}, removed=["d"])
        assert sorted(written) == ["b", "e"]
        assert [passage.id for passage in published(workspace).passages] == ["a", "b", "c", "e"]
        store = open_store(workspace, "unused", 2)
        assert (store.count("passages"), store.count("facts")) == (4, 3)
        store.close()

    def test_another_models_vectors_replace_the_old_ones(self, workspace: Workspace) -> None:
        other = HashEmbedder("other")
        with workspace.writing(), workspace.open_record() as record:
            reembed(record, other)
            publish(workspace, record)
        assert nearest(workspace, other, PASSAGES[2].content) == ("c", 1.0)
        assert published(workspace).embedding_model == "other"
        assert np.array_equal(published(workspace).passage_vectors[2], other.embed([PASSAGES[2].content])[0])


class TestDerivingAgain:
    """A folder that may be open somewhere is never written: what is derived again gets a number of its own."""

    def test_it_is_made_from_nothing_under_the_next_number(self, workspace: Workspace, written: list[str]) -> None:
        with workspace.writing(), workspace.open_record() as record:
            published_now = publish(workspace, record)
            assert published_now == record.generation == workspace.current() == 2
        assert sorted(written)[:4] == ["a", "b", "c", "d"]

    def test_what_an_interrupted_publication_left_is_not_used_and_goes(self, workspace: Workspace) -> None:
        with workspace.writing(), workspace.open_record() as record:
            write_passages(record, [passage_of("e", "E", "text")], {}, HashEmbedder())
            left = workspace.index_folder(record.generation)
            left.mkdir()
            (left / "snapshot.json").write_text("{")
            publish(workspace, record)
        assert workspace.current() == 3
        assert len(published(workspace).passages) == 5
        assert not left.exists()

    @pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
    def test_a_damaged_search_index_is_not_taken_over(self, workspace: Workspace, content: bytes) -> None:
        (workspace.index_folder(1) / "chroma" / "chroma.sqlite3").write_bytes(content)
        publish_workspace(workspace.root, [passage_of("e", "E", "text")])
        assert nearest(workspace, HashEmbedder(), "E\ntext") == ("e", 1.0)
        assert nearest(workspace, HashEmbedder(), PASSAGES[0].content) == ("a", 1.0)

    def test_a_damaged_record_is_no_reason_to_try_for_ever(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def damaged(*_: object, **__: object) -> None:
            raise WorkspaceDamaged("The record cannot be read")

        monkeypatch.setattr("graph.publish.derive.build_generation", damaged)
        with workspace.writing(), workspace.open_record() as record, pytest.raises(WorkspaceDamaged):
            publish(workspace, record)
        assert workspace.current() == 1


def test_as_many_metadata_as_the_record_takes_can_be_derived(workspace: Workspace) -> None:
    dates = {f"k{i}": "2020-01-01" for i in range(MAX_METADATA)}
    publish_workspace(workspace.root, [passage_of("e", "Title e", "text", **dates)])
    assert len(published(workspace).passages) == 5


def test_a_passage_that_cannot_be_derived_is_named_and_blocks_nothing_once_it_is_gone(workspace: Workspace) -> None:
    metadata = json.dumps({f"k{i}": 1 for i in range(10_000)})
    with closing(sqlite3.connect(workspace.record_path)) as db, db:
        db.execute("UPDATE passages SET metadata = ?, fingerprint = 'older' WHERE id = 'b'", (metadata,))
    with workspace.writing(), workspace.open_record() as record:
        record.advance_generation()
        with pytest.raises(WorkspaceDamaged, match=r"'b' has 10,002 metadata.*mara remove ID"):
            publish(workspace, record)
    publish_workspace(workspace.root, [], removed=["b"])
    assert [passage.id for passage in published(workspace).passages] == ["a", "c", "d"]


def test_the_environment_says_which_store(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_CHROMA_URL", "")
    store = open_store(workspace, "unused", 1)
    assert store.where == "embedded"
    store.close()


def test_nothing_of_chroma_is_asked_to_phone_home(workspace: Workspace) -> None:
    store = VectorStore.embedded(Path(workspace.root) / "other")
    assert store._client.get_settings().anonymized_telemetry is False
    store.close()


def test_no_memory_of_the_process_goes_into_the_files_of_an_index_that_keeps_places_free(template: Path) -> None:
    files = [path for name in ("data_level0.bin", "length.bin") for path in template.glob(f"index/*/chroma/*/{name}")]
    assert len(files) == 4
    for path in files:
        assert path.stat().st_size > 0
        assert path.read_bytes().strip(b"\0") == b""
