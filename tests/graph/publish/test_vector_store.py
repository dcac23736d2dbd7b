from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import MaraError, StoreUnavailable, WorkspaceDamaged
from graph.publish import vector_store
from graph.publish.chroma_files import wipe_unused
from graph.publish.vector_store import _PAGE, VectorStore
from graph.publish.vectors import Stamp, Vectors, passage_metadata
from tests.cases import EITHER_CHROMA

DIMENSION = 4


def unit_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def facts(*ids: str) -> Vectors:
    """One vector an id, always the same for it."""
    vectors = [unit_vectors(1, seed=int.from_bytes(key.encode()) % 2**32)[0] for key in ids]
    return Vectors(ids, np.array(vectors, dtype=np.float32).reshape(len(ids), DIMENSION))


def model_of(store: VectorStore) -> str:
    stamp = store.stamp("facts")
    return stamp.embedding_model if stamp else ""


def passages(**fingerprints: str) -> Vectors:
    metadata = [passage_metadata(fingerprint, "a.txt", {}) for fingerprint in fingerprints.values()]
    return Vectors(list(fingerprints), facts(*fingerprints).vectors, metadata)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """The ids of every call that writes to Chroma or deletes from it."""
    seen: dict[str, list[list[str]]] = {"upsert": [], "delete": []}

    def watch(name: str) -> None:
        original = getattr(chromadb.Collection, name)

        def watched(self: chromadb.Collection, **content: Any) -> Any:
            seen[name].append(list(content["ids"]))
            return original(self, **content)

        monkeypatch.setattr(chromadb.Collection, name, watched)

    for name in seen:
        watch(name)
    return seen


