from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from numpy.typing import NDArray

from graph.derive import publish
from graph.errors import BadInput, StoreUnavailable, WorkspaceDamaged
from graph.index import IndexPool, open_index
from graph.store import Vectors, VectorStore, passage_metadata
from graph.writer import reembed
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace

DIMENSION = 4


def unit_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def facts(*ids: str) -> Vectors:
    """One vector an id, always the same for it."""
    vectors = [unit_vectors(1, seed=int.from_bytes(key.encode()) % 2**32)[0] for key in ids]
    return Vectors(ids, np.array(vectors, dtype=np.float32).reshape(len(ids), DIMENSION))


def passages(**fingerprints: str) -> Vectors:
    metadata = [passage_metadata(fingerprint, "a.txt", {}) for fingerprint in fingerprints.values()]
    return Vectors(list(fingerprints), facts(*fingerprints).vectors, metadata)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    store = VectorStore.embedded(tmp_path / "chroma")
    yield store
    store.close()


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
    def test_only_what_is_new_or_changed_is_written_and_only_what_is_gone_deleted(
        self, store: VectorStore, calls: dict[str, list[list[str]]]
    ) -> None:
        store.synchronise("passages", passages(a="1", b="1", c="1"), "m")
        assert calls == {"upsert": [["a", "b", "c"]], "delete": []}
        store.synchronise("passages", passages(a="1", b="2", d="1"), "m")
        assert calls == {"upsert": [["a", "b", "c"], ["b", "d"]], "delete": [["c"]]}
        assert store.count("passages") == 3

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

    def test_it_pages_through_more_ids_than_chroma_takes_at_once(
        self, store: VectorStore, calls: dict[str, list[list[str]]]
    ) -> None:
        ids = [f"id-{i}" for i in range(5_100)]
        wanted = Vectors(ids, unit_vectors(len(ids)))
        store.synchronise("facts", wanted, "m")
        assert [len(page) for page in calls["upsert"]] == [5_000, 100]
        assert store.count("facts") == len(ids)
        store.synchronise("facts", wanted, "m")
        assert len(calls["upsert"]) == 2
        store.synchronise("facts", Vectors(ids[:50], wanted.vectors[:50]), "m")
        assert [len(page) for page in calls["delete"]] == [5_000, 50]
        assert store.count("facts") == 50

    def test_an_empty_collection_is_one(self, store: VectorStore) -> None:
        store.synchronise("facts", facts(), "m")
        assert store.count("facts") == 0
        assert store.search("facts", unit_vectors(1)[0], 5) == []

    def test_metadata_is_kept_but_for_keys_that_are_chromas_own(self, store: VectorStore) -> None:
        given: dict[str, str | int | float | bool] = {"year": 1933, "x": 0.5, "old": True, "tag": "é", "big": 2**62}
        reserved = {"": 1, "#x": 1, "$in": 1, "chroma:document": "x", "source": "theirs", "mara_fingerprint": "theirs"}
        row = passage_metadata("print", "a.txt", {**given, **reserved})
        store.synchronise("passages", Vectors(["a"], unit_vectors(1), [row]), "m")
        kept = store._collection("passages").get(include=["metadatas"])["metadatas"][0]
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
    def test_the_nearest_come_first_with_their_cosines(self, store: VectorStore) -> None:
        vectors = unit_vectors(40)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(40)], vectors), "m")
        question = unit_vectors(1, seed=9)[0]
        expected = sorted(((f"f{i}", float(vectors[i] @ question)) for i in range(40)), key=lambda hit: -hit[1])
        found = store.search("facts", question, 10)
        assert [key for key, _ in found] == [key for key, _ in expected[:10]]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected[:10]], abs=1e-5)

    @pytest.mark.parametrize(("k", "found"), [(0, 0), (-1, 0), (1, 1), (3, 3), (300, 3)])
    def test_no_more_are_found_than_there_are(self, store: VectorStore, k: int, found: int) -> None:
        store.synchronise("facts", facts("a", "b", "c"), "m")
        assert len(store.search("facts", unit_vectors(1)[0], k)) == found

    def test_within_some_ids_their_nearest_are_found_however_far_they_are(self, store: VectorStore) -> None:
        vectors = unit_vectors(400)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(400)], vectors), "m")
        farthest = np.argsort(vectors @ vectors[0])[:9]
        found = store.search("facts", vectors[0], 5, within=[f"f{i}" for i in farthest])
        assert [key for key, _ in found] == [f"f{i}" for i in farthest[::-1][:5]]
        assert [cosine for _, cosine in found] == pytest.approx([*(vectors[farthest[::-1][:5]] @ vectors[0])], abs=1e-5)
        assert len(store.search("facts", vectors[0], 50, within=[f"f{i}" for i in farthest])) == 9
        assert store.search("facts", vectors[0], 5, within=[]) == []

    def test_a_selection_is_read_page_by_page(self, store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graph.store._PAGE", 10)
        ids = [f"p{i}" for i in range(45)]
        metadata = [passage_metadata("1", "a.txt", {"odd": i % 2 == 1}) for i in range(45)]
        store.synchronise("passages", Vectors(ids, unit_vectors(45), metadata), "m")
        assert store.select({"odd": True}) == {key: {} for key in ids[1::2]}
        assert store.select({"odd": False}).keys() == {*ids[::2]}
        assert len(store.select({"source": "a.txt"})) == 45
        assert store.select({"source": "b.txt"}) == {}

    def test_more_can_be_asked_for_than_the_index_looks_at_by_default(self, store: VectorStore) -> None:
        store.synchronise("facts", Vectors([f"f{i}" for i in range(400)], unit_vectors(400)), "m")
        assert len(store.search("facts", unit_vectors(1)[0], 300)) == 300


class TestKeeping:
    def test_what_is_not_there_counts_nothing_and_has_no_model(self, store: VectorStore) -> None:
        assert (store.count("facts"), store.embedding_model(), store.where) == (0, "", "embedded")

    def test_the_embedding_model_is_kept(self, store: VectorStore, tmp_path: Path) -> None:
        store.synchronise("facts", facts("a"), "some-model")
        store.close()
        again = VectorStore.embedded(tmp_path / "chroma")
        assert (again.embedding_model(), again.count("facts")) == ("some-model", 1)
        again.close()

    def test_dropping_makes_room_for_vectors_of_another_length(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a"), "m")
        store.drop()
        assert store.count("facts") == 0
        store.synchronise("facts", Vectors(["a"], np.ones((1, 7), dtype=np.float32)), "other")
        assert store.embedding_model() == "other"

    def test_searching_what_is_not_there_is_damage_that_says_what_to_do(self, store: VectorStore) -> None:
        with pytest.raises(WorkspaceDamaged, match=r"search index cannot be used.*mara index"):
            store.search("facts", unit_vectors(1)[0], 3)

    def test_a_damaged_database_is_damage_that_says_what_to_do(self, tmp_path: Path) -> None:
        (tmp_path / "chroma").mkdir()
        (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
        with pytest.raises(WorkspaceDamaged, match=r"search index cannot be used.*mara index"):
            VectorStore.embedded(tmp_path / "chroma")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_until_it_answers(process: subprocess.Popen[bytes], url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=5).close()
            return
        except OSError:
            try:
                code = process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"the server ended ({code})")
    pytest.fail("the server does not answer")


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [Path(sys.executable).with_name("chroma"), "run", "--path", folder]
    process = subprocess.Popen(
        [*map(str, command), "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_it_answers(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as url:
        yield url


CARS = [passage_of(f"car-{i}", f"Car {i}", f"car {i} was built") for i in range(12)]
SHIPS = [passage_of(f"ship-{i}", f"Ship {i}", f"ship {i} was built") for i in range(12)]
BUILT: dict[str, list[TripleParts]] = {p.id: [(p.title, "was built by", f"yard {p.id}")] for p in [*CARS, *SHIPS]}


class TestServer:
    @pytest.fixture(autouse=True)
    def configured(self, chroma_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_CHROMA_URL", chroma_url)

    def test_a_workspace_is_indexed_and_searched_and_its_results_say_where(
        self, tmp_path: Path, chroma_url: str, hash_embedder: HashEmbedder
    ) -> None:
        workspace = publish_workspace(tmp_path, CARS, BUILT, hash_embedder)
        index = open_index(tmp_path, hash_embedder)
        assert index.store_name == chroma_url
        ((passage, cosine),) = index.search_passages(CARS[7].content, 1)
        assert (index.graph.passages[passage].id, round(cosine, 5)) == ("car-7", 1.0)
        ((fact, _),) = index.search_facts("car 3 was built by yard car-3", 1)
        assert fact.fact.subject == "Car 3"
        assert not (workspace.index_folder(1) / "chroma").exists()
        index.close()

    def test_two_workspaces_on_one_server_do_not_see_each_other(
        self, tmp_path: Path, hash_embedder: HashEmbedder
    ) -> None:
        for name, corpus in (("cars", CARS), ("ships", SHIPS)):
            publish_workspace(tmp_path / name, corpus, BUILT, hash_embedder)
        publish_workspace(tmp_path / "ships", [], {}, hash_embedder, removed=["ship-0"])
        cars, ships = (open_index(tmp_path / name, hash_embedder) for name in ("cars", "ships"))
        assert len(cars.search_passages("ship 1 was built", 99)) == 12
        assert len(ships.search_passages("car 1 was built", 99)) == 11
        assert {fact.fact.subject[:3] for fact, _ in cars.search_facts("Ship 1 was built by", 99)} == {"Car"}
        cars.close()
        ships.close()

    def test_a_filter_shows_a_reader_its_own_generation_alone(
        self, tmp_path: Path, hash_embedder: HashEmbedder
    ) -> None:
        """The newer generation adds a passage of the same owner, and gives car-1 to it."""
        for key, owner in (("car-0", "ann"), ("car-1", "bob"), ("car-2", "ann")):
            publish_workspace(tmp_path, [passage_of(key, key, f"{key} was built", owner=owner)], BUILT, hash_embedder)
        reader = open_index(tmp_path, hash_embedder)
        changed = [passage_of(key, key, f"{key} was built", owner="ann") for key in ("car-1", "car-3")]
        publish_workspace(tmp_path, changed, BUILT, hash_embedder, removed=["car-2"])
        current = open_index(tmp_path, hash_embedder)
        for index, seen in ((reader, ["car-0"]), (current, ["car-0", "car-1", "car-3"])):
            selection = index.select({"owner": "ann"})
            assert selection is not None
            assert [index.graph.passages[row].id for row in selection.rows] == seen
            found = index.search_facts("car-1 was built", 9, selection)
            assert {fact.fact.id for fact, _ in found} == selection.facts.keys()
            index.close()

    def test_facts_that_a_newer_generation_removed_are_searched_past(
        self, tmp_path: Path, hash_embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_workspace(tmp_path, CARS, BUILT, hash_embedder)
        reader = open_index(tmp_path, hash_embedder)
        publish_workspace(tmp_path, [], {}, hash_embedder, removed=["car-0"])
        monkeypatch.setattr("graph.index._MOST_OVERFETCHED", 0)
        found = reader.search_facts("car", 9, reader.select({"source": {"$in": ["car-0.txt", "car-1.txt"]}}))
        assert [fact.fact.subject for fact, _ in found] == ["Car 1"]
        reader.close()

    def test_a_reader_of_an_older_generation_never_gets_what_is_newer(
        self, tmp_path: Path, hash_embedder: HashEmbedder
    ) -> None:
        publish_workspace(tmp_path, CARS, BUILT, hash_embedder)
        reader = open_index(tmp_path, hash_embedder)
        newer = [passage_of(f"new-{i}", f"Car {i}", f"car {i} was built anew") for i in range(100)]
        publish_workspace(tmp_path, newer, {}, hash_embedder, removed=["car-0"])
        for question in (newer[5].content, "Car 5", "ship"):
            found = [reader.graph.passages[passage].id for passage, _ in reader.search_passages(question, 5)]
            assert len(found) == 5
            assert set(found) <= {car.id for car in CARS[1:]}
        current = open_index(tmp_path, hash_embedder)
        ((passage, _),) = current.search_passages(newer[5].content, 1)
        assert current.graph.passages[passage] == newer[5]
        reader.close()
        current.close()

    def test_a_workspace_that_was_embedded_moves_to_the_server_and_back(
        self, tmp_path: Path, hash_embedder: HashEmbedder, chroma_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("MARA_CHROMA_URL")
        publish_workspace(tmp_path, CARS, BUILT, hash_embedder)
        pool = IndexPool()
        embedded = len(hash_embedder.asked)
        for url, where in (("", "embedded"), (chroma_url, chroma_url), ("", "embedded")):
            monkeypatch.setenv("MARA_CHROMA_URL", url)
            index = pool.get(tmp_path, hash_embedder)
            assert index.store_name == where
            assert len(index.search_passages("Car 5", 12)) == 12
        assert hash_embedder.asked[embedded:].count("Car 5") == len(hash_embedder.asked[embedded:])
        pool.close()

    def test_another_models_vectors_replace_the_old_ones(self, tmp_path: Path) -> None:
        workspace = publish_workspace(tmp_path, CARS, BUILT)
        other = HashEmbedder("other")
        with workspace.writing(), workspace.open_record() as record:
            reembed(record, other)
            publish(workspace, record)
        index = open_index(tmp_path, other)
        ((passage, cosine),) = index.search_passages(CARS[7].content, 1)
        assert (index.graph.passages[passage].id, round(cosine, 5)) == ("car-7", 1.0)
        index.close()


class TestServerFaults:
    def test_one_that_is_down_is_named_with_the_variable(
        self, tmp_path: Path, hash_embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_workspace(tmp_path, CARS[:1], BUILT, hash_embedder)
        url = f"http://127.0.0.1:{free_port()}"
        monkeypatch.setenv("MARA_CHROMA_URL", url)
        with pytest.raises(StoreUnavailable, match=rf"{url} .*chroma run.*MARA_CHROMA_URL") as caught:
            open_index(tmp_path, hash_embedder)
        assert caught.value.exit_code == 3
        monkeypatch.delenv("MARA_CHROMA_URL")
        open_index(tmp_path, hash_embedder).close()

    def test_writing_to_one_that_is_down_loses_nothing(
        self, tmp_path: Path, hash_embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_workspace(tmp_path, CARS[:1], BUILT, hash_embedder)
        with monkeypatch.context() as patch:
            patch.setenv("MARA_CHROMA_URL", f"http://127.0.0.1:{free_port()}")
            with pytest.raises(StoreUnavailable):
                publish_workspace(tmp_path, CARS[1:2], BUILT, hash_embedder)
        index = open_index(tmp_path, hash_embedder)
        assert [passage.id for passage in index.graph.passages] == ["car-0", "car-1"]
        index.close()

    def test_one_that_goes_away_while_it_is_used(self, tmp_path: Path) -> None:
        with chroma_server(tmp_path) as url:
            store = VectorStore.server(url, "leaving")
            store.synchronise("facts", facts("a"), "m")
        for use in (
            lambda: store.search("facts", unit_vectors(1)[0], 1),
            lambda: store.search("facts", unit_vectors(1)[0], 1, within=["a"]),
            lambda: store.select({"source": "a.txt"}),
            lambda: store.count("facts"),
            lambda: store.synchronise("facts", facts("b"), "m"),
            store.embedding_model,
        ):
            with pytest.raises(StoreUnavailable, match="MARA_CHROMA_URL"):
                use()

    @pytest.mark.parametrize(
        "url", ["localhost:8000", "ftp://localhost", "http://", "http://[::1", "http://localhost:99999", "chroma"]
    )
    def test_what_is_no_address_is_bad_input(self, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        publish_workspace(tmp_path, CARS[:1])
        monkeypatch.setenv("MARA_CHROMA_URL", url)
        with pytest.raises(BadInput, match=r"MARA_CHROMA_URL is .*http://localhost:8000"):
            open_index(tmp_path, HashEmbedder())
