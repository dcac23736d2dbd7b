"""The search index on a Qdrant server: here in Qdrant's local mode, which compares all vectors."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from graph.checks.doctor import examine_workspace, repair_workspace
from graph.errors import BadInput, DependencyMissing, StoreUnavailable
from graph.metadata_filter import meets, read_conditions, to_chroma
from graph.publish import qdrant_collections
from graph.publish.derive import publish, publish_committed
from graph.publish.search_indexes import open_store, store_name
from graph.publish.vector_store import VectorStore
from graph.publish.vectors import Vectors, passage_metadata
from graph.retrieve.open_index import open_index
from graph.storage.place import name_record, place_name
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed
from tests.builders import HashEmbedder
from tests.graph.publish.test_metadata_columns import HELD, WHERE, passages_of
from tests.graph.publish.test_vector_store import facts, passages, unit_vectors
from tests.layered import assert_answers, assert_opens, layer_of, write
from tests.qdrant import use_local_qdrant

pytestmark = pytest.mark.slow

FIRST = dict.fromkeys("abcdefgh", 0)


class Other(HashEmbedder):
    model_id = "another"


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    return use_local_qdrant(monkeypatch)


@pytest.fixture
def store() -> VectorStore:
    return VectorStore.qdrant(uuid.uuid4().hex)


class TestStore:
    def test_it_names_its_server_without_secrets(self, store: VectorStore) -> None:
        assert store.where == "http://qdrant.test:6333"
        assert store.shared

    def test_only_what_changed_is_written_and_what_is_gone_deleted(self, store: VectorStore) -> None:
        store.synchronise("passages", passages(a="1", b="1", c="1"), "m", commit="one")
        store.synchronise("passages", passages(a="1", b="2", d="1"), "m", commit="two")
        assert store.count("passages") == 3
        assert store.fingerprints("passages") == {"a": "2:1", "b": "2:2", "d": "2:1"}
        stamp = store.stamp("passages")
        assert stamp is not None
        assert stamp.is_at("two")
        assert stamp.embedding_model == "m"

    def test_the_nearest_come_first_with_their_cosines_within_some_ids_too(self, store: VectorStore) -> None:
        vectors = unit_vectors(40)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(40)], vectors), "m")
        for question in unit_vectors(3, seed=9):
            cosines = vectors @ question
            for among in range(40), range(5, 20):
                within = None if len(among) == 40 else [*(f"f{i}" for i in among), "unknown"]
                found = store.search("facts", question, 7, within)
                right = sorted(among, key=lambda i: -cosines[i])[:7]
                assert [key for key, _ in found] == [f"f{i}" for i in right]
                assert [cosine for _, cosine in found] == pytest.approx(cosines[right], abs=1e-5)

    def test_a_search_within_more_ids_than_a_request_takes_is_several(
        self, store: VectorStore, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vectors = unit_vectors(40)
        store.synchronise("facts", Vectors([f"f{i}" for i in range(40)], vectors), "m")
        question = unit_vectors(1, seed=9)[0]
        within = [f"f{i}" for i in range(2, 40)]
        whole = store.search("facts", question, 7, within)
        sent, query = list[int](), client.query_points

        def querying(*names: str, **asked: Any) -> Any:
            sent.append(len(asked["query_filter"].must[0].has_id))
            return query(*names, **asked)

        monkeypatch.setattr(client, "query_points", querying)
        monkeypatch.setattr(qdrant_collections, "_MOST_WITHIN", 15)
        assert store.search("facts", question, 7, within) == whole
        assert sent == [15, 15, 8]

    def test_vectors_are_read_back(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a", "b"), "m")
        held = store.vectors("facts", ["b", "nowhere"])
        assert held.keys() == {"b"}
        assert held["b"] == pytest.approx(facts("b").vectors[[0]][0], abs=1e-6)

    def test_applying_ends_where_synchronising_ends_and_only_from_its_base(self, store: VectorStore) -> None:
        store.synchronise("passages", passages(a="1", b="1"), "m", commit="one")
        assert not store.apply("passages", passages(c="1"), ["a"], "m", base="other", commit="two")
        assert not store.apply("passages", passages(c="1"), ["a"], "n", base="one", commit="two")
        assert store.apply("passages", passages(c="1"), ["a"], "m", base="one", commit="two")
        assert store.fingerprints("passages").keys() == {"b", "c"}

    def test_another_model_and_dropping_make_room_for_vectors_of_another_length(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a"), "m")
        for model in "n", "n":
            store.synchronise("facts", Vectors(["a"], np.eye(7, dtype=np.float32)[:1]), model)
            assert store.count("facts") == 1
            store.drop()
            assert store.stamp("facts") is None
        assert store.count("facts") == 0

    def test_workspaces_share_a_server_and_nothing_on_it(self, store: VectorStore) -> None:
        store.synchronise("facts", facts("a"), "m")
        other = VectorStore.qdrant(uuid.uuid4().hex)
        other.synchronise("facts", facts("b"), "m")
        assert store.fingerprints("facts").keys() == {"a"}
        store.drop()
        assert other.fingerprints("facts").keys() == {"b"}

    def test_no_request_with_long_vectors_is_larger_than_a_server_takes(
        self, store: VectorStore, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent, upsert = list[int](), client.upsert

        def upserting(name: str, points: Any, **asked: Any) -> Any:
            sent.append(len(json.dumps(getattr(points, "vectors", []))))
            return upsert(name, points, **asked)

        monkeypatch.setattr(client, "upsert", upserting)
        vectors = np.random.default_rng(1).normal(size=(300, 3072)).astype(np.float32)
        store.synchronise("facts", Vectors([f"f{n}" for n in range(300)], vectors), "m")
        assert store.count("facts") == 300
        assert sum(sent) > 10_000_000
        assert max(sent) < 8_500_000

    def test_an_empty_collection_is_one(self, store: VectorStore) -> None:
        store.synchronise("facts", facts(), "m", commit="c")
        assert store.count("facts") == 0
        assert store.search("facts", unit_vectors(1)[0], 5) == []
        assert store.stamp("facts") is not None

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(held=HELD, other=HELD, where=WHERE)
    def test_it_selects_what_meets_the_conditions(
        self, store: VectorStore, held: Mapping[str, Any], other: Mapping[str, Any], where: Mapping[str, object]
    ) -> None:
        given_ones = passages_of([held, other])
        metadata = [passage_metadata(uuid.uuid4().hex, each.source, each.metadata) for each in given_ones]
        store.synchronise("passages", Vectors([each.id for each in given_ones], unit_vectors(2), metadata), "m")
        conditions = read_conditions(where)
        right = {each.id for each in given_ones if meets(conditions, each.source, each.metadata)}
        selected = store.select(to_chroma(conditions))
        assert selected.keys() == right
        assert all(selected[key] == metadata[int(key)] for key in right)


class TestWorkspace:
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Workspace:
        write(tmp_path, FIRST)
        return Workspace(tmp_path)

    def test_readers_and_writers_follow_what_it_was_published_with(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("MARA_VECTORS")
        assert layer_of(workspace).store == "qdrant"
        assert store_name(workspace, 1) == "http://qdrant.test:6333"
        assert assert_opens(workspace, FIRST) == 1
        write(workspace.root, {"c": 1}, removed=["f"])
        assert layer_of(workspace).store == "qdrant"
        assert assert_opens(workspace, {**dict.fromkeys("abdegh", 0), "c": 1}) == 2

    def test_a_reader_of_an_older_generation_keeps_its_passages(self, workspace: Workspace) -> None:
        older = open_index(workspace.root, HashEmbedder())
        write(workspace.root, {"x": 1}, removed=["f"])
        assert_answers(older, FIRST)
        older.close()
        write(workspace.root, {"y": 1})
        store = open_store(workspace, record_id(workspace), workspace.current() or 0)
        assert store.fingerprints("passages").keys() == {*"abcdeghxy"}

    def test_it_moves_to_another_store_and_back(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        for store in "mapped", "chroma", "qdrant":
            monkeypatch.setenv("MARA_VECTORS", store)
            assert_opens(workspace, FIRST)
            assert layer_of(workspace).store == store

    def test_another_model_replaces_all_vectors(self, workspace: Workspace) -> None:
        with workspace.writing(), workspace.open_record() as record:
            reembed(record, Other())
            publish(workspace, record)
        index = open_index(workspace.root, Other())
        assert_answers(index, FIRST, Other())
        index.close()

    def test_a_doctor_finds_what_is_missing_and_puts_it_back(self, workspace: Workspace) -> None:
        assert examine_workspace(workspace.root).ok
        store = VectorStore.qdrant(f"{record_id(workspace)}-")
        store._collections.open("facts").delete(ids=list(store.fingerprints("facts"))[:2])
        found = examine_workspace(workspace.root)
        assert any("2 are missing" in finding.message for finding in found.findings)
        _, done, after = repair_workspace(workspace.root)
        assert done
        assert after.ok
        assert_opens(workspace, FIRST)

    def test_folders_with_one_record_in_postgres_leave_each_others_vectors(
        self, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_RECORD_URL", postgres_url)
        one, other = Workspace(tmp_path / "one"), Workspace(tmp_path / "other")
        write(one.root, FIRST)
        other.root.mkdir()
        name_record(other.root, place_name(one.root), joins=True)
        assert publish_committed(other) == 1
        reader = open_index(one.root, HashEmbedder())
        write(other.root, {"x": 1}, removed=["f"])
        write(other.root, {"y": 1}, removed=["g"])
        assert_answers(reader, FIRST)
        reader.close()
        left = {**dict.fromkeys("abcdeh", 0), "x": 1, "y": 1}
        assert [assert_opens(each, left) for each in (one, other)] == [3, 3]
        assert examine_workspace(one.root).ok
        assert examine_workspace(other.root).ok

    def test_without_an_address_it_says_what_to_set(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("MARA_QDRANT_URL")
        with pytest.raises(BadInput, match="MARA_QDRANT_URL is not set"):
            open_index(workspace.root, HashEmbedder())


class TestReaching:
    def test_a_server_that_does_not_answer_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setenv("MARA_QDRANT_URL", "http://name:secret@127.0.0.1:9")
        monkeypatch.setenv("MARA_QDRANT_KEY", "confidential")
        with pytest.warns(UserWarning, match="insecure"):
            store = VectorStore.qdrant("w")
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:9 .*MARA_QDRANT_URL") as caught:
            store.count("facts")
        assert "secret" not in str(caught.value)
        assert "confidential" not in str(caught.value)

    def test_a_package_that_is_missing_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setenv("MARA_QDRANT_URL", "http://127.0.0.1:10")
        monkeypatch.setitem(__import__("sys").modules, "qdrant_client", None)
        with pytest.raises(DependencyMissing, match=r"mara-rag\[qdrant\]"):
            VectorStore.qdrant("w")


def record_id(workspace: Workspace) -> str:
    with workspace.open_record() as record:
        return record.workspace_id