class TestSynchronising:
    @EITHER_CHROMA
    def test_only_what_is_new_or_changed_is_written_and_only_what_is_gone_deleted(
        self, store: VectorStore, calls: dict[str, list[list[str]]]
    ) -> None:
        store.synchronise("passages", passages(a="1", b="1", c="1"), "m")
        assert calls == {"upsert": [["a", "b", "c"]], "delete": []}
        store.synchronise("passages", passages(a="1", b="2", d="1"), "m")
        moved = [] if store.shared else [["b"]]
        assert calls == {"upsert": [["a", "b", "c"], ["b", "d"]], "delete": [*moved, ["c"]]}
        assert store.count("passages") == 3

    @EITHER_CHROMA
    def test_a_changed_vector_is_the_one_that_is_read_and_found(self, store: VectorStore) -> None:
        for fingerprint, vector in (("1", unit_vectors(1, seed=1)), ("2", unit_vectors(1, seed=2))):
            wanted = passages(a="1", b=fingerprint)
            store.synchronise("passages", replace(wanted, vectors=np.concatenate([wanted.vectors[[0]], vector])), "m")
        ((key, cosine),) = store.search("passages", unit_vectors(1, seed=2)[0], 1)
        assert key == "b"
        assert cosine == pytest.approx(1.0, abs=1e-6)
        assert store.vectors("passages", ["b"])["b"] == pytest.approx(unit_vectors(1, seed=2)[0], abs=1e-6)

    def test_nothing_is_written_when_nothing_changed(
        self, store: VectorStore, calls: dict[str, list[list[str]]]
    ) -> None:
        for _ in range(2):
            store.synchronise("facts", facts("a", "b"), "m")
        assert calls == {"upsert": [["a", "b"]], "delete": []}

    def test_facts_are_told_by_their_ids_alone(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a", "b"), "m")
        store.synchronise("facts", facts("b", "c"), "m")
        assert sorted(key for key, _ in store.search("facts", unit_vectors(1)[0], 10)) == ["b", "c"]

    @pytest.mark.parametrize("page", [100, pytest.param(_PAGE, marks=pytest.mark.slow)])
    def test_it_pages_through_more_ids_than_chroma_takes_at_once(
        self, store: VectorStore, calls: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch, page: int
    ) -> None:
        monkeypatch.setattr("graph.publish.vector_store._PAGE", page)
        ids = [f"id-{i}" for i in range(page + 50)]
        wanted = Vectors(ids, unit_vectors(len(ids)))
        store.synchronise("facts", wanted, "m")
        assert [len(written) for written in calls["upsert"]] == [page, 50]
        assert store.count("facts") == len(ids)
        store.synchronise("facts", wanted, "m")
        assert len(calls["upsert"]) == 2
        store.synchronise("facts", Vectors(ids[:20], unit_vectors(20)), "m")
        assert [len(deleted) for deleted in calls["delete"]] == [page, 30]
        assert store.count("facts") == 20

    def test_an_empty_collection_is_one(self, store: VectorStore) -> None:
        store.synchronise("facts", facts(), "m")
        assert store.count("facts") == 0
        assert store.search("facts", unit_vectors(1)[0], 5) == []

    @EITHER_CHROMA
    def test_metadata_is_kept_but_for_keys_that_are_chromas_own(self, store: VectorStore) -> None:
        given: dict[str, str | int | float | bool] = {"year": 1933, "x": 0.5, "old": True, "tag": "é", "big": 2**62}
        reserved = {"": 1, "#x": 1, "$in": 1, "chroma:document": "x", "source": "theirs", "mara_fingerprint": "theirs"}
        row = passage_metadata("print", "a.txt", {**given, **reserved})
        store.synchronise("passages", Vectors(["a"], unit_vectors(1), [row]), "m")
        kept = store._collections.open("passages").get(include=["metadatas"])["metadatas"][0]
        assert kept == {**given, "source": "a.txt", "mara_fingerprint": "2:print"}

    def test_what_an_older_version_wrote_is_written_again(
        self, store: VectorStore, calls: dict[str, list[list[str]]]
    ) -> None:
        old = Vectors(["a"], unit_vectors(1), [{"day": "2020-05-31", "source": "a.txt", "mara_fingerprint": "print"}])
        store.synchronise("passages", old, "m")
        assert store.select({"mara_date:day": {"$gt": 0}}) == {}
        new = Vectors(["a"], unit_vectors(1), [passage_metadata("print", "a.txt", {"day": "2020-05-31"})])
        for _ in range(2):
            store.synchronise("passages", new, "m")
        assert calls["upsert"] == [["a"], ["a"]]
        assert store.select({"mara_date:day": {"$gt": 0}}).keys() == {"a"}


class TestSearching:
    @EITHER_CHROMA
    def test_the_nearest_come_first_with_their_cosines(self, store: VectorStore) -> None:
        vectors = unit_vectors(40)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(40)], vectors), "m")
        question = unit_vectors(1, seed=9)[0]
        expected = sorted(((f"f{i}", float(vectors[i] @ question)) for i in range(40)), key=lambda hit: -hit[1])
        found = store.search("facts", question, 10)
        assert [key for key, _ in found] == [key for key, _ in expected[:10]]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected[:10]], abs=1e-5)

    def test_no_more_are_found_than_there_are(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a", "b", "c"), "m")
        for k, found in ((0, 0), (-1, 0), (1, 1), (3, 3), (300, 3)):
            assert len(store.search("facts", unit_vectors(1)[0], k)) == found

    @EITHER_CHROMA
    def test_within_some_ids_their_nearest_are_found_however_far_they_are(self, store: VectorStore) -> None:
        vectors = unit_vectors(400)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(400)], vectors), "m")
        farthest = np.argsort(vectors @ vectors[0])[:9]
        found = store.search("facts", vectors[0], 5, within=[f"f{i}" for i in farthest])
        assert [key for key, _ in found] == [f"f{i}" for i in farthest[::-1][:5]]
        assert [cosine for _, cosine in found] == pytest.approx([*(vectors[farthest[::-1][:5]] @ vectors[0])], abs=1e-5)
        assert len(store.search("facts", vectors[0], 50, within=[f"f{i}" for i in farthest])) == 9
        assert store.search("facts", vectors[0], 5, within=[]) == []

    @pytest.mark.parametrize("within", [None, ["f1", "f2", "f7"]])
    def test_of_few_records_all_are_found_also_those_that_the_graph_has_no_way_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: list[str] | None
    ) -> None:
        store, vectors = VectorStore.embedded(tmp_path / "chroma"), unit_vectors(40)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(40)], vectors), "m")
        before = store.search("facts", vectors[7], 40, within=within)
        query = chromadb.Collection.query

        def pass_by(self: chromadb.Collection, **asked: Any) -> Any:
            found: Any = query(self, **asked)
            kept = [i for i, key in enumerate(found["ids"][0]) if key not in ("f2", "f7")]
            return {name: [[found[name][0][i] for i in kept]] for name in ("ids", "distances")}

        monkeypatch.setattr(chromadb.Collection, "query", pass_by)
        found = store.search("facts", vectors[7], 40, within=within)
        assert [key for key, _ in found] == [key for key, _ in before]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in before], abs=1e-6)
        assert [key for key, _ in store.search("facts", vectors[7], 1, within=within)] == ["f7"]
        store.close()

    @EITHER_CHROMA
    def test_a_selection_is_read_page_by_page(self, store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graph.publish.vector_store._PAGE", 10)
        ids = [f"p{i}" for i in range(45)]
        metadata = [passage_metadata("1", "a.txt", {"odd": i % 2 == 1}) for i in range(45)]
        store.synchronise("passages", Vectors(ids, unit_vectors(45), metadata), "m")
        odd = store.select({"odd": True})
        assert odd.keys() == {*ids[1::2]}
        assert set(map(len, odd.values())) == {len(metadata[1]) if store.shared else 0}
        assert store.select({"odd": False}).keys() == {*ids[::2]}
        assert len(store.select({"source": "a.txt"})) == 45
        assert store.select({"source": "b.txt"}) == {}

    def test_more_can_be_asked_for_than_the_index_looks_at_by_default(self, store: VectorStore) -> None:
        store.synchronise("facts", Vectors([f"f{i}" for i in range(400)], unit_vectors(400)), "m")
        assert len(store.search("facts", unit_vectors(1)[0], 300)) == 300


class TestApplying:
    """What the caller knows to differ is written, and nothing is listed."""

    @pytest.fixture
    def synchronised(self, store: VectorStore) -> VectorStore:
        store.synchronise("facts", facts("a", "b", "c"), "m", commit="one")
        return store

    @EITHER_CHROMA
    def test_only_what_is_named_is_written_and_deleted(
        self, synchronised: VectorStore, calls: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as unlisted:
            unlisted.delattr(chromadb.Collection, "get")
            assert synchronised.apply("facts", facts("d", "b"), ["c", "unheard of"], "m", base="one", commit="two")
        assert calls == {"upsert": [["d", "b"]], "delete": [["c", "unheard of"]]}
        assert synchronised.fingerprints("facts").keys() == {"a", "b", "d"}
        assert synchronised.stamp("facts") == Stamp("m", "two", frozenset({"two"}))

    def test_it_ends_where_a_full_comparison_ends(self, connect: Callable[[], VectorStore]) -> None:
        store = connect()
        store.synchronise("passages", passages(a="1", b="1", c="1"), "m", commit="one")
        assert store.apply("passages", passages(b="2", d="1"), ["c"], "m", base="one", commit="two")
        wanted = passages(a="1", b="2", d="1")
        assert store.fingerprints("passages") == {"a": "2:1", "b": "2:2", "d": "2:1"}
        for row, key in enumerate(wanted.ids):
            (vector,) = wanted.vectors[[row]]
            ((found, cosine),) = store.search("passages", vector, 1)
            assert (found, round(cosine, 5)) == (key, 1.0)

    @pytest.mark.parametrize(
        ("model", "base"), [("m", "another"), ("m", ""), ("other", "one")], ids=["commit", "unknown commit", "model"]
    )
    def test_what_is_not_where_the_caller_thinks_is_left_alone(
        self, synchronised: VectorStore, calls: dict[str, list[list[str]]], model: str, base: str
    ) -> None:
        assert not synchronised.apply("facts", facts("d"), ["a"], model, base=base, commit="two")
        assert calls == {"upsert": [], "delete": []}
        assert synchronised.stamp("facts") == Stamp("m", "one", frozenset({"one"}))

    def test_a_collection_that_is_not_there_is_not_made(self, store: VectorStore) -> None:
        assert not store.apply("facts", facts("a"), [], "m", base="one", commit="two")
        assert store.stamp("facts") is None

    def test_one_that_was_never_stamped_is_no_base(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a"), "m")
        assert not store.apply("facts", facts("b"), [], "m", base="", commit="two")


class Broken(Exception):
    pass


class TestStamping:
    def test_it_tells_the_commit_that_a_collection_was_brought_up_to(self, store: VectorStore) -> None:
        assert store.stamp("facts") is None
        for commit in ("one", "two"):
            store.synchronise("facts", facts("a", "b"), "m", commit=commit)
            stamp = store.stamp("facts")
            assert stamp is not None
            assert stamp.is_at(commit)
        assert store.stamp("facts") == Stamp("m", "two", frozenset({"one", "two"}))

    def test_without_a_commit_it_says_so(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a"), "m", commit="one")
        store.synchronise("facts", facts("b"), "m")
        stamp = store.stamp("facts")
        assert stamp == Stamp("m")
        assert stamp.is_at("")

    @pytest.mark.parametrize("commit", ["two", ""])
    @pytest.mark.parametrize("call", ["upsert", "delete"])
    def test_a_writer_that_is_stopped_midway_leaves_its_mark_and_the_next_one_finishes(
        self, connect: Callable[[], VectorStore], monkeypatch: pytest.MonkeyPatch, call: str, commit: str
    ) -> None:
        def broken(self: chromadb.Collection, **content: Any) -> None:
            raise Broken

        store = connect()
        store.synchronise("facts", facts("a", "b"), "m", commit="one")
        with monkeypatch.context() as patch:
            patch.setattr(chromadb.Collection, call, broken)
            with pytest.raises(MaraError):
                store.synchronise("facts", facts("b", "c"), "m", commit=commit)
        stamp = store.stamp("facts")
        assert stamp is not None
        assert (stamp.commit, stamp.holds, bool(stamp.writing)) == ("one", frozenset(), True)
        assert not stamp.is_at("one")
        assert not stamp.is_at(commit)
        assert not store.apply("facts", facts("c"), ["a"], "m", base="one", commit="two")
        store.synchronise("facts", facts("b", "c"), "m", commit="two")
        assert store.stamp("facts") == Stamp("m", "two", frozenset({"two"}))
        assert store.fingerprints("facts").keys() == {"b", "c"}

    @EITHER_CHROMA
    def test_what_other_generations_hold_is_spared(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a", "b"), "m", commit="one")
        store.synchronise("facts", facts("b", "c"), "m", commit="two", spared={"one": ["a", "b"]})
        assert store.fingerprints("facts").keys() == {"a", "b", "c"}
        assert store.stamp("facts") == Stamp("m", "two", frozenset({"one", "two"}))
        store.synchronise("facts", facts("c", "d"), "m", commit="three", spared={"two": ["b", "c"]})
        assert store.fingerprints("facts").keys() == {"b", "c", "d"}
        assert store.stamp("facts") == Stamp("m", "three", frozenset({"two", "three"}))

    def test_removing_by_name_ends_the_hold_of_all_commits_but_those_spared(self, store: VectorStore) -> None:
        for commit in ("one", "two"):
            store.synchronise("facts", facts("a", "b", "c"), "m", commit=commit)
        assert store.apply("facts", facts(), ["c"], "m", base="two", commit="three", spared=["two"])
        assert store.stamp("facts") == Stamp("m", "three", frozenset({"two", "three"}))
        assert store.apply("facts", facts("d"), [], "m", base="three", commit="four")
        assert store.stamp("facts") == Stamp("m", "four", frozenset({"three", "four"}))

    @EITHER_CHROMA
    def test_each_collection_is_made_anew_for_another_model(self, store: VectorStore) -> None:
        """Also where a writer was killed after it had dropped the other collection."""
        store.synchronise("passages", passages(a="1", b="1"), "m", commit="one")
        turned = Vectors(["a"], np.ones((1, 7), dtype=np.float32) / np.float32(7**0.5), passages(a="1").metadata)
        store.synchronise("passages", turned, "other", commit="two")
        assert store.fingerprints("passages") == {"a": "2:1"}
        assert store.vectors("passages", ["a"])["a"] == pytest.approx(turned.vectors[[0]][0])
        assert store.stamp("passages") == Stamp("other", "two", frozenset({"two"}))


class TestListing:
    """What `mara doctor` compares with the record."""

    @EITHER_CHROMA
    def test_every_id_with_its_fingerprint(self, store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graph.publish.vector_store._PAGE", 2)
        store.synchronise("passages", passages(a="1", b="2", c="3", d="4", e="5"), "m")
        store.synchronise("facts", facts("f", "g", "h"), "m")
        assert store.fingerprints("passages") == {"a": "2:1", "b": "2:2", "c": "2:3", "d": "2:4", "e": "2:5"}
        assert store.fingerprints("facts") == {"f": None, "g": None, "h": None}

    def test_vectors_are_read_back(self, store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graph.publish.vector_store._PAGE", 2)
        wanted = facts("a", "b", "c")
        store.synchronise("facts", wanted, "m")
        read = store.vectors("facts", ["c", "unheard of", "a", "b"])
        assert read.keys() == {"a", "b", "c"}
        assert np.array([read[key] for key in wanted.ids]) == pytest.approx(wanted.vectors, abs=1e-6)

    @EITHER_CHROMA
    def test_a_collection_that_is_not_there_holds_nothing(self, store: VectorStore) -> None:
        assert store.fingerprints("facts") == {}
        assert store.vectors("facts", ["a"]) == {}


class TestWiping:
    def test_a_file_that_is_being_written_is_left_to_who_writes_it(self, tmp_path: Path) -> None:
        (tmp_path / "segment").mkdir()
        (tmp_path / "segment" / "header.bin").write_bytes(b"\1\0")
        wipe_unused(tmp_path)
        assert (tmp_path / "segment" / "header.bin").read_bytes() == b"\1\0"


class TestKeeping:
    @EITHER_CHROMA
    def test_what_is_not_there_counts_nothing_and_has_no_model(self, store: VectorStore, where: str) -> None:
        assert (store.count("facts"), model_of(store), store.where) == (0, "", where)

    @EITHER_CHROMA
    def test_the_embedding_model_is_kept(self, connect: Callable[[], VectorStore]) -> None:
        store = connect()
        store.synchronise("facts", facts("a"), "some-model")
        store.close()
        again = connect()
        assert (model_of(again), again.count("facts")) == ("some-model", 1)

    def test_a_search_looks_at_as_many_as_this_version_says(
        self, store: VectorStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as older:
            older.setattr("graph.publish.vector_store.EF_SEARCH", 100)
            store.synchronise("facts", facts("a"), "m")
        for _ in range(2):
            store.synchronise("facts", facts("a", "b"), "m", commit="one")
            assert store._collections.find("facts").configuration_json["hnsw"]["ef_search"] == 1000

    def test_dropping_makes_room_for_vectors_of_another_length(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a"), "m")
        store.drop()
        assert store.count("facts") == 0
        store.synchronise("facts", Vectors(["a"], np.ones((1, 7), dtype=np.float32)), "other")
        assert model_of(store) == "other"

    @EITHER_CHROMA
    def test_searching_what_is_not_there_says_what_to_do(self, store: VectorStore) -> None:
        with pytest.raises(MaraError, match=r"search index cannot be used.*mara index|no longer holds.*mara") as caught:
            store.search("facts", unit_vectors(1)[0], 3)
        assert isinstance(caught.value, StoreUnavailable if store.shared else WorkspaceDamaged)

    def test_a_damaged_database_is_damage_that_says_what_to_do(self, tmp_path: Path) -> None:
        (tmp_path / "chroma").mkdir()
        (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
        with pytest.raises(WorkspaceDamaged, match=r"search index cannot be used.*mara index"):
            VectorStore.embedded(tmp_path / "chroma")


def names_of(store: VectorStore) -> set[str]:
    names = (collection.name for collection in store._client.list_collections())
    return {name.removeprefix(store._prefix) for name in names if name.startswith(store._prefix)}


class TestSharded:
    """Of many records, a collection is several."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_store, "MOST_IN_SHARD", 10)

    @EITHER_CHROMA
    def test_they_are_searched_as_one(self, store: VectorStore) -> None:
        vectors = unit_vectors(35)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(35)], vectors), "m", commit="c")
        assert names_of(store) == {"facts", "facts-0", "facts-1", "facts-2", "facts-3"}
        assert store.count("facts") == len(store.fingerprints("facts")) == 35
        stamp = store.stamp("facts")
        assert stamp is not None
        assert stamp.is_at("c")
        for question in unit_vectors(3, seed=9):
            cosines = vectors @ question
            for among in range(35), range(5, 20):
                within = None if len(among) == 35 else [f"f{i}" for i in among]
                if within and store.shared:
                    within.append("unknown")
                right = sorted(among, key=lambda i: -cosines[i])[:7]
                found = store.search("facts", question, 7, within)
                assert [key for key, _ in found] == [f"f{i}" for i in right]
                assert [cosine for _, cosine in found] == pytest.approx(cosines[right], abs=1e-5)
        assert store.vectors("facts", ["f3", "nowhere"])["f3"] == pytest.approx(vectors[3], abs=1e-6)

    @EITHER_CHROMA
    def test_what_changes_is_written_where_it_belongs(self, store: VectorStore) -> None:
        keys = [f"p{i}" for i in range(35)]
        store.synchronise("passages", passages(**dict.fromkeys(keys, "1")), "m", commit="one")
        changed = {**dict.fromkeys(keys[:30], "1"), "p3": "2", "new": "1"}
        store.synchronise("passages", passages(**changed), "m", commit="two")
        assert store.fingerprints("passages") == {key: f"2:{value}" for key, value in changed.items()}
        assert store.apply("passages", passages(p4="3"), ["p5"], "m", base="two", commit="three")
        assert store.fingerprints("passages").keys() == changed.keys() - {"p5"}
        assert store.select({"source": "a.txt"}).keys() == changed.keys() - {"p5"}

    @EITHER_CHROMA
    def test_what_was_left_of_others_is_not_taken_over(self, store: VectorStore) -> None:
        store._client.create_collection(f"{store._prefix}facts-1", embedding_function=None).upsert(
            ids=["left"], embeddings=np.eye(7, dtype=np.float32)[:1]
        )
        store.synchronise("facts", Vectors([f"f{i}" for i in range(35)], unit_vectors(35)), "m")
        assert store.count("facts") == 35

    def test_growing_and_shrinking_by_far_changes_their_number(self, store: VectorStore) -> None:
        for count, collections in (8, 1), (25, 3), (45, 3), (61, 7), (5, 1):
            ids = [f"f{i}" for i in range(count)]
            store.synchronise("facts", Vectors(ids, unit_vectors(count)), "m")
            assert store.count("facts") == count
            assert len(names_of(store)) == (1 if collections == 1 else collections + 1)
        store.drop()
        assert names_of(store) == set()
