"""The generation that questions begin with while new ones are published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.embedding.embeddings import Embedder
from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import Index
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, passage_of, publish_workspace
from workflows.runtime.fresh_generations import FreshGenerations


class Watcher:
    """Notes what happens, and opens what is warmed up as a question would."""

    def __init__(self, fresh: FreshGenerations, embedder: Embedder) -> None:
        self.began: list[int] = []
        self.closings = 0
        self.faults: list[str] = []
        self.while_warming: list[int] = []
        self.breaks = False
        self._fresh, self._embedder = fresh, embedder

    def warm_up(self, root: Path) -> None:
        self.while_warming.append(self._fresh.get(root, self._embedder).graph.generation)
        if self.breaks:
            raise OSError("the disk is gone")

    def begun(self, root: Path, generation: int) -> None:
        self.began.append(generation)

    def closed(self, root: Path) -> None:
        self.closings += 1

    def unopened(self, root: Path, fault: Exception) -> None:
        self.faults.append(str(fault))


@pytest.fixture
def pool() -> Iterator[IndexPool]:
    pool = IndexPool()
    yield pool
    pool.close()


@pytest.fixture
def time() -> list[float]:
    """The time, to be changed."""
    return [0.0]


@pytest.fixture
def fresh(pool: IndexPool, time: list[float]) -> FreshGenerations:
    return FreshGenerations(pool, clock=lambda: time[0])


@pytest.fixture
def root(tmp_path: Path, publish: Callable[[str], None]) -> Path:
    publish("The Velm is a river.")
    return tmp_path / "w"


@pytest.fixture
def publish(tmp_path: Path) -> Callable[[str], None]:
    """Publishes a generation with one passage more."""
    count = [0]

    def one_more(text: str) -> None:
        count[0] += 1
        publish_workspace(tmp_path / "w", [passage_of(f"p{count[0]}", "", text)])

    return one_more


@pytest.fixture
def watcher(fresh: FreshGenerations, embedder: HashEmbedder) -> Iterator[Watcher]:
    watcher = Watcher(fresh, embedder)
    with fresh.watched(watcher):
        yield watcher


def test_questions_begin_with_what_is_warm_until_the_new_one_is(
    fresh: FreshGenerations, root: Path, embedder: HashEmbedder, publish: Callable[[str], None], watcher: Watcher
) -> None:
    first = fresh.get(root, embedder)
    publish("Karv is a harbour town.")
    assert fresh.get(root, embedder) is first
    fresh.look()
    second = fresh.get(root, embedder)
    assert second.graph.generation == Workspace(root).current() != first.graph.generation
    assert watcher.while_warming == [second.graph.generation]
    assert watcher.began == [first.graph.generation, second.graph.generation]


def test_a_generation_of_this_process_is_asked_at_once(
    fresh: FreshGenerations, root: Path, embedder: HashEmbedder, publish: Callable[[str], None], watcher: Watcher
) -> None:
    fresh.get(root, embedder)
    publish("Karv is a harbour town.")
    fresh.catch_up(root)
    assert len(fresh.get(root, embedder).graph.passages) == 2


def test_without_a_watcher_a_question_opens_the_newest(
    fresh: FreshGenerations, root: Path, embedder: HashEmbedder, publish: Callable[[str], None]
) -> None:
    fresh.get(root, embedder)
    publish("Karv is a harbour town.")
    assert len(fresh.get(root, embedder).graph.passages) == 2


def test_a_generation_that_cannot_be_opened_is_reported_and_tried_again_later_or_with_the_next(
    fresh: FreshGenerations,
    root: Path,
    embedder: HashEmbedder,
    publish: Callable[[str], None],
    watcher: Watcher,
    time: list[float],
) -> None:
    first = fresh.get(root, embedder)
    publish("Karv is a harbour town.")
    watcher.breaks = True
    fresh.look()
    fresh.look()
    assert watcher.faults == ["the disk is gone"]
    assert fresh.get(root, embedder) is first
    watcher.breaks = False
    fresh.look()
    assert fresh.get(root, embedder) is first
    time[0] += 11
    fresh.look()
    assert fresh.get(root, embedder).graph.generation == Workspace(root).current()
    for text, breaks in (("Sund is a lake.", True), ("Marn is a town.", False)):
        publish(text)
        watcher.breaks = breaks
        fresh.look()
    assert len(fresh.get(root, embedder).graph.passages) == 4


def test_a_workspace_that_the_pool_closed_is_watched_no_more(
    fresh: FreshGenerations,
    pool: IndexPool,
    root: Path,
    embedder: HashEmbedder,
    publish: Callable[[str], None],
    watcher: Watcher,
) -> None:
    fresh.get(root, embedder)
    pool.let_go(root)
    publish("Karv is a harbour town.")
    fresh.look()
    fresh.look()
    assert watcher.closings == 1
    assert watcher.while_warming == []
    assert len(fresh.get(root, embedder).graph.passages) == 2


def test_a_generation_that_is_published_while_the_first_one_is_opened_is_asked_next(
    fresh: FreshGenerations,
    pool: IndexPool,
    root: Path,
    embedder: HashEmbedder,
    publish: Callable[[str], None],
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening = pool.get

    def slowly(*place: Any) -> Index:
        index = opening(*place)
        monkeypatch.setattr(pool, "get", opening)
        publish("Karv is a harbour town.")
        fresh.catch_up(root)
        return index

    monkeypatch.setattr(pool, "get", slowly)
    assert len(fresh.get(root, embedder).graph.passages) == 1
    assert len(fresh.get(root, embedder).graph.passages) == 2
