"""The process that drives Ray for a run: it takes jobs on standard input, and tells what is done on standard output.

It is a process of its own so that Ray's threads, signals and logs stay out of the one that indexes, which is often a
command or a server; and so that Ray can end, for whatever reason, and be started again. It ends with its parent.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

from workflows.distributed import pipeline
from workflows.distributed.messages import (
    Cluster,
    Event,
    FilesRead,
    Job,
    JobDone,
    MakeJob,
    ReadJob,
    Ready,
    ShardMade,
    receive,
    send,
)
from workflows.distributed.shard_files import ShardFolder
from workflows.distributed.wire import Failed
from workflows.distributed.work import as_error

_PATIENCE_S = 8.0
"""The time that Ray may take to end when the parent is gone."""


def main() -> None:
    """Connect to Ray, and do jobs until standard input ends."""
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print goes to the log
    cluster = receive(sys.stdin.buffer)
    assert isinstance(cluster, Cluster)
    jobs: SimpleQueue[Job | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, cluster), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        workers = pipeline.connect(cluster)
        send(events, Ready(workers))
        while (job := jobs.get()) is not None:
            for event in _events_of(job, workers):
                send(events, event)
            send(events, JobDone())
    except Exception as fault:
        send(events, Failed.of(as_error(fault)))
    finally:
        _end(cluster)


def _events_of(job: Job, workers: int) -> Iterator[Event]:
    if isinstance(job, ReadJob):
        for number, files in pipeline.read_files(job.tasks):
            yield FilesRead(number, files)
        return
    folder = ShardFolder(Path(job.root))
    for made in pipeline.make_shards(job, workers):
        folder.put(made.key, made.content)
        yield ShardMade(made.key, made.passages, made.failed, made.tokens)


def _receive(jobs: SimpleQueue[Job | None], cluster: Cluster) -> None:
    """Take in jobs; when the parent has closed its end, or is gone, end Ray and this process, whatever it is doing."""
    while True:
        try:
            job = receive(sys.stdin.buffer)
            assert isinstance(job, ReadJob | MakeJob)
            jobs.put(job)
        except EOFError:
            jobs.put(None)
            threading.Timer(_PATIENCE_S, _give_up, [cluster]).start()
            _end(cluster)
            os._exit(0)


def _end(cluster: Cluster) -> None:
    """End Ray, and remove what it and this process wrote: the parent may be gone."""
    import ray

    ray.shutdown()
    shutil.rmtree(Path(cluster.folder).parent, ignore_errors=True)


def _give_up(cluster: Cluster) -> None:
    """End this process whatever Ray is doing; Ray's own processes end when they notice."""
    shutil.rmtree(Path(cluster.folder).parent, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()
