"""What Chroma leaves in the files of a set that was written."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest

from graph.errors import StoreUnavailable, WorkspaceDamaged
from graph.publish import chroma_store
from graph.publish.chroma_store import ChromaStore, connect, drop_queue, server_address
from graph.publish.vector_store import Place, Vectors
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder, chroma_of, publish_workspace
from tests.chroma_server import ChromaServer, Gate, free_port
from tests.fleet import BUILT, CARS, NEWER, opened, seen, whole
from tests.graph.publish.test_vector_store import DIMENSION, unit_vectors, vectors_of

FACTS, PASSAGES = 2_500, 20


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a set that was written in several pages."""
    monkeypatch.setattr(chroma_store, "_PAGE", 700)
    place = Place(tmp_path, "chroma", "0a")
    parts = {"facts": vectors_of(unit_vectors(FACTS)), "passages": vectors_of(unit_vectors(PASSAGES))}
    ChromaStore().write(place, parts)
    return place.files


def told(files: Path, query: str) -> int:
    with closing(sqlite3.connect(files / "chroma.sqlite3")) as database:
        ((number,),) = database.execute(query)
        return int(number)


def test_all_records_of_a_large_collection_are_in_its_index_and_no_vector_of_them_in_the_queue(files: Path) -> None:
    taken = {
        chroma_store._HNSW_HEADER.unpack(header.read_bytes()[: chroma_store._HNSW_HEADER.size])[3]
        for header in files.glob("*/header.bin")
    }
    assert FACTS in taken
    assert told(files, "SELECT count(*) FROM embeddings") == FACTS + PASSAGES
    assert told(files, f"SELECT count(*) FROM embeddings_queue WHERE length(vector) = {4 * DIMENSION}") <= PASSAGES + 1


def test_the_database_keeps_no_room_that_it_does_not_use(files: Path) -> None:
    assert told(files, "PRAGMA freelist_count") == 0


def test_a_database_that_cannot_be_read_is_told_of(files: Path) -> None:
    (files / "chroma.sqlite3").write_bytes(b"no database" * 1_000)
    with pytest.raises(WorkspaceDamaged):
        drop_queue(files)


PLACE = Place(Path("nowhere"), "chroma", "0a", "w-")
BASIC = ("Authorization", "Basic bWU6c2VjcmV0L3ZhdWx0")
"""Of the name "me" and the password "secret/vault"."""


class TestFaults:
    def test_one_that_is_down_is_named_with_the_variable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        publish_workspace(tmp_path, CARS[:1], BUILT)
        url = f"http://127.0.0.1:{free_port()}"
        with monkeypatch.context() as down:
            down.setenv("MARA_VECTORS", f"chroma+{url}")
            with pytest.raises(StoreUnavailable, match=rf"{url} .*chroma run.*MARA_VECTORS") as caught:
                open_index(tmp_path, HashEmbedder())
            assert caught.value.exit_code == 3
            with pytest.raises(StoreUnavailable):
                publish_workspace(tmp_path, CARS[1:2], BUILT)
        assert opened(tmp_path) == whole(CARS[:2])

    @pytest.mark.slow
    def test_one_that_is_killed_in_the_middle_of_everything(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is rebuilt or called damaged while it is down; once it is back, the write is made good."""
        with ChromaServer(tmp_path / "server") as server:
            monkeypatch.setenv("MARA_VECTORS", f"chroma+{server.url}")
            workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
            index = open_index(workspace.root, HashEmbedder())
            with monkeypatch.context() as patch:
                patch.setattr("graph.publish.chroma_store._PAGE", 5)
                upsert, calls = chromadb.Collection.upsert, iter(range(99))

                def killing(self: chromadb.Collection, **content: Any) -> None:
                    if next(calls) == 2:
                        server.kill()
                    upsert(self, **content)

                patch.setattr(chromadb.Collection, "upsert", killing)
                with pytest.raises(StoreUnavailable, match="MARA_VECTORS"):
                    publish_workspace(workspace.root, NEWER, BUILT, removed=["car-0"])
            for use in (
                lambda: index.search_facts("car", 3),
                lambda: chroma_of(index).vectors("facts", [0]),
                lambda: ChromaStore().write(PLACE, {"facts": Vectors(0, 4, lambda: iter(()))}),
                lambda: ChromaStore().forget("w-", set()),
                lambda: open_index(workspace.root, HashEmbedder()),
            ):
                with pytest.raises(StoreUnavailable, match=r"does not answer.*chroma run"):
                    use()
            assert workspace.current() == 1
            with server.again():
                assert seen(index) == whole(CARS)
                assert opened(workspace.root) == whole([*CARS[1:], *NEWER])
                assert seen(index) == whole(CARS)
                index.close()

    def test_one_that_says_nothing_is_waited_for_no_longer_than_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_TIMEOUT_S", "0.1")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            monkeypatch.setenv("MARA_VECTORS", f"chroma+http://127.0.0.1:{silent.getsockname()[1]}")
            with pytest.raises(StoreUnavailable, match=r"does not answer.*imeout"):
                ChromaStore().open(PLACE)


class TestAddresses:
    def test_under_a_path_with_name_and_password_that_are_never_shown(
        self, tmp_path: Path, chroma_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Gate(chroma_url, "/vectors/chroma", BASIC) as gate:
            address = gate.url.replace("http://", "http://me:secret%2Fvault@")
            monkeypatch.setenv("MARA_VECTORS", f"chroma+{address}/")
            publish_workspace(tmp_path, CARS, BUILT)
            index = open_index(tmp_path, HashEmbedder())
            assert seen(index) == whole(CARS)
            assert index.store_name == gate.url
            for status in (401, 403, 500, 502):
                gate.failing = status
                with pytest.raises(StoreUnavailable) as caught:
                    index.search_facts("car", 1)
                assert gate.url in str(caught.value)
                assert ("refuses the credentials" in str(caught.value)) == (status < 500)
                assert "secret" not in str(caught.value)
            index.close()

    def test_without_the_credentials_it_says_what_is_missing(self, chroma_url: str) -> None:
        with (
            Gate(chroma_url, "", BASIC) as gate,
            pytest.raises(StoreUnavailable, match=r"refuses the credentials.*MARA_VECTORS.*CHROMA_CLIENT_AUTH"),
        ):
            connect(server_address(gate.url))
        with pytest.raises(StoreUnavailable, match=r"/nowhere does not answer as it should"):
            connect(server_address(f"{chroma_url}/nowhere"))
        assert connect(server_address(chroma_url)) is connect(server_address(chroma_url)), "one client for all sets"
