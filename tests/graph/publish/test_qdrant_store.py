"""The search index on a Qdrant server: here in Qdrant's local mode, which compares all vectors."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph.checks.doctor import examine_workspace
from graph.errors import BadInput, StoreUnavailable
from graph.publish import qdrant_store
from graph.publish.derive import publish_committed
from graph.publish.qdrant_store import QdrantStore
from graph.publish.vector_store import COLLECTIONS, Place
from graph.retrieve.open_index import open_index
from graph.storage.place import name_record, place_name
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder
from tests.graph.publish.test_vector_store import unit_vectors, vectors_of
from tests.layered import assert_answers, assert_opens, write
from tests.qdrant import use_local_qdrant

pytestmark = pytest.mark.slow

FIRST = dict.fromkeys("abcdefgh", 0)
PLACE = Place(Path("nowhere"), "qdrant", "0a", "w-")


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    return use_local_qdrant(monkeypatch)


class TestRequests:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Place(tmp_path, "qdrant", "0a", f"{uuid.uuid4().hex}-")

    def test_a_search_within_more_than_a_request_takes_is_several(
        self, place: Place, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vectors = unit_vectors(40)
        QdrantStore().write(place, {name: vectors_of(vectors) for name in COLLECTIONS})
        opened = QdrantStore().open(place)
        question, within = unit_vectors(1, seed=9)[0], np.arange(2, 40)
        whole = opened.search("facts", question, 7, within)
        sent, query = list[int](), client.query_points

        def querying(*names: str, **asked: Any) -> Any:
            sent.append(len(asked["query_filter"].must[0].has_id))
            return query(*names, **asked)

        monkeypatch.setattr(client, "query_points", querying)
        monkeypatch.setattr(qdrant_store, "_MOST_WITHIN", 15)
        assert opened.search("facts", question, 7, within) == whole
        assert sent == [15, 15, 8]

    def test_no_request_with_long_vectors_is_larger_than_a_server_takes(
        self, place: Place, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent, upsert = list[int](), client.upsert

        def upserting(name: str, points: Any, **asked: Any) -> Any:
            sent.append(len(json.dumps(getattr(points, "vectors", []))))
            return upsert(name, points, **asked)

        monkeypatch.setattr(client, "upsert", upserting)
        vectors = np.random.default_rng(1).normal(size=(300, 3072)).astype(np.float32)
        QdrantStore().write(place, {name: vectors_of(vectors) for name in COLLECTIONS})
        assert QdrantStore().open(place).count("facts") == 300
        assert sum(sent) > 20_000_000
        assert max(sent) < 8_500_000


class TestWorkspace:
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Workspace:
        write(tmp_path, FIRST)
        return Workspace(tmp_path)

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
        monkeypatch.delenv("MARA_VECTORS")
        with pytest.raises(BadInput, match="MARA_VECTORS does not name it"):
            open_index(workspace.root, HashEmbedder())


class TestReaching:
    def test_a_server_that_does_not_answer_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setenv("MARA_VECTORS", "qdrant+http://name:secret@127.0.0.1:9")
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:9 .*MARA_VECTORS") as caught:
            QdrantStore().open(PLACE)
        assert "secret" not in str(caught.value)

    def test_what_stands_alone_before_the_host_is_the_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setenv("MARA_VECTORS", "qdrant+http://confidential@127.0.0.1:9")
        with (
            pytest.warns(UserWarning, match="insecure"),
            pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:9") as caught,
        ):
            QdrantStore().open(PLACE)
        assert "confidential" not in str(caught.value)
