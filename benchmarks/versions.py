"""Asking as of a date, step by step: `python -m benchmarks.versions`.

The corpus is that of `benchmarks.adding`. Some of its passages then change, as `mara index` changes them, and are asked
for as they were before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.adding import Corpus, RandomVectors, peak_memory
from benchmarks.machine import describe_machine
from graph.moments import first_moment
from graph.publish.derive import publish
from graph.schema import Passage
from graph.storage.workspace import Workspace
from graph.storage.writer import Writer
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes, open_workspace_index
from workflows.settings.indexing import IndexingContext

_BATCH = 512
_BEGUN, _CHANGED = "2023-01-01", "2024-01-01"
_QUESTIONS = 30


def build_workspace(root: Path, passages: int) -> None:
    """Fill a workspace with passages that stand from a date, and publish it."""
    workspace = Workspace(root)
    workspace.create()
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        with record.transaction():
            record.versions.begin(first_moment(_BEGUN))
        record.stand_from(first_moment(_BEGUN))
        writer, batch = Writer(record, RandomVectors()), list(Corpus().passages(passages))
        for start in range(0, passages, _BATCH):
            writer.write(batch[start : start + _BATCH])
        publish(workspace, record)


def change(root: Path, passages: Sequence[Passage]) -> None:
    """Index other texts under the ids of some passages, from another date on."""
    rows = [{"id": each.id, "title": each.title, "text": f"{each.text} It changed."} for each in passages]
    corpus = root.parent / "changed.jsonl"
    corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    index_sources([corpus], root, settings=IndexingContext(dated=_CHANGED, model="offline"))


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Build the workspace, change some passages, ask as of both dates, and print what each step took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=12_000)
    parser.add_argument("--changed", type=int, default=100)
    arguments = parser.parse_args()
    corpus = [passage for passage, _ in Corpus().passages(arguments.passages)]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "w"
        # In a process of its own, whose memory does not count.
        builder = get_context("spawn").Process(target=build_workspace, args=(root, arguments.passages))
        builder.start()
        builder.join()
        now = Context(workspace=str(root), model="offline")
        then = now.model_copy(update={"as_of": _BEGUN})
        steps = {
            "change them": seconds(lambda: change(root, corpus[: arguments.changed])),
            "open what stands now": seconds(lambda: open_workspace_index(now)),
            "derive and open what stood": seconds(lambda: open_workspace_index(then)),
        }
        found = open_workspace_index(then).graph.passages
        assert sorted(each.text for each in found) == sorted(each.text for each in corpus)
        replies = {name: _median_of_questions(context, corpus) for name, context in (("now", now), ("then", then))}
        close_indexes()
        steps["open it in another process"] = seconds(lambda: open_workspace_index(then))
        close_indexes()
        sizes = {path.name: _megabytes(path) for path in (root / "record.sqlite", Workspace(root).past)}
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores")
    print(f"{arguments.passages} passages, of which {arguments.changed} changed")
    for name, took in steps.items():
        print(f"{name:28} {took:7.2f} s")
    for name, took in replies.items():
        print(f"a question, {name:16} {1000 * took:7.0f} ms (median of {_QUESTIONS})")
    print(", ".join(f"{name} {size:.0f} MB" for name, size in sizes.items()), f"; peak memory {peak_memory():.2f} GiB")


def _median_of_questions(context: Context, corpus: Sequence[Passage]) -> float:
    questions = [f"What is {passage.title}?" for passage in corpus[: 10 * _QUESTIONS : 10]]
    ask(questions[0], context)
    return statistics.median(seconds(partial(ask, question, context)) for question in questions)


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files) / 1e6


if __name__ == "__main__":
    main()
