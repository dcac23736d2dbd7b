"""Processes that derive an index of the past and are killed, or that derive it at the same time."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from graph.retrieve.index_pool import IndexPool
from graph.retrieve.past import PastIndexes
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, passage_of, write_dated
from tests.killing import KILLED, Step, kill_at

pytestmark = pytest.mark.slow

_FILES = "graph/retrieve/past.py", "graph/storage/record.py", "graph/publish/derive.py", "graph/storage/workspace.py"
_PAST, _RECORD, _DERIVE, _WORKSPACE = _FILES
STEPS = (
    Step(_PAST, "_take_vectors"),
    Step(_PAST, "_go_back"),
    Step(_RECORD, "copy_to"),
    Step(_DERIVE, "publish"),
    Step("graph/construction/build.py", "build_generation"),
    Step(_WORKSPACE, "publish"),
    Step(_WORKSPACE, "write_atomically", 2),
    Step(_PAST, "_prune"),
)


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    write_dated(tmp_path / "shop", "2023", [passage_of("lamp", "Lamp", "The lamp costs 40 euros.")])
    return write_dated(tmp_path / "shop", "2024", [passage_of("lamp", "Lamp", "The lamp costs 45 euros.")])


def derive(root: Path, at: Step | None = None) -> None:
    if at is not None:
        kill_at(at)
    pool = IndexPool()
    index = PastIndexes(pool).get(root, HashEmbedder(), "2023")
    right = [passage.text for passage in index.graph.passages] == ["The lamp costs 40 euros."]
    pool.close()
    os._exit(0 if right else 1)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.function}-{step.time}")
def test_whoever_asks_next_gets_it_whole(shop: Workspace, step: Step) -> None:
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


def test_processes_that_ask_at_once_all_get_it(shop: Workspace) -> None:
    spawned = multiprocessing.get_context("spawn")
    processes = [spawned.Process(target=derive, args=(shop.root,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len([path for path in shop.past.iterdir() if path.is_dir()]) == 1
