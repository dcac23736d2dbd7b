"""Generations whose vectors are mapped files: published, laid over one another, opened, moved, damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import BadInput, DependencyMissing
from graph.publish import generation_vectors, mapped_store
from graph.publish.derive import publish
from graph.publish.mapped_store import MappedStore, NearVectors
from graph.publish.vector_store import Place, Vectors
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed
from tests.builders import HashEmbedder, Silent
from tests.cases import mostly_slow
from tests.damages import everything_in
from tests.layered import assert_answers, assert_opens, generations, layer_of, write

FIRST = dict.fromkeys("abcdefghij", 0)
SECOND = {**dict.fromkeys("abdeghij", 0), "c": 1}
"""After the change that the layer holds: one passage changed, one gone."""


class Retrained(HashEmbedder):
    """Other vectors under the same name."""

    def _vector(self, text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return super()._vector(f"again {text}")


@pytest.fixture(autouse=True)
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.publish.generation_vectors._LARGE", 1)
    monkeypatch.setenv("MARA_VECTORS", "mapped")


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole index, and a layer, generation 2, over a base, generation 1."""
    root = tmp_path_factory.mktemp("templates")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graph.publish.generation_vectors._LARGE", 1)
        patched.setenv("MARA_VECTORS", "mapped")
        write(root / "whole", FIRST)
        shutil.copytree(root / "whole", root / "layered")
        write(root / "layered", {"c": 1}, removed=["f"])
    return root


@pytest.fixture
def workspace(templates: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(templates / "whole", tmp_path / "workspace")))


@pytest.fixture
def changed(templates: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(templates / "layered", tmp_path / "changed")))


def vectors_of(workspace: Workspace, generation: int = 0) -> Path:
    return workspace.index_folder(generation or workspace.current() or 0) / "mapped"


def file_of(workspace: Workspace, name: str, generation: int = 0) -> Path:
    (found,) = vectors_of(workspace, generation).glob(f"*/{name}")
    return found


