"""The generation that questions begin with while new ones are published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import Index
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, passage_of, publish_workspace
from workflows.runtime.fresh_generations import FreshGenerations


class World:
    """A workspace that grows, the pool which opens it, and the watcher of its generations."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pool = IndexPool()
        self.now = 0.0
        self.fresh = FreshGenerations(self.pool, clock=lambda: self.now)
        self.began: list[int] = []
        self.faults: list[str] = []
        self.while_warming: list[int] = []
        self.breaks = False
        self._embedder = HashEmbedder()
        self._published = 0

    def publish(self) -> None:
        """Publish a generation with one passage more."""
        self._published += 1
        publish_workspace(self.root, [passage_of(f"p{self._published}", "", "The Velm is a river.")])

    def get(self) -> Index:
        return self.fresh.get(self.root, self._embedder)

    def warm_up(self, root: Path) -> None:
        self.while_warming.append(self.get().graph.generation)
        if self.breaks:
            raise OSError("the disk is gone")

    def begun(self, root: Path, generation: int) -> None:
        self.began.append(generation)

    def unopened(self, root: Path, fault: Exception) -> None:
        self.faults.append(str(fault))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "w")
    world.publish()
    with world.fresh.watched(world):
        yield world
    world.pool.close()


def test_questions_begin_with_what_is_warm_until_the_new_one_is(world: World) -> None:
    first = world.get()
    world.publish()
    assert world.get() is first
    world.fresh.look()
    second = world.get()
    assert second.graph.generation == Workspace(world.root).current() != first.graph.generation
    assert world.while_warming == [second.graph.generation]
    assert world.began == [first.graph.generation, second.graph.generation]


def test_a_generation_of_this_process_is_asked_at_once(world: World) -> None:
    world.get()
    world.publish()
    world.fresh.catch_up(world.root)
    assert len(world.get().graph.passages) == 2


def test_a_generation_that_cannot_be_opened_is_reported_and_tried_again_later_or_with_the_next(world: World) -> None:
    first = world.get()
    world.publish()
    world.breaks = True
    world.fresh.look()
    world.fresh.look()
    assert world.faults == ["the disk is gone"]
    assert world.get() is first
    world.breaks = False
    world.fresh.look()
    assert world.get() is first
    world.now += 11
    world.fresh.look()
    assert world.get().graph.generation == Workspace(world.root).current()
    for breaks in (True, False):
        world.publish()
        world.breaks = breaks
        world.fresh.look()
    assert len(world.get().graph.passages) == 4


def test_a_workspace_that_the_pool_closed_is_watched_no_more(world: World) -> None:
    world.get()
    world.pool.let_go(world.root)
    world.publish()
    world.fresh.look()
    world.fresh.look()
    assert world.while_warming == []
    assert len(world.get().graph.passages) == 2


def test_a_generation_that_is_published_while_the_first_one_is_opened_is_asked_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = world.pool.get

    def slowly(*place: Any) -> Index:
        index = opening(*place)
        monkeypatch.setattr(world.pool, "get", opening)
        world.publish()
        world.fresh.catch_up(world.root)
        return index

    monkeypatch.setattr(world.pool, "get", slowly)
    assert len(world.get().graph.passages) == 1
    assert len(world.get().graph.passages) == 2
