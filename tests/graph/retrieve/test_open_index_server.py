"""A workspace whose search index is a server: the same answers, shared by processes, generations and workspaces."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import chromadb
import numpy as np
import pytest

from graph.errors import MaraError, StoreUnavailable
from graph.publish.chroma_store import connect, server_address
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Workspace
from tests.builders import DIMENSION, HashEmbedder, chroma_of, drop_vectors, passage_of, publish_workspace
from tests.fleet import BUILT, CARS, SHIPS, opened, seen, whole


@pytest.fixture
def served(chroma_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MARA_VECTORS", f"chroma+{chroma_url}")
    return chroma_url


def test_a_workspace_that_may_not_be_written_opens_while_another_process_writes_the_server(
    tmp_path: Path, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_workspace(tmp_path, CARS, BUILT)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Workspace, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            publish_workspace(tmp_path, SHIPS[:1], BUILT)
    monkeypatch.setattr(os, "access", lambda place, mode: not (mode & os.W_OK and Path(place).is_relative_to(tmp_path)))
    assert opened(tmp_path) == whole(CARS)


class TestTwoWorkspaces:
    def test_they_do_not_see_each_other_and_dropping_one_leaves_the_other(self, tmp_path: Path, served: str) -> None:
        for name, corpus in (("cars", CARS), ("ships", SHIPS)):
            publish_workspace(tmp_path / name, corpus, BUILT)
        publish_workspace(tmp_path / "ships", [], {}, removed=["ship-0"])
        cars, ships = (open_index(tmp_path / name, HashEmbedder()) for name in ("cars", "ships"))
        assert seen(cars) == whole(CARS)
        assert seen(ships) == whole(SHIPS[1:])
        selection = cars.select({"source": {"$in": ["ship-1.txt", "car-1.txt"]}})
        assert selection is not None
        assert [cars.graph.passages[row].id for row in selection.rows] == ["car-1"]
        drop_vectors(ships)
        assert seen(cars) == whole(CARS)
        with pytest.raises(StoreUnavailable, match=r"no longer holds.*mara doctor --repair"):
            ships.search_passages("ship", 3)
        assert opened(tmp_path / "ships") == whole(SHIPS[1:])
        cars.close()
        ships.close()


class TestStaleCollections:
    """Opening notices what the server lacks or has too much; it is written again from the record, once."""

    def test_it_is_brought_up_to_date(self, tmp_path: Path, served: str) -> None:
        publish_workspace(tmp_path, CARS, BUILT)
        more = np.eye(1, DIMENSION, dtype=np.float32)
        changes: list[Callable[[chromadb.Collection], object]] = [
            lambda facts: facts.delete(ids=["0"]),
            lambda facts: facts.add(ids=["99"], embeddings=more),
        ]
        for generation, change in enumerate(changes, start=2):
            index = open_index(tmp_path, HashEmbedder())
            change(chroma_of(index)._open("facts")[0])
            index.close()
            for _ in range(2):
                assert opened(tmp_path) == whole(CARS)
            assert Workspace(tmp_path).current() == generation

    def test_a_killed_writer_leaves_nothing(self, tmp_path: Path, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
        workspace = publish_workspace(tmp_path, CARS, BUILT)
        with monkeypatch.context() as killed:
            killed.setattr(chromadb.Collection, "upsert", lambda self, **content: 1 / 0)
            with pytest.raises(MaraError):
                publish_workspace(tmp_path, SHIPS, BUILT)
        assert opened(tmp_path) == whole([*CARS, *SHIPS])
        with workspace.open_record() as record:
            prefix = record.workspace_id
        names = [each.name for each in connect(server_address(served)).list_collections()]
        assert len([name for name in names if name.startswith(prefix)]) == 2


class TestReadersInOtherProcesses:
    """Readers keep their generation, whole, at every moment of a write; the next one is there when it is published."""

    def test_each_reads_the_set_of_its_own_generation(self, tmp_path: Path, served: str) -> None:
        publish_workspace(tmp_path, CARS, BUILT)
        reader = open_index(tmp_path, HashEmbedder())
        changed = passage_of("car-1", "Car 1", "ship")
        publish_workspace(tmp_path, [*SHIPS, changed], BUILT, removed=[car.id for car in CARS[2:9]])
        publish_workspace(tmp_path, [passage_of("x", "X", "x")], {}, removed=[CARS[9].id])
        assert seen(reader) == whole(CARS)
        assert chroma_of(reader).count("facts") == len(reader.graph.facts)
        exact = reader.score_passages("car 1 was built")
        for row, cosine in reader.search_passages("car 1 was built", 12):
            assert cosine == pytest.approx(exact[row]), "a changed passage keeps its old one"
        reader.close()
        current = open_index(tmp_path, HashEmbedder())
        ((row, _),) = current.search_passages(SHIPS[5].content, 1)
        assert current.graph.passages[row] == SHIPS[5]
        assert chroma_of(current).count("facts") == len(current.graph.facts)
        current.close()
