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
from graph.publish.vector_store import VectorStore
from graph.publish.vectors import passage_metadata
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, passage_of, publish_workspace, write_bm25
from tests.cases import mostly_slow
from tests.damages import (
    PASSAGES,
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


def not_unicode(workspace: Workspace) -> None:
    path = workspace.index_folder(1) / "entities.text.npy"
    path.write_bytes(path.read_bytes().replace(b"thing", b"\xff\xfe\xfd\xfc\xfb", 1))


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
    "no manifest": (gone("manifest.json"), "manifest"),
    "a garbled manifest": (garbage("manifest.json"), "manifest"),
    "another's manifest": (of_another_workspace, "manifest"),
    "no CURRENT": (gone("CURRENT"), "published generation"),
    "a garbled CURRENT": (garbage("CURRENT"), "published generation"),
    "no such generation": (lambda w: (w.root / "CURRENT").write_text("7\n"), "snapshot"),
    "no generation at all": (gone("index"), "snapshot"),
    "another commit's snapshot": (of_another_commit, "published generation"),
    "no snapshot": (gone("index/1/snapshot.json"), "snapshot"),
    "half a snapshot": (truncated("index/1/edge_target.npy"), "snapshot"),
    "no edges": (gone("index/1/edge_kind.npy"), "snapshot"),
    "text that is no Unicode": (not_unicode, "snapshot"),
    "a letter of a passage": (renamed, "snapshot and record"),
    "a weight": (rewritten("index/1/edge_weight.npy", add(1e-4)), "snapshot and record"),
    "an offset": (rewritten("index/1/edge_offset.npy", add(1)), "snapshot and record"),
    "a count of passages": (rewritten("index/1/name_passages.npy", add(1)), "snapshot and record"),
    "a fact's relation": (rewritten("index/1/fact_relations.npy", add(1)), "snapshot and record"),
    "a vector of the snapshot": (rewritten("index/1/passage_vectors.npy", add(0.01)), "snapshot and record"),
    "an alias's spelling": (rewritten("index/1/spellings.numbers.values.npy", add(1, -2)), "snapshot and record"),
    "no words": (gone("index/1/bm25"), "word index"),
    "half the words": (truncated("index/1/bm25/weights.npy"), "word index"),
    "a word's weight": (rewritten("index/1/bm25/weights.npy", add(0.5)), "word index"),
    "garbled words": (garbage("index/1/bm25/terms.bounds.npy"), "word index"),
    "others' words": (words_of_others, "word index"),
    "no search index": (gone("index/1/chroma"), "search index"),
    "a garbled search index": (garbage("index/1/chroma/chroma.sqlite3"), "search index"),
}


ALIKE = {
    *("a garbled manifest", "no such generation", "half a snapshot", "no edges", "an offset", "a count of passages"),
    *("a fact's relation", "an alias's spelling", "garbled words", "a word's weight", "no words"),
}
"""Found as others are."""


@pytest.mark.parametrize(
    ("damage", "check"),
    [pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in ALIKE else []) for name, case in DERIVED.items()],
)
def test_what_is_derived_is_found_damaged(workspace: Workspace, damage: Damage, check: str) -> None:
    damage(workspace)
    found = problems(examine_workspace(workspace.root))
    assert check in found
    assert all(found.values()), "all of it can be repaired"


