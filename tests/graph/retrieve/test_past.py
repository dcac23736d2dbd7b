"""The index of what stood at a date: derived once for all dates between two changes, and safe whoever else is there."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph.errors import BadInput, EmbeddingMismatch
from graph.publish.derive import publish
from graph.retrieve import past
from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import Index
from graph.retrieve.past import PastIndexes
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed
from tests.builders import HashEmbedder, Silent, passage_of, publish_workspace, write_dated
from tests.killing import KILLED, Step, kill_at

LAMPS = [passage_of("lamp", "Lamp", f"The lamp costs {price} euros.") for price in (40, 45, 50)]
COSTS = [{"lamp": [("lamp", "costs", f"{price} euros")]} for price in (40, 45, 50)]
DESK = passage_of("desk", "Desk", "The desk costs 210 euros.")


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    """A lamp that was dearer every year, and a desk that came with the second."""
    write_dated(tmp_path / "shop", "2023", [LAMPS[0]], COSTS[0])
    write_dated(tmp_path / "shop", "2024", [LAMPS[1], DESK], COSTS[1])
    return write_dated(tmp_path / "shop", "2025", [LAMPS[2]], COSTS[2], removed=["desk"])


@pytest.fixture
def pool() -> Iterator[IndexPool]:
    pool = IndexPool()
    yield pool
    pool.close()


@pytest.fixture
def indexes(pool: IndexPool) -> Iterator[PastIndexes]:
    made = PastIndexes(pool)
    yield made
    made.close()


def texts(index: Index) -> set[str]:
    return {passage.text for passage in index.graph.passages}


def folders(workspace: Workspace) -> set[str]:
    return {path.name for path in workspace.past.iterdir() if path.is_dir()} if workspace.past.exists() else set()


def the_lamp_of(year: int) -> set[str]:
    return {LAMPS[year - 2023].text, *([DESK.text] if year == 2024 else [])}


class TestWhatItHolds:
    def test_is_what_stood_then_without_embedding_passages_again(self, shop: Workspace, indexes: PastIndexes) -> None:
        for year, price in {2023: 40, 2024: 45, 2025: 50}.items():
            embedder = HashEmbedder()
            index = indexes.get(shop.root, embedder, str(year))
            assert texts(index) == the_lamp_of(year)
            assert {fact.fact.object for fact in index.graph.facts.values()} == {f"{price} euros"}
            if year == 2023:
                assert set(embedder.asked) == {"40 euros", "lamp costs 40 euros"}

    def test_what_another_model_embedded_is(self, shop: Workspace, indexes: PastIndexes) -> None:
        other = HashEmbedder("other")
        with shop.writing(), shop.open_record() as record:
            reembed(record, other)
            publish(shop, record)
        index = indexes.get(shop.root, other, "2023")
        assert index.search_passages(LAMPS[0].content, 1)[0][1] == pytest.approx(1)
        with pytest.raises(EmbeddingMismatch):
            indexes.get(shop.root, HashEmbedder(), "2023")

    def test_it_lies_beside_the_workspace_also_where_a_server_holds_the_vectors(
        self, shop: Workspace, indexes: PastIndexes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_VECTORS", "chroma+http://127.0.0.1:9")
        index = indexes.get(shop.root, HashEmbedder(), "2023")
        assert index.store_name == "embedded"
        assert index.search_facts("lamp", 1)[0][0].fact.object == "40 euros"


class TestNames:
    def test_dates_between_two_changes_share_one(self, shop: Workspace, indexes: PastIndexes) -> None:
        first = indexes.get(shop.root, HashEmbedder(), "2024-01-01")
        assert indexes.get(shop.root, Silent(), "2024-12-31T23:00Z") is first
        assert len(folders(shop)) == 1

    def test_a_commit_that_changes_nothing_leaves_it(
        self, shop: Workspace, indexes: PastIndexes, pool: IndexPool
    ) -> None:
        before = indexes.get(shop.root, HashEmbedder(), "2024")
        write_dated(shop.root, "2026", [DESK])
        assert PastIndexes(pool).get(shop.root, Silent(), "2024") is before

    def test_a_change_of_then_makes_another_and_runs_keep_theirs(self, shop: Workspace, indexes: PastIndexes) -> None:
        (shop.past / "new-of-a-killed-process").mkdir(parents=True)
        begun = indexes.get(shop.root, HashEmbedder(), "2024")
        assert len(folders(shop)) == 1, "what was left unfinished goes"
        write_dated(shop.root, "2023-06", [passage_of("stool", "Stool", "The stool costs 35 euros.")])
        assert indexes.get(shop.root, Silent(), "2024", begun.graph.generation) is begun
        index = indexes.get(shop.root, HashEmbedder(), "2024")
        assert texts(index) == the_lamp_of(2024) | {"The stool costs 35 euros."}

    def test_what_was_erased_is_in_none(self, shop: Workspace, indexes: PastIndexes) -> None:
        indexes.get(shop.root, HashEmbedder(), "2024")
        with shop.writing(), shop.open_record() as record, record.transaction():
            record.versions.erase(record.versions.spans(["desk"]))
        assert texts(indexes.get(shop.root, HashEmbedder(), "2024")) == {LAMPS[1].text}


def test_a_date_of_which_no_version_is_kept_is_refused(shop: Workspace, indexes: PastIndexes, tmp_path: Path) -> None:
    plain = publish_workspace(tmp_path / "plain", [DESK]).root
    with pytest.raises(BadInput, match="Nothing stood on 2022"):
        indexes.get(shop.root, HashEmbedder(), "2022")
    with pytest.raises(BadInput, match="this workspace keeps no versions"):
        indexes.get(plain, HashEmbedder(), "2024")
    write_dated(plain, "2024", LAMPS[:1])
    with pytest.raises(BadInput, match="versions are kept from 2024-01-01 on"):
        indexes.get(plain, HashEmbedder(), "2023")
    assert texts(indexes.get(plain, HashEmbedder(), "2024")) == {DESK.text, LAMPS[0].text}


class TestHousekeeping:
    @pytest.fixture
    def years(self, tmp_path: Path) -> Workspace:
        """A lamp that has another text each year."""
        for year in range(2001, 2006):
            write_dated(tmp_path / "years", str(year), [passage_of("lamp", "Lamp", f"The lamp of {year}.")])
        return Workspace(tmp_path / "years")

    def test_those_that_were_asked_last_and_one_that_is_read_stay(
        self, years: Workspace, indexes: PastIndexes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(past, "_KEPT", 2)
        monkeypatch.setattr(past, "_KEPT_OPEN", 1)
        other = PastIndexes(IndexPool())
        read = other.get(years.root, HashEmbedder(), "2001")
        for year in range(2002, 2006):
            assert texts(indexes.get(years.root, HashEmbedder(), str(year))) == {f"The lamp of {year}."}
        assert len(folders(years)) == past._KEPT + 1
        assert read.search_passages("The lamp of 2001.", 1)
        read.close()
        assert texts(indexes.get(years.root, HashEmbedder(), "2002")) == {"The lamp of 2002."}
        assert len(folders(years)) == past._KEPT

    def test_one_that_is_damaged_is_derived_again(self, shop: Workspace, pool: IndexPool) -> None:
        PastIndexes(pool).get(shop.root, HashEmbedder(), "2023")
        pool.close()
        (name,) = folders(shop)
        (shop.past / name / "record.sqlite").write_bytes(b"no record" * 1_000)
        (shop.past / name / "record.sqlite-wal").unlink(missing_ok=True)
        assert texts(PastIndexes(pool).get(shop.root, HashEmbedder(), "2023")) == the_lamp_of(2023)

    def test_threads_that_ask_at_once_get_the_same(self, shop: Workspace, indexes: PastIndexes) -> None:
        together = threading.Barrier(8)

        def ask(year: int) -> Index:
            together.wait()
            return indexes.get(shop.root, HashEmbedder(), str(year))

        years = [2023, 2024] * 4
        with ThreadPoolExecutor(8) as threads:
            answers = [*threads.map(ask, years)]
        assert [texts(index) for index in answers] == [the_lamp_of(year) for year in years]
        assert len({id(index) for index in answers}) == len(folders(shop)) == 2


def test_in_a_workspace_that_may_not_be_written_it_is_read_or_derived_elsewhere(
    shop: Workspace, indexes: PastIndexes, pool: IndexPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes.get(shop.root, HashEmbedder(), "2023")
    pool.close()
    may, before = os.access, folders(shop)

    def refused(place: Path, mode: int) -> bool:
        return may(place, mode) and not (mode & os.W_OK and Path(place).is_relative_to(shop.root))

    monkeypatch.setattr(os, "access", refused)
    assert texts(PastIndexes(pool).get(shop.root, Silent(), "2023")) == the_lamp_of(2023)
    assert texts(indexes.get(shop.root, HashEmbedder(), "2024")) == the_lamp_of(2024)
    assert folders(shop) == before


STEPS = (
    Step("graph/retrieve/past.py", "_take_vectors"),
    Step("graph/storage/record.py", "copy_to"),
    Step("graph/publish/derive.py", "publish"),
    Step("graph/storage/workspace.py", "publish"),
    Step("graph/storage/workspace.py", "write_atomically", 2),
    Step("graph/retrieve/past.py", "_prune"),
)


def derive(root: Path, at: Step | None = None) -> None:
    if at is not None:
        kill_at(at)
    pool = IndexPool()
    index = PastIndexes(pool).get(root, HashEmbedder(), "2023")
    right = [passage.text for passage in index.graph.passages] == [LAMPS[0].text]
    pool.close()
    os._exit(0 if right else 1)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.function)
def test_a_process_that_is_killed_leaves_the_next_one_a_whole_index(shop: Workspace, step: Step) -> None:
    spawned = multiprocessing.get_context("spawn")
    before = shop.record_path.read_bytes()
    killed = spawned.Process(target=derive, args=(shop.root, step))
    killed.start()
    killed.join()
    assert killed.exitcode == KILLED, "the step is never reached"
    again = spawned.Process(target=derive, args=(shop.root,))
    again.start()
    again.join()
    assert again.exitcode == 0
    assert [path.name for path in shop.past.iterdir() if path.name.startswith("new-")] == []
    assert shop.record_path.read_bytes() == before


@pytest.mark.slow
def test_processes_that_ask_at_once_all_get_it(shop: Workspace) -> None:
    spawned = multiprocessing.get_context("spawn")
    processes = [spawned.Process(target=derive, args=(shop.root,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len([path for path in shop.past.iterdir() if path.is_dir()]) == 1
