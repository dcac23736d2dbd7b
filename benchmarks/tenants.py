"""Thousands of small workspaces in one process: `python -m benchmarks.tenants --workspaces 2000 --minutes 3`.

The workspaces are copies of a few that are indexed for it, by hard links, which a reader never writes through: Chroma's
files, which it does write, are copied. Which one a question goes to is drawn by Zipf's law. Threads ask without a
pause, mode `mara`, without a chat model. It prints the time of questions that found their workspace open and of those
that had to open it, and what the process took meanwhile, beside the estimate.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.adding import build_workspace
from benchmarks.machine import describe_machine
from graph.retrieve.index_pool import IndexPool
from graph.storage.workspace import Workspace
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.resources import INDEX_POOL, OFFLINE, close_indexes, open_workspace_index

_WRITTEN = ("chroma", "record.sqlite", "held.db")
_SAMPLED_EVERY_S = 2.0


@dataclass
class Times:
    """Seconds of questions, and what the process took meanwhile.

    Attributes:
        hits: of questions whose workspace was open.
        opened: of questions that opened it.
        taken: rows of seconds, megabytes without a file behind them, megabytes estimated, workspaces, files, threads.
    """

    hits: list[float] = field(default_factory=list)
    opened: list[float] = field(default_factory=list)
    taken: list[tuple[float, ...]] = field(default_factory=list)


def make_tenants(folder: Path, count: int, passages: int, templates: int) -> list[Path]:
    """Return so many workspaces, made as copies of some templates of so many passages."""
    made = []
    for number in range(templates):
        build_workspace(folder / f"template{number}", passages)
    for number in range(count):
        made.append(folder / "tenants" / f"t{number:05d}")
        shutil.copytree(folder / f"template{number % templates}", made[-1], copy_function=_linked)
    return made


def _linked(source: str, target: str) -> None:
    if any(name in source for name in _WRITTEN):
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def ask_for(minutes: float, threads: int, tenants: Sequence[Path], exponent: float) -> Times:
    """Ask for some minutes, and return what it took."""
    times, until = Times(), time.monotonic() + 60 * minutes
    weights = [1 / (rank + 1) ** exponent for rank in range(len(tenants))]
    workers = [
        threading.Thread(target=_work, args=(times, until, tenants, weights, random.Random(seed)))
        for seed in range(threads)
    ]
    began = time.monotonic()
    for each in workers:
        each.start()
    while any(each.is_alive() for each in workers):
        times.taken.append((time.monotonic() - began, *_taken(INDEX_POOL)))
        time.sleep(_SAMPLED_EVERY_S)
    return times


def _work(
    times: Times, until: float, tenants: Sequence[Path], weights: Sequence[float], random_: random.Random
) -> None:
    while time.monotonic() < until:
        (root,) = random_.choices(tenants, weights)
        was_open = _is_open(root)
        question = f"Which {random_.choice(('river', 'town', 'maker', 'lake'))} is it?"
        start = time.perf_counter()
        ask(question, Context(workspace=str(root), model=OFFLINE))
        (times.hits if was_open else times.opened).append(time.perf_counter() - start)


def _is_open(root: Path) -> bool:
    pool = INDEX_POOL
    with pool._lock:
        return any(place[0] == root.absolute() for place in pool._open)


def _taken(pool: IndexPool) -> tuple[float, ...]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    files = len(os.listdir("/proc/self/fd"))
    resident = int(status["RssAnon"].split()[0]) / 1024
    return resident, pool.taken.bytes / 2**20, pool.workspaces, files, int(status["Threads"])


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {"questions": len(seconds)}
    cuts = statistics.quantiles(seconds, n=100)
    return {
        "questions": len(seconds),
        **{f"p{n}_ms": round(1000 * cuts[n - 1], 1) for n in (50, 95, 99)},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspaces", type=int, default=2_000, metavar="N")
    parser.add_argument("--passages", type=int, default=10, metavar="N", help="of each workspace")
    parser.add_argument(
        "--templates", type=int, default=4, metavar="N", help="workspaces that are indexed, then copied"
    )
    parser.add_argument("--minutes", type=float, default=3, metavar="N")
    parser.add_argument("--threads", type=int, default=4, metavar="N")
    parser.add_argument("--exponent", type=float, default=1.0, metavar="X", help="of Zipf's law")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        tenants = make_tenants(Path(scratch), asked.workspaces, asked.passages, asked.templates)
        assert Workspace(tenants[0]).current() is not None
        open_workspace_index(Context(workspace=str(tenants[0])))
        ask("Which river is it?", Context(workspace=str(tenants[0]), model=OFFLINE))
        before = _taken(INDEX_POOL)
        times = ask_for(asked.minutes, asked.threads, tenants, asked.exponent)
        figures = {
            "machine": describe_machine(),
            "load": os.getloadavg(),
            **vars(asked),
            "open_bytes": os.environ.get("MARA_OPEN_BYTES", "default"),
            "hits": _percentiles(times.hits),
            "opened": _percentiles(times.opened),
            "megabytes_before": round(before[0]),
            "seconds, megabytes, estimate, workspaces, files, threads": [
                [round(value) for value in row] for row in times.taken[:: max(1, len(times.taken) // 12)]
            ],
        }
        print(json.dumps(figures, indent=2, default=str))
        with suppress(Exception):
            close_indexes()


if __name__ == "__main__":
    main()
