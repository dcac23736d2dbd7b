"""A workspace whose search index is a server: the same answers, shared by processes, generations and workspaces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest

from graph.errors import MaraError, StoreUnavailable, WorkspaceLocked
from graph.publish.chroma_store import connect, server_address
from graph.retrieve.open_index import Index, open_index
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed
from tests.builders import (
    DIMENSION,
    HOLD_LOCK,
    Child,
    HashEmbedder,
    Silent,
    chroma_of,
    drop_vectors,
    passage_of,
    publish_workspace,
)
from tests.fleet import BUILT, CARS, NEWER, SHIPS, opened, seen, whole
from tests.qdrant import use_local_qdrant

# What a reader holds, in full: the ids of its passages and the subjects and yards of its facts.
READER = """
import json, sys
from pathlib import Path
from graph.errors import MaraError
from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder
root, pool = Path(sys.argv[1]), IndexPool()

def seen(index):
    graph = index.graph
    passages = sorted(graph.passages[row].id for row, _ in index.search_passages("car", len(graph.passages)))
    facts = sorted(fact.fact.object for fact, _ in index.search_facts("car", len(graph.facts)))
    return [graph.generation, passages, facts]

index = pool.get(root, HashEmbedder())
print("ready")
for line in sys.stdin:
    try:
        if line.strip() == "open":
            other = open_index(root, HashEmbedder())
            print(json.dumps(seen(other)))
            other.close()
        else:
            index = pool.get(root, HashEmbedder()) if line.strip() == "next" else index
            print(json.dumps(seen(index)))
    except MaraError as error:
        print(json.dumps([error.kind, str(error)]))
