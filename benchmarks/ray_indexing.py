"""Indexing on Ray beside one process: `python -m benchmarks.ray_indexing SOURCE... [--limit N] [--kills N]`.

Without --kills: the sources are indexed by one process, by Ray with one worker and by Ray with two (one thread each),
and the records are compared row by row. With --kills: by Ray with two workers, while at random moments a worker, the
process that drives Ray, all of Ray, or the command itself is killed, which is then run again; the record that is there
in the end is compared with that of one process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe_machine
from graph.errors import ServiceUnavailable
from workflows.indexing import index_sources
from workflows.settings.enums import IndexingEngine
from workflows.settings.indexing import IndexingContext

_TABLES = ("passages", "names", "facts", "passage_names", "passage_facts")
_COMMAND = [sys.executable, "-c", "import sys; from workflows.cli.app import main; sys.exit(main())"]
_KINDS = ("worker", "coordinator", "Ray", "command")
_LONGEST_WAIT_S = 600.0
_TIME = re.compile(r'"at": "[^"]*"')


@dataclass(frozen=True, slots=True)
class Timed:
    """One run.

    Attributes:
        name: the engine.
        passages: how many were indexed.
        all_s: seconds from the start to the published generation.
        first_s: seconds until the first shard, or the first passage, was made.
        made_s: seconds from there until all passages were extracted and embedded.
        first: passages that were made at ``first_s``.
    """

    name: str
    passages: int
    all_s: float
    first_s: float
    made_s: float
    first: int

    @property
    def rate(self) -> float:
        """Passages a second between the first and the last shard."""
        return (self.passages - self.first) / max(self.made_s, 1e-9)


def main() -> None:
    """Measure, or kill; print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=0, help="passages of a .jsonl corpus to take (default: all)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds, of which the fastest of each engine counts")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address", default="", help="a running Ray cluster, for all runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = [limited(source, arguments.limit, Path(folder)) for source in arguments.sources]
        machine = describe_machine()
        print(f"{machine.processor}, {machine.cores} cores, load {machine.load:.2f} before\n")
        if arguments.kills:
            survive(sources, Path(folder), arguments.kills, arguments.seed)
        else:
            compare(sources, Path(folder), arguments.rounds, arguments.address)


def limited(source: Path, limit: int, folder: Path) -> Path:
    """Return a corpus of the first lines of another one; the source itself without a limit."""
    source = source / "corpus.jsonl" if (source / "corpus.jsonl").exists() else source
    if not limit or source.suffix != ".jsonl":
        return source
    part = folder / f"{len([*folder.iterdir()])}-{source.name}"
    with source.open(encoding="utf-8") as lines:
        part.write_text("".join(itertools.islice(lines, limit)), encoding="utf-8")
    return part


def compare(sources: Sequence[Path], folder: Path, rounds: int, address: str) -> None:
    """Index with each engine, print the times, and tell whether the records are the same."""
    engines = {
        "one process": IndexingContext(),
        "Ray, 1 worker": IndexingContext(
            engine={"name": IndexingEngine.RAY, "workers": 1, "address": address},
        ),
        "Ray, 2 workers": IndexingContext(
            engine={"name": IndexingEngine.RAY, "workers": 2, "address": address},
        ),
    }
    best: dict[str, Timed] = {}
    places: dict[str, Path] = {}
    for number, (name, context) in itertools.product(range(rounds), engines.items()):
        places[name] = folder / f"{name}-{number}"
        run = timed(name, sources, places[name], context)
        best[name] = min(best.get(name, run), run, key=lambda each: each.all_s)
    whole = dump(places["one process"])
    print("| engine | all, s | to the first shard, s | then, s | passages a second, then | the same record |")
    print("|---|--:|--:|--:|--:|---|")
    for name, run in best.items():
        same = "yes" if dump(places[name]) == whole else "NO"
        print(f"| {name} | {run.all_s:.1f} | {run.first_s:.1f} | {run.made_s:.1f} | {run.rate:.1f} | {same} |")
    one, two = best["Ray, 1 worker"], best["Ray, 2 workers"]
    print(f"\n{one.passages} passages. Two workers against one: {one.all_s / two.all_s:.2f} times as fast in all,")
    print(f"{two.rate / one.rate:.2f} times between the first and the last shard")


def timed(name: str, sources: Sequence[Path], root: Path, context: IndexingContext) -> Timed:
    """Index into a new workspace."""
    told: list[tuple[float, int]] = []
    begun = time.perf_counter()

    def progress(stage: str, done: int, total: int) -> None:
        if stage == ("embed" if context.engine.name is IndexingEngine.LOCAL else "extract") and done:
            told.append((time.perf_counter() - begun, done))

    report = index_sources(sources, root, progress=progress, settings=context)
    all_s = time.perf_counter() - begun
    (first_s, first), (last_s, _) = told[0], told[-1]
    return Timed(name, report.passages, all_s, first_s, last_s - first_s, first)


