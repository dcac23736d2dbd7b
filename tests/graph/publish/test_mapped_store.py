"""Generations whose vectors are mapped files: published, laid over one another, opened, moved, damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph.checks.doctor import examine_workspace
from graph.errors import BadInput, DependencyMissing
from graph.publish import generation_vectors, mapped_store
from graph.publish.derive import publish
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed
from tests.builders import HashEmbedder, Silent
from tests.cases import mostly_slow
from tests.damages import everything_in, read_at_once
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

    @pytest.mark.parametrize("there", ["chroma", "mapped"])
    def test_a_workspace_moves_when_another_store_is_set(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, there: str
    ) -> None:
        for store, generation in ("chroma", 2), ("mapped", 3):
            monkeypatch.setenv("MARA_VECTORS", store)
            assert assert_opens(workspace, FIRST) == generation
            assert layer_of(workspace).store == store
            if store == there:
                break
        write(workspace.root, {"c": 1}, removed=["f"])
        assert layer_of(workspace).base == generation
        assert assert_opens(workspace, SECOND) == generation + 1

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


@pytest.mark.slow
def test_graphs_of_neighbours_answer_as_comparing_all_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="the extra `large` is not installed")
    monkeypatch.setattr(mapped_store, "COMPARED_ONE_BY_ONE", 3)
    monkeypatch.setattr(mapped_store, "_GATHERED", 2)
    write(tmp_path, FIRST)
    workspace = Workspace(tmp_path)
    assert {path.name for path in vectors_of(workspace).glob("*/*.hnsw")} == {"facts.0.hnsw", "passages.0.hnsw"}
    assert assert_opens(workspace, FIRST) == 1
    write(tmp_path, {"c": 1}, removed=["f"])
    assert layer_of(workspace).base == 1
    assert assert_opens(workspace, SECOND) == 2


def base_gone(workspace: Workspace) -> None:
    shutil.rmtree(workspace.index_folder(1))


def base_of_another_set(workspace: Workspace) -> None:
    replace(layer_of(workspace, 1), key="another", base_key="another").save(workspace.index_folder(1))


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
    base_of_another_set,
    base_gone,
    of_another_length,
    named_elsewhere,
]


class TestDamages:
    @pytest.mark.parametrize("damage", mostly_slow({damage.__name__: damage for damage in DAMAGES}, 3))
    def test_what_is_damaged_is_made_whole_when_it_is_opened(
        self, changed: Workspace, damage: Callable[[Workspace], None]
    ) -> None:
        damage(changed)
        assert assert_opens(changed, SECOND) == 3
        assert layer_of(changed).base == 3
        assert generations(changed) == {"3"}


class TestDoctor:
    def test_another_vector_of_a_fact_is_found(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        read_at_once(monkeypatch)
        path = file_of(workspace, "facts.npy")
        vectors = np.load(path)
        vectors[3] = -vectors[3]
        np.save(path, vectors)
        faults = [finding for finding in examine_workspace(workspace.root).findings if not finding.ok]
        assert [finding.check for finding in faults] == ["search index: vectors of facts"]
        assert faults[0].message.startswith("1 vectors")