"""


@pytest.fixture
def served(chroma_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MARA_VECTORS", f"chroma+{chroma_url}")
    return chroma_url


@pytest.fixture(
    scope="module",
    params=["embedded", "server", "mapped", "layered", pytest.param("qdrant", marks=pytest.mark.slow)],
)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, chroma_url: str) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("either")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARA_VECTORS", f"chroma+{chroma_url}" if request.param == "server" else "")
        if request.param == "qdrant":
            use_local_qdrant(patch)
        elif request.param in ("mapped", "layered"):
            patch.setenv("MARA_VECTORS", "mapped")
            patch.setattr("graph.publish.generation_vectors._LARGE", 1 if request.param == "layered" else 5_000)
        publish_workspace(root, [*CARS, *SHIPS], BUILT)
        publish_workspace(root, NEWER[:5], BUILT, removed=["car-0", "ship-3"])
        index = open_index(root, HashEmbedder())
    yield index
    index.close()


class TestAnyStore:
    """An index answers the same whatever holds its vectors."""

    def test_it_holds_what_was_written_and_nothing_else(self, index: Index) -> None:
        assert seen(index) == whole([*CARS[1:], *SHIPS[:3], *SHIPS[4:], *NEWER[:5]])

    def test_the_nearest_come_first_with_exact_cosines(self, index: Index) -> None:
        for question in ("car 7 was built", "ship", "Car 4 was mended by yard new-4"):
            exact = index.score_passages(question)
            hits = index.search_passages(question, 9)
            assert [cosine for _, cosine in hits] == pytest.approx(np.sort(exact)[::-1][:9], abs=1e-5)
            assert [exact[row] for row, _ in hits] == pytest.approx([cosine for _, cosine in hits], abs=1e-5)
        (((fact, score)),) = index.search_facts("car 4 was mended by yard new-4", 1)
        assert (fact.fact.object, round(score, 5)) == ("yard new-4", 1.0)

    def test_a_filter_selects_and_is_searched_within(self, index: Index) -> None:
        filters: list[tuple[Mapping[str, Any], str]] = [
            ({"maker": "a"}, "car-10 car-2 car-4 car-6 car-8"),
            ({"year": {"$gte": 1940}}, "car-10 car-11"),
            ({"year": {"$lt": 1934}, "maker": "b"}, "car-1 car-3"),
            ({"source": {"$in": ["ship-3.txt", "ship-4.txt", "new-4.txt"]}}, "new-4 ship-4"),
            ({"maker": {"$ne": "a"}, "year": {"$gt": 0}}, "car-1 car-11 car-3 car-5 car-7 car-9"),
            ({"maker": "c"}, ""),
        ]
        for conditions, selected in filters:
            selection = index.select(conditions)
            assert selection is not None
            assert [index.graph.passages[row].id for row in selection.rows] == selected.split()
            yards = [fact.fact.object for fact, _ in index.search_facts("ship", 99, selection)]
            assert sorted(yards) == [f"yard {key}" for key in selected.split()]


def test_an_index_says_where_it_is_served_and_is_mended(where: str, tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path, CARS, BUILT)
    index = open_index(tmp_path, HashEmbedder())
    assert index.store_name == where
    assert (workspace.index_folder(1) / "chroma").exists() == (where == "embedded")
    drop_vectors(index)
    index.close()
    assert opened(tmp_path) == whole(CARS)
    assert workspace.current() == 2


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


class TestMoving:
    @pytest.mark.slow
    def test_one_moves_to_the_server_and_back(
        self, tmp_path: Path, chroma_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_workspace(tmp_path, CARS, BUILT)
        for url, where in (("", "embedded"), (chroma_url, chroma_url), ("", "embedded")):
            monkeypatch.setenv("MARA_VECTORS", f"chroma+{url}")
            index = open_index(tmp_path, Silent())
            assert index.store_name == where
            assert seen(index) == whole(CARS)
            index.close()

    def test_what_the_server_missed_is_sent(self, tmp_path: Path, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
        publish_workspace(tmp_path, CARS, BUILT)
        with monkeypatch.context() as embedded:
            embedded.delenv("MARA_VECTORS")
            publish_workspace(tmp_path, [*SHIPS[:1], passage_of("car-1", "Car 1", "other")], BUILT, removed=["car-0"])
        index = open_index(tmp_path, Silent())
        assert seen(index) == whole([*CARS[1:], SHIPS[0]])
        ((row, cosine),) = index.search_passages("Car 1\nother", 1)
        assert (index.graph.passages[row].id, round(cosine, 5)) == ("car-1", 1.0)
        index.close()


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

    @pytest.fixture
    def asked_at_every_write(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
        """Takes what is to be done before each request that writes to Chroma or deletes from it, in small pages."""
        monkeypatch.setattr("graph.publish.chroma_store._PAGE", 10)

        def before_each(ask: Callable[[], None]) -> None:
            for name in ("upsert", "delete"):
                original = getattr(chromadb.Collection, name)

                def watched(self: chromadb.Collection, *, original: Any = original, **content: Any) -> Any:
                    ask()
                    return original(self, **content)

                monkeypatch.setattr(chromadb.Collection, name, watched)

        return before_each

    @pytest.mark.slow
    def test_one_opened_before_and_one_opened_while_this_process_writes(
        self, tmp_path: Path, served: str, asked_at_every_write: Callable[[Callable[[], None]], None]
    ) -> None:
        publish_workspace(tmp_path, CARS, BUILT)
        answers: list[Any] = []
        with Child(READER, tmp_path) as reader:

            def ask(command: str = "") -> Any:
                reader.tell(command)
                return json.loads(reader.hear())

            def ask_both() -> None:
                answers.extend([ask(), ask("open")])

            assert reader.hear() == "ready"
            asked_at_every_write(ask_both)
            publish_workspace(tmp_path, NEWER, BUILT, removed=[car.id for car in CARS[:9]])
            assert len(answers) >= 16
            assert [answer for answer in answers if answer != [1, *whole(CARS)]] == []
            assert ask() == [1, *whole(CARS)]
            newest = [2, *whole([*CARS[9:], *NEWER])]
            assert [ask("next"), ask("open")] == [newest] * 2

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
        for question in (SHIPS[5].content, "Car 5", "ship"):
            passages = [reader.graph.passages[row].id for row, _ in reader.search_passages(question, 5)]
            assert len(passages) == 5
            assert set(passages) <= {car.id for car in CARS}
        reader.close()
        current = open_index(tmp_path, HashEmbedder())
        ((row, _),) = current.search_passages(SHIPS[5].content, 1)
        assert current.graph.passages[row] == SHIPS[5]
        assert chroma_of(current).count("facts") == len(current.graph.facts)
        current.close()

    def test_a_filter_shows_a_reader_its_own_generation_alone(self, tmp_path: Path, served: str) -> None:
        """The newer generation adds a passage of the same owner, and gives car-1 to it."""
        for key, owner in (("car-0", "ann"), ("car-1", "bob"), ("car-2", "ann")):
            publish_workspace(tmp_path, [passage_of(key, key, f"{key} was built", owner=owner)], BUILT)
        reader = open_index(tmp_path, HashEmbedder())
        changed = [passage_of(key, key, f"{key} was built", owner="ann") for key in ("car-1", "car-3")]
        publish_workspace(tmp_path, changed, BUILT, removed=["car-2"])
        current = open_index(tmp_path, HashEmbedder())
        for index, found in ((reader, ["car-0", "car-2"]), (current, ["car-0", "car-1", "car-3"])):
            selection = index.select({"owner": "ann"})
            assert selection is not None
            assert [index.graph.passages[row].id for row in selection.rows] == found
            facts = index.search_facts("car-1 was built", 9, selection)
            assert {fact.fact.id for fact, _ in facts} == selection.facts.keys()
            index.close()


class TestWhileAWriterIsAtWork:
    @pytest.mark.slow
    def test_a_snapshot_of_another_model_does_not_answer(self, tmp_path: Path) -> None:
        """As while `mara doctor --reembed` derives what it has committed."""
        workspace = publish_workspace(tmp_path, CARS, BUILT)
        other = HashEmbedder("other")
        with workspace.open_record() as record:
            reembed(record, other)
        with Child(HOLD_LOCK, tmp_path) as writer:
            assert writer.hear() == "locked"
            with pytest.raises(WorkspaceLocked):
                open_index(tmp_path, other)
        index = open_index(tmp_path, other)
        assert index.graph.embedding_model == "other"
        index.close()
