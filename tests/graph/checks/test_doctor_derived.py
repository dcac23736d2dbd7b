"""What is derived, damaged for real: the doctor finds each damage, and derives again without a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph.checks.doctor import examine_workspace, repair_workspace
from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import load
from graph.publish.chroma_store import ChromaSet, ChromaStore
from graph.publish.vector_store import Place
from graph.storage.workspace import Layer, Workspace
from tests.builders import HashEmbedder, passage_of, publish_workspace, write_bm25
from tests.cases import mostly_slow
from tests.damages import (
    PASSAGES,
    TRIPLES,
    Damage,
    everything_in,
    garbage,
    gone,
    problems,
    published,
    said,
    tidyings,
    truncated,
    with_store,
)

pytestmark = pytest.mark.usefixtures("no_embedder")


def rewritten(path: str, change: Callable[[Any], None]) -> Damage:
    """Change the numbers in an array."""

    def rewrite(workspace: Workspace) -> None:
        array = np.load(workspace.root / path)
        change(array)
        np.save(workspace.root / path, array)

    return rewrite


def add(amount: Any, row: int = 0) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        array[row] += amount

    return change


def renamed(workspace: Workspace) -> None:
    """Change a letter of a text."""
    path = workspace.index_folder(1) / "passages.text.npy"
    path.write_bytes(path.read_bytes().replace(b"Title cd", b"Title cD"))


def of_another_commit(workspace: Workspace) -> None:
    path = workspace.index_folder(1) / "snapshot.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "commit_id": "another"}))


def of_another_workspace(workspace: Workspace) -> None:
    path = workspace.root / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "workspace_id": "another"}))


def words_of_others(workspace: Workspace) -> None:
    shutil.rmtree(workspace.index_folder(1) / "bm25")
    write_bm25(["other", "words", "than", "these"], workspace.index_folder(1) / "bm25")


DERIVED: dict[str, tuple[Damage, str]] = {
    "another's manifest": (of_another_workspace, "manifest"),
    "a garbled CURRENT": (garbage("CURRENT"), "published generation"),
    "no generation at all": (gone("index"), "snapshot"),
    "another commit's snapshot": (of_another_commit, "published generation"),
    "a letter of a passage": (renamed, "snapshot and record"),
    "a weight": (rewritten("index/1/edge_weight.npy", add(1e-4)), "snapshot and record"),
    "half the words": (truncated("index/1/bm25/weights.npy"), "snapshot"),
    "others' words": (words_of_others, "snapshot and record"),
    "a garbled search index": (garbage("index/1/chroma/*/chroma.sqlite3"), "search index"),
}


@pytest.mark.parametrize(("damage", "check"), DERIVED.values(), ids=DERIVED)
def test_what_is_derived_is_found_damaged(workspace: Workspace, damage: Damage, check: str) -> None:
    damage(workspace)
    examination = problems(examine_workspace(workspace.root))
    assert check in examination
    assert all(examination.values()), "all of it can be repaired"


@pytest.mark.parametrize(
    "name",
    mostly_slow(["no generation at all", "a garbled search index", "a weight"], 2),
)
def test_what_is_derived_is_derived_again(workspace: Workspace, name: str) -> None:
    damage, check = DERIVED[name]
    damage(workspace)
    before, done, after = repair_workspace(workspace.root)
    assert check in problems(before)
    assert len(done) == 1
    assert after.ok, problems(after)
    assert not tidyings(after)
    with workspace.open_record() as record:
        assert load(published(workspace)).facts == derive_graph(record).facts


def deleted(name: str, id: str) -> Callable[[ChromaSet], None]:
    return lambda store: store._open(name)[0].delete(ids=[id])


def embedded_otherwise(name: str, id: str) -> Callable[[ChromaSet], None]:
    other = HashEmbedder().embed(["something else"])
    return lambda store: store._open(name)[0].update(ids=[id], embeddings=other)


UNSEARCHABLE: dict[str, tuple[Callable[[ChromaSet], None], str]] = {
    "a missing passage": (deleted("passages", "1"), "search index"),
    "a fact's vector": (embedded_otherwise("facts", "0"), "search index: vectors of facts"),
}


@pytest.mark.parametrize(("change", "check"), UNSEARCHABLE.values(), ids=UNSEARCHABLE)
def test_a_lack_is_found_and_mended(workspace: Workspace, change: Callable[[ChromaSet], None], check: str) -> None:
    with_store(workspace, change)
    before, _, after = repair_workspace(workspace.root)
    assert problems(before) == {check: True}
    assert after.ok, problems(after)


def with_set(generation: int, change: Callable[[ChromaSet], object]) -> Damage:
    """Do something to the set of one generation, without what it lies on or what lies on it."""

    def damage(workspace: Workspace) -> None:
        folder = workspace.index_folder(generation)
        layer = Layer.load(folder)
        assert layer is not None
        store = ChromaStore().open(Place(folder, layer.store, layer.key))
        try:
            change(store)
        finally:
            store.close()

    return damage


LAYERED: dict[str, tuple[Damage, str]] = {
    "no base": (gone("index/1"), "search index"),
    "a vector of the base": (with_set(1, embedded_otherwise("passages", "1")), "search index: vectors of passages"),
    "a passage the layer lacks": (with_set(2, deleted("passages", "0")), "search index"),
}


@pytest.fixture(scope="module")
def layers(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generation 2 lies on generation 1: one passage is new in it, one has changed."""
    root = Path(shutil.copytree(template, tmp_path_factory.mktemp("layers") / "workspace"))
    new = [passage_of("ef", "Title ef", "ef is another text", year=1900), passage_of("ij", "ij", "new", year=1901)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graph.publish.generation_vectors._LARGE", 1)
        publish_workspace(root, new, {"ef": [("ef thing", "is", "another text")]})
    assert (root / "index" / "1" / "chroma").is_dir()
    return root


class TestLayers:
    @pytest.fixture
    def layered(self, layers: Path, tmp_path: Path) -> Workspace:
        return Workspace(Path(shutil.copytree(layers, tmp_path / "layered")))

    def test_a_layer_and_its_base_are_in_order_and_nobody_writes_to_them(self, layered: Workspace) -> None:
        before = everything_in(layered.root)
        examination = examine_workspace(layered.root)
        assert examination.ok, problems(examination)
        assert not tidyings(examination)
        assert "All 5 vectors of passages" in said(examination, "search index: vectors of passages")
        assert everything_in(layered.root) == before

    @pytest.mark.parametrize(("damage", "check"), LAYERED.values(), ids=LAYERED)
    def test_what_is_damaged_is_found(self, layered: Workspace, damage: Damage, check: str) -> None:
        damage(layered)
        examination = problems(examine_workspace(layered.root))
        assert check in examination
        assert all(examination.values()), "all of it can be repaired"

    def test_what_is_damaged_is_made_whole(self, layered: Workspace) -> None:
        LAYERED["a vector of the base"][0](layered)
        _, done, after = repair_workspace(layered.root)
        assert done
        assert after.ok, problems(after)
        assert not tidyings(after)
        assert [path.name for path in (layered.root / "index").iterdir()] == [str(after.generation)]

    def test_a_change_of_what_is_hidden_is_no_damage(self, layered: Workspace) -> None:
        hidden = str(load(layered.index_folder(1)).passage_index["ef"])
        with_set(1, embedded_otherwise("passages", hidden))(layered)
        assert examine_workspace(layered.root).ok


class TestServer:
    @pytest.fixture
    def served(
        self, workspace: Workspace, chroma_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> Workspace:
        """A workspace of its own on the server."""
        monkeypatch.setenv("MARA_VECTORS", f"chroma+{chroma_url}")
        return publish_workspace(tmp_path / "served", PASSAGES, TRIPLES)

    def test_one_that_does_not_answer(self, served: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_VECTORS", "chroma+http://127.0.0.1:9")
        examination, done, _ = repair_workspace(served.root)
        assert problems(examination) == {"search index": False}
        assert "chroma run" in said(examination, "search index")
        assert not done
