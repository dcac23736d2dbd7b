"""Workspaces that are damaged for real: what the doctor finds and puts right, and that it writes nothing unasked."""

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
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, publish_workspace, write_bm25, write_passages
from tests.cases import mostly_slow
from tests.damages import (
    TRIPLES,
    Damage,
    damage_record,
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


class TestLooking:
    def test_a_whole_workspace_is_in_order_and_nothing_is_written(self, workspace: Workspace) -> None:
        before = everything_in(workspace.root)
        examination = examine_workspace(workspace.root)
        assert everything_in(workspace.root) == before
        assert (examination.ok, examination.generation) == (True, 1)
        assert not problems(examination)
        assert not tidyings(examination)
        assert len({finding.check for finding in examination.findings}) == len(examination.findings) > 12
        (workspace.root / "record.sqlite-shm").write_bytes(b"\0" * 32768)
        before = everything_in(workspace.root)
        assert examine_workspace(workspace.root).ok
        assert everything_in(workspace.root) == before, "the index of a log was left alone"

    def test_nothing_is_written_to_what_a_killed_writer_left(self, workspace: Workspace) -> None:
        files = ("record.sqlite", "record.sqlite-wal")
        with workspace.open_record() as record:
            write_passages(record, [passage_of("ij", "Title ij", "text")], {}, HashEmbedder())
            left = {name: (workspace.root / name).read_bytes() for name in files}
        for name, content in left.items():
            (workspace.root / name).write_bytes(content)
        before = everything_in(workspace.root)
        examination = examine_workspace(workspace.root)
        assert everything_in(workspace.root) == before
        assert problems(examination) == {"published generation": True}
        assert said(examination, "passages").startswith("5 passages"), "the log is read, too"


class TestWriters:
    def test_the_published_generation_is_looked_at_while_a_writer_is_at_work(self, workspace: Workspace) -> None:
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            with workspace.open_record() as record:
                write_passages(record, [passage_of("ij", "Title ij", "text")], TRIPLES, HashEmbedder())
                record.mark_complete(False)
            (workspace.root / "index" / "2").mkdir()
            examination = examine_workspace(workspace.root)
            assert examination.ok
            assert not tidyings(examination)
            assert f"process {writer.process.pid}" in said(examination, "writer")
            assert "moved on" in said(examination, "published generation")

    def test_what_was_committed_and_not_published_is_published(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            write_passages(record, [passage_of("ij", "Title ij", "text")], TRIPLES, HashEmbedder())
            record.mark_complete(False)
        before, done, after = repair_workspace(workspace.root)
        assert problems(before) == {"indexing run": False, "published generation": True}
        assert len(done) == 1
        assert problems(after) == {"indexing run": False}
        assert "same command" in said(after, "indexing run")
        assert [passage.id for passage in load(published(workspace)).passages] == ["ab", "cd", "ef", "gh", "ij"]


class TestTidyingUp:
    def test_what_nobody_needs_is_no_problem_and_goes(self, workspace: Workspace) -> None:
        shutil.copytree(workspace.index_folder(1), workspace.index_folder(0))
        before, done, after = repair_workspace(workspace.root)
        assert before.ok
        assert tidyings(before) == {"older generations"}
        assert len(done) == 1
        assert after.ok
        assert not tidyings(after)
        assert {path.name for path in (workspace.root / "index").iterdir()} == {"1"}, "the current one stays"


class TestWhatCannotBeRepaired:
    def test_nothing_is_derived_from_damage(self, workspace: Workspace) -> None:
        damage_record(workspace, "DELETE FROM facts WHERE rowid = 1")
        (workspace.root / "manifest.json").unlink()
        before = everything_in(workspace.root)
        examination, done, after = repair_workspace(workspace.root)
        assert problems(examination) == {"vectors": False}
        assert "mara doctor --reembed" in said(examination, "vectors")
        assert not done
        assert after == examination
        assert everything_in(workspace.root) == before

    def test_a_record_that_cannot_be_opened(self, workspace: Workspace) -> None:
        garbage("record.sqlite")(workspace)
        before = everything_in(workspace.root)
        examination, done, _ = repair_workspace(workspace.root)
        assert problems(examination) == {"record file": False}
        assert "backup" in said(examination, "record file")
        assert said(examination, "snapshot").startswith("4 passages"), "questions can still be answered"
        assert not done
        assert everything_in(workspace.root) == before


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


@pytest.mark.parametrize("name", mostly_slow(["no generation at all", "a garbled search index", "a weight"], 2))
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

    @pytest.mark.parametrize(
        ("damage", "check"),
        [
            (gone("index/1"), "search index"),
            (with_set(1, embedded_otherwise("passages", "1")), "search index: vectors of passages"),
            (with_set(2, deleted("passages", "0")), "search index"),
        ],
        ids=["no base", "a vector of the base", "a passage the layer lacks"],
    )
    def test_damage_is_found_and_made_whole(self, layered: Workspace, damage: Damage, check: str) -> None:
        damage(layered)
        before, done, after = repair_workspace(layered.root)
        assert check in problems(before)
        assert done
        assert after.ok, problems(after)
        assert not tidyings(after)
        assert [path.name for path in (layered.root / "index").iterdir()] == [str(after.generation)]
