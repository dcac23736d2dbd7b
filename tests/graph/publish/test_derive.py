from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from graph.construction.bm25 import SparseIndex
from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import WorkspaceDamaged
from graph.publish.chroma_store import ChromaStore, wipe_unused
from graph.publish.derive import publish
from graph.publish.generation_vectors import open_vectors
from graph.publish.vector_store import Place
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace, write_passages
from tests.layered import layer_of

PASSAGES = [passage_of(key, f"Title {key}", f"{key} is text") for key in "abcd"]
TRIPLES: dict[str, list[TripleParts]] = {key: [(f"{key} thing", "is", "text")] for key in "abcd"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "workspace", PASSAGES, TRIPLES).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))


def nearest(workspace: Workspace, embedder: HashEmbedder, text: str) -> tuple[str, float]:
    graph = published(workspace)
    with closing(open_vectors(workspace, "unused", graph)) as vectors:
        ((row, cosine),) = vectors.search("passages", embedder.embed([text])[0], 1)
        return graph.passage_ids[row], round(cosine, 5)


def published(workspace: Workspace) -> KnowledgeGraph:
    return load(workspace.index_folder(workspace.current() or 0))


class TestPublishing:
    def test_a_change_is_published(self, workspace: Workspace) -> None:
        changed = [passage_of("b", "Title b", "other text"), passage_of("e", "Title e", "more")]
        publish_workspace(workspace.root, changed, {"b": TRIPLES["b"], "e": TRIPLES["a"]}, removed=["d"])
        assert layer_of(workspace).base == 2, "so small an index is written as a whole"
        assert [passage.id for passage in published(workspace).passages] == ["a", "b", "c", "e"]
        with closing(open_vectors(workspace, "unused", published(workspace))) as vectors:
            assert (vectors.count("passages"), vectors.count("facts")) == (4, 3)
        words = SparseIndex.load(workspace.index_folder(2) / "bm25", 4)
        assert words.scores("Title b").argmax() == 1
        with workspace.open_record() as record:
            assert published(workspace).facts == derive_graph(record).facts


class TestDerivingAgain:
    """A folder that may be open somewhere is never written: what is derived again gets a number of its own."""

    def test_it_is_made_from_nothing_under_the_next_number(self, workspace: Workspace) -> None:
        with workspace.writing(), workspace.open_record() as record:
            published_now = publish(workspace, record)
            assert published_now == record.generation == workspace.current() == 2
        assert layer_of(workspace).base == 2

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

    def test_a_damaged_search_index_is_not_taken_over(self, workspace: Workspace) -> None:
        for content in (b"", b"garbage" * 1000):
            for path in workspace.index_folder(workspace.current() or 0).glob("chroma/*/chroma.sqlite3"):
                path.write_bytes(content)
            publish_workspace(workspace.root, [passage_of("e", "E", "text")])
            assert nearest(workspace, HashEmbedder(), "E\ntext") == ("e", 1.0), content
            assert nearest(workspace, HashEmbedder(), PASSAGES[0].content) == ("a", 1.0), content

    def test_a_damaged_record_is_no_reason_to_try_for_ever(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def damaged(*_: object, **__: object) -> None:
            raise WorkspaceDamaged("The record cannot be read")

        monkeypatch.setattr("graph.construction.build.build_generation", damaged)
        with workspace.writing(), workspace.open_record() as record, pytest.raises(WorkspaceDamaged):
            publish(workspace, record)
        assert workspace.current() == 1


def test_nothing_of_chroma_is_asked_to_phone_home(workspace: Workspace) -> None:
    layer = layer_of(workspace)
    opened = ChromaStore().open(Place(workspace.index_folder(1), layer.store, layer.key))
    assert opened._client.get_settings().anonymized_telemetry is False
    opened.close()


def test_no_memory_of_the_process_goes_into_the_files_of_an_index_that_keeps_places_free(template: Path) -> None:
    files = [path for name in ("data_level0.bin", "length.bin") for path in template.glob(f"index/*/chroma/*/*/{name}")]
    assert len(files) == 4
    for path in files:
        assert path.stat().st_size > 0
        assert path.read_bytes().strip(b"\0") == b""


def test_an_index_file_that_is_being_written_is_left_to_what_writes_it(tmp_path: Path) -> None:
    (tmp_path / "segment").mkdir()
    (tmp_path / "segment" / "header.bin").write_bytes(b"\1\0")
    wipe_unused(tmp_path)
    assert (tmp_path / "segment" / "header.bin").read_bytes() == b"\1\0"


def test_nothing_of_a_passage_that_goes_stays_in_what_builds_keep(workspace: Workspace) -> None:
    def is_kept() -> bool:
        return any(b"Nissan built" in path.read_bytes() for path in workspace.build_cache.rglob("*.npy"))

    publish_workspace(workspace.root, [passage_of("x", "X", "Nissan built it.")])
    assert is_kept()
    publish_workspace(workspace.root, [], removed=["x"])
    assert not is_kept()
    with workspace.writing(), workspace.open_record() as record:
        workspace.withdraw(record)
    assert not workspace.build_cache.exists()
