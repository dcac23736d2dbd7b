"""Where the time of an index goes: `python -m benchmarks.indexing CORPUS [--triples FILE]`.

The embedded model is the bottleneck; everything else is to take less than 45 % of the time.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from graph.construction import build
from graph.embedding import embeddings
from graph.embedding.bert import MiniLMEmbedder
from graph.publish import derive
from graph.storage.record import Record
from workflows import indexing
from workflows.indexing import index_sources
from workflows.indexing_run import run


class Clock:
    """Adds up the seconds spent in some functions."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self, owner: Any, name: str, stage: str) -> None:
        """Replace a function by one that is timed."""
        function: Callable[..., Any] = getattr(owner, name)
        self.seconds.setdefault(stage, 0.0)

        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds[stage] += time.perf_counter() - start

        setattr(owner, name, timed)


def main() -> None:
    """Index the corpus into a folder that goes away, and print the seconds of each stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--triples", type=Path)
    arguments = parser.parse_args()
    clock = Clock()
    embeddings.configured_embedder().embed(["The model is loaded before the clock starts."])
    clock.watch(MiniLMEmbedder, "embed", "embed")
    clock.watch(MiniLMEmbedder, "count_windows", "count windows")
    clock.watch(run, "read_documents", "read")
    clock.watch(Record, "commit", "commit")
    clock.watch(build, "build_generation", "build graph")
    clock.watch(derive, "write_vectors", "Chroma")
    clock.watch(indexing, "related", "relationships")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        report = index_sources([arguments.corpus], Path(folder) / "w", arguments.triples)
        wall = time.perf_counter() - start
    stages = {**clock.seconds, "everything else": wall - sum(clock.seconds.values())}
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores")
    print(f"{report.passages} passages, {report.entities} names, {report.facts} facts in {wall:.1f} s")
    for stage, seconds in stages.items():
        print(f"{stage:16} {seconds:7.2f} s {seconds / wall:6.1%}")
    print(f"all but embed    {wall - stages['embed']:7.2f} s {1 - stages['embed'] / wall:6.1%}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
