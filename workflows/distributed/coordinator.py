"""The process that drives Ray for a run: it takes jobs on standard input, and tells what is done on standard output.

It is a process of its own so that Ray's threads, signals and logs stay out of the one that indexes, which is often a
command or a server; and so that Ray can end, for whatever reason, and be started again. It ends with its parent, and
leaves a guard behind, which ends Ray and removes its folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from workflows.distributed import pipeline, wire
from workflows.distributed.shards import ShardFolder
from workflows.distributed.work import as_error

_TIDYINGS = 10
_TIDYING_S = 0.1


def main() -> None:
    """Connect to Ray, and do jobs until standard input ends."""
    cluster = wire.receive(sys.stdin.buffer)
    assert isinstance(cluster, wire.Cluster)
    _leave_a_guard(Path(cluster.folder).parent)
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print goes to the log
    jobs: SimpleQueue[wire.Job] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        workers = pipeline.connect(cluster)
        wire.send(events, wire.Ready(workers))
        while True:
            for event in _events_of(jobs.get(), workers):
                wire.send(events, event)
            wire.send(events, wire.JobDone())
    except Exception as fault:
        wire.send(events, wire.Failed.of(as_error(fault)))


def _leave_a_guard(folder: Path) -> None:
    """Start a process that ends Ray once this one is gone, and removes the folder once the parent needs it no more."""
    group = os.getpgrp()
    ended, alive = os.pipe()
    if os.fork():
        os.close(ended)
        return
    os.setsid()
    for held in (1, 2, alive):
        os.close(held)
    os.read(ended, 1)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    while os.read(0, 2**16):
        pass
    for _ in range(_TIDYINGS):  # what is killed may write a little longer
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_TIDYING_S)
    os._exit(0)


def _events_of(job: wire.Job, workers: int) -> Iterator[wire.Event]:
    if isinstance(job, wire.ReadJob):
        for number, files in pipeline.read_files(job.tasks):
            yield wire.FilesRead(number, files)
        return
    folder = ShardFolder(Path(job.root))
    for made, content in pipeline.make_shards(job, workers):
        folder.put(made.key, content)
        yield made


def _receive(jobs: SimpleQueue[wire.Job]) -> None:
    """Take in jobs; when the parent has closed its end, or is gone, end this process, whatever it is doing."""
    with suppress(EOFError):
        while True:
            job = wire.receive(sys.stdin.buffer)
            assert isinstance(job, wire.ReadJob | wire.MakeJob)
            jobs.put(job)
    os._exit(0)


if __name__ == "__main__":
    main()