def dump(root: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of the record that hold neither random ids nor times, in their order."""
    with sqlite3.connect(f"file:{root / 'record.sqlite'}?mode=ro", uri=True) as database:
        rows = {table: [*database.execute(f"SELECT * FROM {table}")] for table in _TABLES}
        rows["past_passages"] = [row[:1] + row[3:] for row in database.execute("SELECT * FROM past_passages")]
        rows["past_facts"] = [*database.execute("SELECT * FROM past_facts")]
        rows["standing"] = [*database.execute("SELECT passage_id FROM standing")]
        random_names = ("workspace_id", "commit_id", "lease")
        meta = (row for row in database.execute("SELECT key, value FROM meta") if row[0] not in random_names)
        rows["meta"] = [(key, _TIME.sub("", value)) for key, value in meta]
    return rows


def survive(sources: Sequence[Path], folder: Path, kills: int, seed: int) -> None:
    """Kill again and again, and tell what became of the record."""
    root, chance, done = folder / "killed", random.Random(seed), Counter[str]()
    begun, runs, made_while_killed = time.perf_counter(), 0, 0
    finished = False
    while not finished or sum(done.values()) < kills:
        if finished:
            print(f"The run was done after {sum(done.values())} kills, and goes on in a new workspace", flush=True)
            assert_same(root, sources, folder)
            root = folder / f"killed-{runs}"
        runs += 1
        finished, again = False, True
        run = start(sources, root)
        while again and run.poll() is None:
            again = sum(done.values()) >= kills or kill_once(run, root, _KINDS[sum(done.values()) % 4], chance, done)
            if sum(done.values()) >= kills:
                run.wait()
        out, err = run.communicate()
        finished = run.returncode == 0
        made_while_killed += finished
        if not finished and run.returncode not in (-signal.SIGKILL, ServiceUnavailable.exit_code):
            raise SystemExit(f"exit code {run.returncode}: {out[-500:].decode()} {err[-2000:].decode()}")
    assert_same(root, sources, folder)
    seconds = time.perf_counter() - begun
    print(f"{sum(done.values())} kills in {seconds:.0f} s and {runs} runs: {dict(done)}; the record is the same")


def start(sources: Sequence[Path], root: Path) -> subprocess.Popen[bytes]:
    """Start the command."""
    arguments = ["index", *map(str, sources), "-w", str(root), "--set", "engine=ray", "--set", "workers=2", "--json"]
    return subprocess.Popen([*_COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kill_once(run: subprocess.Popen[bytes], root: Path, kind: str, chance: random.Random, done: Counter[str]) -> bool:
    """Kill something of a run once its workers are at work; tell whether the command still runs."""
    until = time.monotonic() + _LONGEST_WAIT_S
    while run.poll() is None and time.monotonic() < until and not processes_of(run.pid, "worker"):
        with suppress(subprocess.TimeoutExpired):
            run.wait(0.2)
    with suppress(subprocess.TimeoutExpired):
        run.wait(chance.uniform(0.0, 6.0))
    if run.poll() is not None:
        return False
    found = processes_of(run.pid, kind)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if found:
        done[kind] += 1
        print(f"{sum(done.values())}: killed {kind}, {len(shards(root))} shards wait to be committed", flush=True)
    return kind == "worker"


def shards(root: Path) -> list[Path]:
    """Return the shards that are made and not committed."""
    return [*(root / "shards").glob("*.parquet")]


def processes_of(command: int, kind: str) -> list[int]:
    """Return the processes of a run to kill: one worker, the coordinator, all servers of Ray, or the command."""
    if kind == "command":
        return [command]
    named = {pid: words_of(pid) for pid in descendants(command)}
    marks = {"worker": ("ray::MapWorker",), "coordinator": ("workflows.distributed.coordinator",)}.get(
        kind, ("gcs_server", "raylet/raylet")
    )
    found = [pid for pid, words in named.items() if any(mark in words for mark in marks)]
    return found if kind == "Ray" else found[:1]


def words_of(pid: int) -> str:
    """Return the command line of a process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def descendants(parent: int) -> Iterator[int]:
    """Yield the processes that a process started, and those that these started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                words = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                children.setdefault(int(words[1]), []).append(int(entry.name))
    waiting = [parent]
    while waiting:
        for child in children.get(waiting.pop(), []):
            yield child
            waiting.append(child)


def assert_same(root: Path, sources: Sequence[Path], folder: Path) -> None:
    """End the benchmark where the record differs from that of one process, or shards are left."""
    whole = folder / "whole"
    if not whole.exists():
        index_sources(sources, whole)
    mine, other = dump(root), dump(whole)
    # A command that was killed between two commits has made one more or one fewer than another: the count differs.
    for rows in (mine, other):
        rows["meta"] = [row for row in rows["meta"] if row[0] != "generation"]
    different = [table for table, rows in other.items() if rows != mine[table]]
    if different or shards(root):
        raise SystemExit(f"The records differ in {json.dumps(different)}, {len(shards(root))} shards are left")


if __name__ == "__main__":
    main()
