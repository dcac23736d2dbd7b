"""The engine as a run sees it, over coordinators that end when they should not: no Ray is needed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.offline.extractor import OfflineExtractor
from graph.errors import BadInput, ClusterUnavailable
from graph.own_types import NO_TYPES
from graph.sources.child import from_json, to_json
from graph.sources.documents import ToRead, read_documents
from graph.sources.loaders.document import Loaded
from tests.builders import passage_of
from workflows.distributed import run as engine
from workflows.distributed.coordinator import ReadTask, Work, read_task
from workflows.distributed.run import DistributedRun, Done, RayEngine
from workflows.distributed.shards import SHARD_PASSAGES, ShardTask, Totals, plan_shards
from workflows.indexing_run import run
from workflows.indexing_run.run import workers_of
from workflows.settings.enums import IndexingEngine
from workflows.settings.indexing import IndexingContext

CONTEXT = IndexingContext(engine=IndexingEngine.RAY)
WORK = Work(CONTEXT, NO_TYPES, "rules", "hash", 0, {})

Job = Mapping[str, Any]
Script = Callable[[Job], Iterator[Done]]


class Coordinators:
    """Coordinators that do what a script says, one after another; the last script is repeated."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = scripts
        self.started = self.closed = 0
        self.jobs: list[Job] = []
        self.is_ready = True
        self.workers = 2

    def __call__(self, address: str, workers: int) -> Coordinators:
        self.started += 1
        self.is_ready = True
        return self

    def ask(self, job: Job) -> Iterator[Done]:
        self.jobs.append(job)
        try:
            yield from self.scripts[min(self.started, len(self.scripts)) - 1](job)
        except ClusterUnavailable:
            self.is_ready = False
            raise

    def last_words(self) -> str:
        return "the store is full"

    def close(self) -> None:
        self.closed += 1


def well(job: Job) -> Iterator[Done]:
    """Do the whole job, and report it in reverse."""
    for key, task in reversed([*job["tasks"].items()]):
        if job["work"]:
            yield Done(key, to_json(Totals, Totals(SHARD_PASSAGES, 0, 3)))
        else:
            yield Done(key, to_json(list[Loaded | None], read_task(from_json(ReadTask, task))))


def ending_after(count: int) -> Script:
    """End in the middle of a job."""

    def script(job: Job) -> Iterator[Done]:
        for event, _ in zip(well(job), range(count), strict=False):
            yield event
        raise EOFError

    return script


def not_starting(job: Job) -> Iterator[Done]:
    raise ClusterUnavailable("Ray cannot be started here", "Run it again")
    yield


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the extra are taken to be there."""
    monkeypatch.setattr(engine, "check_arrow", lambda: None)


@pytest.fixture
def tasks() -> list[ShardTask]:
    passages = [passage_of(f"p{n}", f"Lake {n}", "It lies in Karv.") for n in range(4 * SHARD_PASSAGES)]
    return [*plan_shards(passages, {}, "rules", "hash")]


def run_of(monkeypatch: pytest.MonkeyPatch, *scripts: Script) -> tuple[RayEngine, Coordinators]:
    coordinators = Coordinators(*scripts)
    monkeypatch.setattr(engine, "Coordinator", coordinators)
    return RayEngine(CONTEXT), coordinators


def waited_for(running: RayEngine, tasks: Sequence[ShardTask], root: Path) -> Totals:
    totals: list[Totals] = []
    running.make(WORK, tasks, root, None)
    for task in tasks:
        running.wait(task.key, totals.append)
    running.close()
    return totals[-1]


def test_ray_is_started_again_for_what_is_left(
    monkeypatch: pytest.MonkeyPatch, tasks: list[ShardTask], tmp_path: Path
) -> None:
    running, coordinators = run_of(monkeypatch, ending_after(1), ending_after(0), ending_after(2), well)
    assert waited_for(running, tasks, tmp_path).passages == 4 * SHARD_PASSAGES
    left = [len(job["tasks"]) for job in coordinators.jobs]
    assert left == [4, 3, 3, 1]
    assert coordinators.closed == coordinators.started == 4


def test_ray_that_ends_or_does_nothing_three_times_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, tasks: list[ShardTask], tmp_path: Path
) -> None:
    running, coordinators = run_of(monkeypatch, ending_after(1), ending_after(0))
    with pytest.raises(ClusterUnavailable, match="ended 3 times in a row: the store is full"):
        waited_for(running, tasks, tmp_path)
    assert coordinators.started == 4
    running, _ = run_of(monkeypatch, lambda job: iter(()))
    with pytest.raises(ClusterUnavailable, match="ended 3 times in a row"):
        waited_for(running, tasks, tmp_path)


def test_ray_that_does_not_start_ends_the_run_at_once_unless_it_had_started_before(
    monkeypatch: pytest.MonkeyPatch, tasks: list[ShardTask], tmp_path: Path
) -> None:
    running, coordinators = run_of(monkeypatch, not_starting, well)
    with pytest.raises(ClusterUnavailable, match="cannot be started"):
        waited_for(running, tasks, tmp_path)
    assert coordinators.started == 1
    running, _ = run_of(monkeypatch, ending_after(1), not_starting, well)
    assert waited_for(running, tasks, tmp_path).passages == 4 * SHARD_PASSAGES
    running, coordinators = run_of(monkeypatch, ending_after(1), not_starting)
    with pytest.raises(ClusterUnavailable, match="cannot be started"):
        waited_for(running, tasks, tmp_path)
    assert coordinators.started == 4


def test_shards_go_to_ray_in_waves_and_each_wave_is_filled_up(
    monkeypatch: pytest.MonkeyPatch, tasks: list[ShardTask], tmp_path: Path
) -> None:
    monkeypatch.setattr(engine, "WAVE_SHARDS", 2)
    monkeypatch.setattr(engine, "SHARDS_A_WORKER", 1)
    running, coordinators = run_of(monkeypatch, well)
    waited_for(running, tasks, tmp_path)
    assert [len(job["tasks"]) for job in coordinators.jobs] == [2, 2]


def test_documents_read_by_workers_are_those_read_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for n in range(70):
        (tmp_path / f"{n:02}.txt").write_text(f"Lake {n} lies in Karv. " * 9, encoding="utf-8")
    (tmp_path / "05.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "68.bin").write_text("", encoding="utf-8")
    context = CONTEXT.read_options()
    running, coordinators = run_of(monkeypatch, ending_after(1), well)
    nothing: list[ToRead] = []
    assert [*running.read(nothing, context)] == []
    assert coordinators.started == 0, "no file needs no Ray"
    assert read_documents([tmp_path], context, running.read) == read_documents([tmp_path], context)
    monkeypatch.setattr(engine, "FILES_A_WAVE", 32)
    running, coordinators = run_of(monkeypatch, well, ending_after(0), well)
    assert read_documents([tmp_path], context, running.read) == read_documents([tmp_path], context)
    assert [len(job["tasks"]) for job in coordinators.jobs] == [4, 4, 1]


def test_a_caller_s_own_extractor_and_a_client_s_cluster_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers_of(IndexingContext()) is None
    with pytest.raises(BadInput, match="extractor of a caller"):
        DistributedRun(CONTEXT.called_by("w", OfflineExtractor()))
    monkeypatch.setattr(run, "serves_clients", lambda: True)
    with pytest.raises(BadInput, match="A client may not name a Ray cluster"):
        workers_of(CONTEXT.model_copy(update={"address": "elsewhere:6379"}))
    with pytest.raises(BadInput, match="4096 workers are more than the server has cores"):
        workers_of(CONTEXT.model_copy(update={"workers": 4096}))
