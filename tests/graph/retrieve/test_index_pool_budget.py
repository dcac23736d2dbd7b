"""Many workspaces in one process: which stay open within a budget, and what closing gives back."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from graph.publish.vector_store import OpenCost
from graph.retrieve.index_pool import IndexPool, parts_of
from graph.retrieve.open_index import Index
from graph.storage.lock import GenerationHold
from tests.builders import HashEmbedder, passage_of, publish_workspace

PASSAGES = [
    passage_of("nissan", "Nissan", "Nissan was founded in 1933."),
    passage_of("sund", "Lake Sund", "Lake Sund lies in Ostra."),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "workspace", PASSAGES).root


@pytest.fixture
def tenants(template: Path, tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(template, tmp_path / name)) for name in "abcd"]


def cost_of(template: Path) -> OpenCost:
    return sum(parts_of(template / "index" / "1").values(), OpenCost())


@pytest.fixture
def pool(template: Path) -> Iterator[IndexPool]:
    """A pool with room for two workspaces and a half."""
    one = cost_of(template)
    pool = IndexPool(OpenCost(2.5 * one.bytes, 1_000, 1_000))
    yield pool
    pool.close()


def open_among(workspaces: list[Path]) -> str:
    """Return the names of those workspaces that are open in this process."""
    return "".join(root.name for root in workspaces if GenerationHold.is_held(root / "index" / "1"))


@contextmanager
def run(pool: IndexPool, *roots: Path) -> Iterator[list[Index]]:
    """Use the indexes of some workspaces within the block, as a run does."""
    used = []
    for root in roots:
        used.append(pool.get(root, HashEmbedder()))
        pool.begin_use(used[-1])
    try:
        yield used
    finally:
        for index in used:
            pool.end_use(index)
        used.clear()


def ask(pool: IndexPool, root: Path) -> list[str]:
    index = pool.get(root, HashEmbedder())
    passages = sorted(index.graph.passages[passage].id for passage, _ in index.search_passages("Nissan", 9))
    pool.close_unused()
    return passages


def test_those_that_fit_stay_open_and_the_least_recent_makes_room(pool: IndexPool, tenants: list[Path]) -> None:
    for which in (0, 1, 0):
        assert ask(pool, tenants[which]) == ["nissan", "sund"]
    assert (open_among(tenants), pool.workspaces) == ("ab", 2)
    ask(pool, tenants[2])
    pool.close_unused()
    assert open_among(tenants) == "ac"
    for root in [*tenants, *tenants]:
        assert ask(pool, root) == ["nissan", "sund"], "however few fit"


def test_each_limit_counts_and_one_that_is_larger_stays_alone(template: Path, tenants: list[Path]) -> None:
    one = cost_of(template)
    few_files, few_threads = OpenCost(1e12, 1.5 * one.files, 1e6), OpenCost(1e12, 1e6, 1.5 * one.threads)
    for budget in (few_files, few_threads, OpenCost(1, 1, 1)):
        pool = IndexPool(budget)
        for root in tenants[:3]:
            ask(pool, root)
            assert open_among(tenants) == root.name
        pool.close()


class TestRunsUnderWay:
    """A workspace that a run works on stays open."""

    def test_it_stays_open_until_the_run_has_ended(self, pool: IndexPool, tenants: list[Path]) -> None:
        with run(pool, tenants[0]):
            for root in tenants[1:]:
                ask(pool, root)
            assert open_among(tenants) == "ad"
            ask(pool, tenants[1])
            ask(pool, tenants[2])
        assert "a" in open_among(tenants)
        pool.close_unused()
        ask(pool, tenants[1])
        ask(pool, tenants[2])
        assert open_among(tenants) == "bc"


def test_an_older_generation_goes_before_a_workspace(pool: IndexPool, tenants: list[Path]) -> None:
    ask(pool, tenants[0])
    publish_workspace(tenants[0], [passage_of("new", "New", "text")])
    ask(pool, tenants[0])
    ask(pool, tenants[1])
    assert GenerationHold.is_held(tenants[0] / "index" / "2")
    assert not GenerationHold.is_held(tenants[0] / "index" / "1")
    assert pool.workspaces == 2


def test_what_is_taken_is_what_is_open(pool: IndexPool, tenants: list[Path], template: Path) -> None:
    one = cost_of(template)
    for root in tenants:
        ask(pool, root)
    assert pool.taken.bytes == pytest.approx(2 * one.bytes)
    assert pool.taken.files == 2 * one.files
    pool.close()
    assert pool.taken.bytes == pytest.approx(0)
    assert open_among(tenants) == ""


def test_a_workspace_that_opens_slowly_keeps_no_other_waiting(pool: IndexPool, tenants: list[Path]) -> None:
    slow, other = tenants[:2]
    current = slow / "CURRENT"
    current.unlink()
    os.mkfifo(current)
    gate = os.open(current, os.O_RDWR)
    answers: list[list[str]] = []
    thread = threading.Thread(target=lambda: answers.append(ask(pool, slow)))
    thread.start()
    assert ask(pool, other) == ["nissan", "sund"]
    assert not answers
    regular = slow / "current"
    regular.write_text("1\n", encoding="ascii")
    regular.replace(current)
    os.write(gate, b"1\n")
    os.close(gate)
    thread.join()
    assert answers == [["nissan", "sund"]]


def test_threads_that_ask_for_many_workspaces_get_each_its_own(tmp_path: Path) -> None:
    roots = [publish_workspace(tmp_path / f"w{i}", [passage_of(f"p{i}", "Title", f"Text {i}")]).root for i in range(6)]
    one = cost_of(roots[0])
    pool = IndexPool(OpenCost(2.5 * one.bytes, 1_000, 1_000))

    def work(seed: int) -> None:
        for step in range(6):
            which = (seed * 5 + step * (seed + 1)) % len(roots)
            with run(pool, roots[which]) as (index,):
                assert [index.graph.passages[row].id for row, _ in index.search_passages("Text", 3)] == [f"p{which}"]
            del index
            pool.close_unused()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    pool.close_unused()
    assert pool.taken.fits(OpenCost(2.5 * one.bytes, 1_000, 1_000))
    pool.close()