@pytest.mark.parametrize(
    "name",
    mostly_slow(
        ["no generation at all", "a garbled search index", "a garbled CURRENT", "a weight", "half the words"], 2
    ),
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


def no_collection(store: VectorStore) -> None:
    store._client.delete_collection(f"{store._prefix}facts")


def no_fact(store: VectorStore) -> None:
    collection = store._collections.open("facts")
    collection.delete(ids=[collection.get(limit=1)["ids"][0]])


def no_passage(store: VectorStore) -> None:
    store._collections.open("passages").delete(ids=["cd"])


def other_vector_of_a_fact(store: VectorStore) -> None:
    collection = store._collections.open("facts")
    key = collection.get(limit=1)["ids"][0]
    collection.update(ids=[key], embeddings=HashEmbedder().embed(["something else"]))


def other_vector_of_a_passage(store: VectorStore) -> None:
    store._collections.open("passages").update(ids=["cd"], embeddings=HashEmbedder().embed(["something else"]))


def older_passage(store: VectorStore) -> None:
    store._collections.open("passages").update(ids=["cd"], metadatas=[passage_metadata("older", "cd.txt", {})])


def broken_off(store: VectorStore) -> None:
    collection = store._collections.open("passages")
    collection.modify(metadata={**collection.metadata, "mara_writing": "a commit"})


def of_another_commit_than_the_snapshot(store: VectorStore) -> None:
    collection = store._collections.open("facts")
    collection.modify(metadata={**collection.metadata, "mara_commit": "another"})


UNSEARCHABLE: dict[str, tuple[Callable[[VectorStore], None], str]] = {
    "no collection": (no_collection, "search index: facts"),
    "a missing fact": (no_fact, "search index: facts"),
    "a missing passage": (no_passage, "search index: passages"),
    "a fact's vector": (other_vector_of_a_fact, "search index: vectors of facts"),
    "a passage's vector": (other_vector_of_a_passage, "search index: vectors of passages"),
    "an older passage": (older_passage, "search index: passages"),
    "a write that was broken off": (broken_off, "search index: passages"),
    "another commit": (of_another_commit_than_the_snapshot, "search index: facts"),
}


@pytest.mark.parametrize(("change", "check"), mostly_slow(UNSEARCHABLE, 5))
def test_what_the_search_index_lacks_is_found(
    workspace: Workspace, change: Callable[[VectorStore], None], check: str
) -> None:
    with_store(workspace, change)
    assert problems(examine_workspace(workspace.root)) == {check: True}


def test_a_record_too_many_is_found_and_taken_out(workspace: Workspace) -> None:
    vector = HashEmbedder().embed(["nothing"])
    with_store(workspace, lambda store: store._collections.open("facts").add(ids=["fact-0"], embeddings=vector))
    before, _, after = repair_workspace(workspace.root)
    assert problems(before) == {"search index: facts": True}
    assert "fact-0" in said(before, "search index: facts")
    assert after.ok
    held: set[str] = set()
    with_store(workspace, lambda store: held.update(store.fingerprints("facts")))
    assert held == set(load(published(workspace)).facts)


def test_nothing_is_taken_over_from_a_damaged_index_when_the_record_is_mended_too(workspace: Workspace) -> None:
    damage_record(workspace, "INSERT INTO names SELECT 'entity-0', 'nobody', vector FROM names LIMIT 1")
    with_store(workspace, other_vector_of_a_fact)
    before, done, after = repair_workspace(workspace.root)
    assert problems(before) == {"texts of names": True, "search index: vectors of facts": True}
    assert len(done) == 2
    assert after.ok, problems(after)


def of_search_json(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Let the layer be said to lie otherwise."""

    def rewrite(workspace: Workspace) -> None:
        path = published(workspace) / "search.json"
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held))

    return rewrite


def with_folder(generation: int, change: Callable[[VectorStore], object]) -> Damage:
    """Do something to the Chroma of one generation, without what it lies on or what lies on it."""

    def damage(workspace: Workspace) -> None:
        store = VectorStore.embedded(workspace.index_folder(generation) / "chroma")
        try:
            change(store)
        finally:
            store.close()

    return damage


def no_passage_of_the_layer(store: VectorStore) -> None:
    store._collections.open("passages").delete(ids=["ef"])


LAYERED: dict[str, tuple[Damage, str]] = {
    "no base": (gone("index/1"), "search index"),
    "a garbled base": (garbage("index/1/chroma/chroma.sqlite3"), "search index"),
    "a passage the base lacks": (with_folder(1, no_passage), "search index: passages"),
    "a vector of the base": (with_folder(1, other_vector_of_a_passage), "search index: vectors of passages"),
    "a base that was written": (with_folder(1, of_another_commit_than_the_snapshot), "search index: facts"),
    "no layer": (gone("index/2/chroma"), "search index"),
    "a passage the layer lacks": (with_folder(2, no_passage_of_the_layer), "search index: passages"),
    "a vector of the layer": (with_folder(2, other_vector_of_a_fact), "search index: vectors of facts"),
    "a layer of another commit": (with_folder(2, of_another_commit_than_the_snapshot), "search index: facts"),
    "a layer on nothing": (gone("index/2/search.json"), "search index: facts"),
    "a layer that hides too little": (of_search_json(lambda said: said.update(removed={})), "search index: facts"),
    "a layer that hides in no shape": (of_search_json(lambda said: said.update(removed=5)), "search index: facts"),
}


@pytest.fixture(scope="module")
def layers(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generation 2 lies on generation 1: one passage is new in it, one has changed."""
    root = Path(shutil.copytree(template, tmp_path_factory.mktemp("layers") / "workspace"))
    new = [passage_of("ef", "Title ef", "ef is another text", year=1900), passage_of("ij", "ij", "new", year=1901)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graph.publish.search_indexes._LARGE_INDEX", 1)
        publish_workspace(root, new, {"ef": [("ef thing", "is", "another text")]})
    assert (root / "index" / "1" / "chroma").is_dir()
    return root


class TestLayers:
    @pytest.fixture
    def layered(self, layers: Path, tmp_path: Path) -> Workspace:
        return Workspace(Path(shutil.copytree(layers, tmp_path / "layered")))

    def test_a_layer_and_its_base_are_in_order_and_nobody_writes_to_them(self, layered: Workspace) -> None:
        before = everything_in(layered.root)
        found = examine_workspace(layered.root)
        assert found.ok, problems(found)
        assert not tidyings(found)
        assert "holds all 5 passages" in said(found, "search index: passages")
        assert everything_in(layered.root) == before

    @pytest.mark.parametrize(("damage", "check"), mostly_slow(LAYERED, 4))
    def test_what_is_damaged_is_found(self, layered: Workspace, damage: Damage, check: str) -> None:
        damage(layered)
        found = problems(examine_workspace(layered.root))
        assert check in found
        assert all(found.values()), "all of it can be repaired"

    @pytest.mark.parametrize("name", mostly_slow(["a vector of the base", "no base", "a vector of the layer"], 1))
    def test_what_is_damaged_is_made_whole(self, layered: Workspace, name: str) -> None:
        LAYERED[name][0](layered)
        _, done, after = repair_workspace(layered.root)
        assert done
        assert after.ok, problems(after)
        assert not tidyings(after)
        assert [path.name for path in (layered.root / "index").iterdir()] == [str(after.generation)]

    def test_a_change_of_what_is_hidden_is_no_damage(self, layered: Workspace) -> None:
        vector = HashEmbedder().embed(["something else"])
        with_folder(1, lambda store: store._collections.open("passages").update(ids=["ef"], embeddings=vector))(layered)
        assert examine_workspace(layered.root).ok


class TestServer:
    @pytest.fixture
    def served(
        self, workspace: Workspace, chroma_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> Workspace:
        """A workspace of its own on the server."""
        monkeypatch.setenv("MARA_CHROMA_URL", chroma_url)
        return publish_workspace(tmp_path / "served", PASSAGES, TRIPLES)

    def test_a_whole_workspace_is_in_order(self, served: Workspace) -> None:
        before = everything_in(served.root)
        found = examine_workspace(served.root)
        assert found.ok, problems(found)
        assert not tidyings(found)
        assert everything_in(served.root) == before

    @pytest.mark.parametrize(
        "name", mostly_slow(["a missing passage", "no collection", "a fact's vector", "an older passage"], 1)
    )
    @pytest.mark.slow
    def test_what_it_lacks_is_found_and_written_again(self, served: Workspace, name: str) -> None:
        change, check = UNSEARCHABLE[name]
        with_store(served, change)
        before, _, after = repair_workspace(served.root)
        assert problems(before) == {check: True}
        assert after.ok, problems(after)

    def test_what_older_generations_left_is_no_problem_and_goes(self, served: Workspace) -> None:
        vector = HashEmbedder().embed(["nothing"])
        with_store(served, lambda store: store._collections.open("facts").add(ids=["fact-0"], embeddings=vector))
        before, done, after = repair_workspace(served.root)
        assert before.ok
        assert tidyings(before) == {"search index: facts"}
        assert "older generations  fact-0" in said(before, "search index: facts")
        assert done
        assert after.ok
        assert not tidyings(after)

    def test_what_another_reader_still_needs_is_none_of_it(self, served: Workspace) -> None:
        hold = served.hold(1)
        try:
            publish_workspace(served.root, [], removed=["cd"])
            found = examine_workspace(served.root)
            assert found.ok, problems(found)
            assert not tidyings(found)
        finally:
            hold.release()

    def test_one_that_does_not_answer(self, served: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_CHROMA_URL", "http://127.0.0.1:9")
        found, done, _ = repair_workspace(served.root)
        assert problems(found) == {"search index": False}
        assert "chroma run" in said(found, "search index")
        assert not done