class TestPublishing:
    def test_readers_and_the_next_generation_follow_it_without_the_variable(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("MARA_VECTORS")
        before = everything_in(vectors_of(workspace))
        index = open_index(workspace.root, Silent())
        assert index.store_name == "mapped"
        assert_answers(index, FIRST)
        index.close()
        assert everything_in(vectors_of(workspace)) == before, "reading writes nothing"
        write(workspace.root, {"c": 1}, removed=["f"])
        assert layer_of(workspace).store == "mapped"
        assert assert_opens(workspace, SECOND) == 2

    def test_another_name_is_refused(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_VECTORS", "faiss")
        with pytest.raises(BadInput, match=r"MARA_VECTORS is 'faiss'.*chroma, mapped"):
            write(workspace.root, {"x": 1})

    def test_a_workspace_moves_when_another_store_is_set(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for store, generation in ("chroma", 2), ("mapped", 3):
            monkeypatch.setenv("MARA_VECTORS", store)
            assert assert_opens(workspace, FIRST) == generation
            assert layer_of(workspace).store == store
        write(workspace.root, {"c": 1}, removed=["f"])
        assert layer_of(workspace).base == 3
        assert assert_opens(workspace, SECOND) == 4

    def test_vectors_that_were_replaced_are_written_anew(self, workspace: Workspace) -> None:
        retrained = Retrained()
        with workspace.writing(), workspace.open_record() as record:
            reembed(record, retrained)
            publish(workspace, record)
        assert layer_of(workspace).base == 2
        index = open_index(workspace.root, retrained)
        assert_answers(index, FIRST, retrained)
        index.close()

    def test_what_is_missing_is_named(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing() -> None:
            raise DependencyMissing("Vectors need faiss", "pip install 'mara-rag[large]'")

        monkeypatch.setattr(mapped_store, "COMPARED_ONE_BY_ONE", 1)
        monkeypatch.setattr(mapped_store, "load_faiss", missing)
        with pytest.raises(DependencyMissing, match="large"):
            write(workspace.root, dict.fromkeys("abcdefgh", 3))


class TestLayers:
    def test_a_large_index_takes_more_that_is_new_but_hides_no_more(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(generation_vectors, "_MOST_GONE", 0)
        monkeypatch.setattr(generation_vectors, "_SHARE_OF_NEW", 4)
        write(workspace.root, {"x": 1, "y": 1})
        assert (layer_of(workspace).base, workspace.current()) == (1, 2)
        assert assert_opens(workspace, {**FIRST, "x": 1, "y": 1}) == 2
        write(workspace.root, {}, removed=["f"])
        assert layer_of(workspace).base == 3


def a_vector_short(workspace: Workspace) -> None:
    path = file_of(workspace, "facts.npy")
    np.save(path, np.load(path)[:-1])


def of_another_length(workspace: Workspace) -> None:
    path = file_of(workspace, "facts.npy")
    np.save(path, np.load(path)[:, :-1])


def named_elsewhere(workspace: Workspace) -> None:
    file_of(workspace, "passages.path", 1).write_text("../../../record.sqlite")


DAMAGES: list[Callable[[Workspace], None]] = [
    a_vector_short,
    of_another_length,
    named_elsewhere,
]


class TestDamages:
    @pytest.mark.parametrize("damage", mostly_slow({damage.__name__: damage for damage in DAMAGES}, 2))
    def test_what_is_damaged_is_made_whole_when_it_is_opened(
        self, changed: Workspace, damage: Callable[[Workspace], None]
    ) -> None:
        damage(changed)
        assert assert_opens(changed, SECOND) == 3
        assert layer_of(changed).base == 3
        assert generations(changed) == {"3"}


DIMENSION = 32


def unit_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors in some hundred heaps, as those of sentences lie."""
    rng = np.random.default_rng(seed)
    heaps = np.random.default_rng(1).normal(size=(100, DIMENSION))
    vectors = heaps[rng.integers(100, size=count)] + 0.4 * rng.normal(size=(count, DIMENSION))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def nearest(
    vectors: NDArray[np.float32], question: NDArray[np.float32], k: int, within: NDArray[np.intp] | None = None
) -> list[int]:
    rows = np.arange(len(vectors)) if within is None else within
    return [int(row) for row in rows[np.argsort(-(vectors[rows] @ question), kind="stable")][:k]]


@pytest.mark.slow
class TestMany:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("faiss", reason="the extra `large` is not installed")
        monkeypatch.setattr(mapped_store, "COMPARED_ONE_BY_ONE", 100)
        monkeypatch.setattr(mapped_store, "_SHARD", 1500)
        monkeypatch.setattr(mapped_store, "_GATHERED", 20)

    @pytest.fixture
    def vectors(self) -> NDArray[np.float16]:
        return unit_vectors(4000).astype(np.float16)

    @pytest.fixture
    def near(self, vectors: NDArray[np.float16], tmp_path: Path) -> NearVectors:
        place = Place(tmp_path, "mapped", "0a")
        MappedStore().write(
            place, {"facts": Vectors(len(vectors), DIMENSION, lambda: iter([vectors.astype(np.float32)]))}
        )
        written = np.load(place.files / "facts.npy")
        assert written.dtype == np.float16, "many are kept in half precision"
        assert len(list(place.files.glob("facts.*.hnsw"))) == 3
        return NearVectors(vectors, place.files, "facts")

    def test_nearly_all_of_the_nearest_are_found_with_their_exact_cosines(
        self, near: NearVectors, vectors: NDArray[np.float16]
    ) -> None:
        found = 0
        for question in unit_vectors(50, seed=2):
            rows, cosines = map(np.array, zip(*near.search(question, 10), strict=True))
            assert cosines == pytest.approx(vectors[rows].astype(np.float32) @ question, abs=1e-6)
            assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)
            found += len({*rows.tolist()} & {*nearest(vectors.astype(np.float32), question, 10)})
        assert found >= 0.98 * 500

    def test_within_some_rows_their_nearest_are_found_however_far_they_are(
        self, near: NearVectors, vectors: NDArray[np.float16]
    ) -> None:
        for count in [15, 300]:
            within = np.sort(np.random.default_rng(3).choice(len(vectors), count, replace=False))
            for question in unit_vectors(20, seed=2):
                rows = [row for row, _ in near.search(question, 10, within)]
                assert rows == nearest(vectors.astype(np.float32), question, 10, within), count

    def test_a_damaged_file_is_refused(self, near: NearVectors, vectors: NDArray[np.float16], tmp_path: Path) -> None:
        for content in [b"", b"garbage" * 1000]:
            (tmp_path / "mapped/0a/facts.1.hnsw").unlink()
            (tmp_path / "mapped/0a/facts.1.hnsw").write_bytes(content)
            with pytest.raises(ValueError, match=r"facts\.1\.hnsw"):
                NearVectors(vectors, tmp_path / "mapped/0a", "facts")
