"""The workers as a run sees them, over coordinators that end when they should not: no Ray is needed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from agents.chat.throttle import Cancelled
from agents.offline.extractor import OfflineExtractor
from graph.errors import BadInput, ClusterUnavailable
from graph.own_types import NO_TYPES
from graph.sources.child import from_json
from tests.builders import passage_of
from tests.workflows.distributed.test_shards import MODEL, made
from workflows.distributed import run as engine
from workflows.distributed.run import DistributedRun, Made
from workflows.distributed.shards import SHARD_PASSAGES, SHARDS, ShardFolder, ShardTask, Totals, to_parquet
from workflows.indexing_run import run
from workflows.indexing_run.run import workers_of
from workflows.settings.enums import IndexingEngine
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra ray is not installed: `make scale`")

CONTEXT = IndexingContext(engine=IndexingEngine.RAY)

Job = Mapping[str, Any]
Script = Callable[[Job], Iterator[Made]]


class FakeCoordinator:
    """A coordinator that does what a script says; shards are put into a folder."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.started = self.closed = 0
        self.jobs: list[Job] = []
        self.workers = 2

    def __call__(self, address: str, workers: int) -> FakeCoordinator:
        self.started += 1
        return self

    def ask(self, job: Job) -> Iterator[Made]:
        self.jobs.append(job)
        yield from self.script(job)

    def close(self) -> None:
        self.closed += 1


def well(job: Job) -> Iterator[Made]:
    """Do the whole job, and report it in reverse."""
    for key, task in reversed([*job["tasks"].items()]):
        read: ShardTask = from_json(ShardTask, task)
        ShardFolder(Path(job["root"])).put(key, to_parquet(made(read)))
        yield key, Totals(len(read.passages), 0, 3)


def ending_after(count: int) -> Script:
    """End in the middle of a job."""

    def script(job: Job) -> Iterator[Made]:
        yield from islice(well(job), count)
        raise ClusterUnavailable("Ray ended: the store is full", "Run it again")

    return script


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the extra are taken to be there."""
    monkeypatch.setattr(engine, "check_arrow", lambda: None)


PASSAGES = {f"p{n}": passage_of(f"p{n}", f"Lake {n}", "It lies in Karv.") for n in range(4 * SHARD_PASSAGES)}


def begun(monkeypatch: pytest.MonkeyPatch, root: Path, script: Script) -> tuple[DistributedRun, FakeCoordinator]:
    coordinator = FakeCoordinator(script)
    monkeypatch.setattr(engine, "Coordinator", coordinator)
    monkeypatch.setattr(engine, "configured_embedder", lambda: MODEL)
    running = DistributedRun(CONTEXT)
    running.begin(root, PASSAGES, [*PASSAGES], {}, OfflineExtractor(), NO_TYPES)
    return running, coordinator


def test_passages_come_in_the_order_asked_for_and_a_later_run_takes_the_shards_that_are_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running, coordinator = begun(monkeypatch, tmp_path, ending_after(3))
    totals: list[Totals] = []
    with pytest.raises(ClusterUnavailable, match="the store is full"):
        running.found([*PASSAGES], totals.append)
    assert totals[-1].passages == 3 * SHARD_PASSAGES
    running.close()
    assert (coordinator.started, coordinator.closed) == (1, 1)

    running, coordinator = begun(monkeypatch, tmp_path, well)
    assert [one["id"] for one in running.found([*PASSAGES], totals.append)] == [*PASSAGES]
    assert [len(job["tasks"]) for job in coordinator.jobs] == [1], "three are there"
    assert totals[-1].passages == 4 * SHARD_PASSAGES
    running.committed([*PASSAGES])
    assert not (tmp_path / SHARDS).exists()


def test_shards_go_to_ray_in_waves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "WAVE_SHARDS", 2)
    monkeypatch.setattr(engine, "SHARDS_A_WORKER", 1)
    running, coordinator = begun(monkeypatch, tmp_path, well)
    running.found([*PASSAGES], lambda totals: None)
    assert [len(job["tasks"]) for job in coordinator.jobs] == [2, 2]


def test_a_run_that_was_stopped_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    running, _ = begun(monkeypatch, tmp_path, ending_after(1))
    with pytest.raises(Cancelled):
        running.found([*PASSAGES], lambda totals: running.close())


def test_a_caller_s_own_extractor_and_a_client_s_cluster_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers_of(IndexingContext()) is None
    with pytest.raises(BadInput, match="extractor of a caller"):
        DistributedRun(CONTEXT.called_by("w", OfflineExtractor()))
    monkeypatch.setattr(run, "serves_clients", lambda: True)
    with pytest.raises(BadInput, match="A client may not name a Ray cluster"):
        workers_of(CONTEXT.model_copy(update={"address": "elsewhere:6379"}))
    with pytest.raises(BadInput, match="4096 workers are more than the server has cores"):
        workers_of(CONTEXT.model_copy(update={"workers": 4096}))
