from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph.construction.workers import Workers, build_processes
from graph.errors import BadInput, OutOfResources


@dataclass(frozen=True)
class Noting:
    """A build whose tasks tell which process did them, or fail."""

    folder: Path

    def note(self, number: int) -> None:
        (self.folder / str(number)).write_text(str(os.getpid()), encoding="ascii")

    def refuse(self, number: int) -> None:
        raise (
            BadInput("it cannot be done", "do something else"),
            OSError(errno.ENOSPC, "No space left on device", "file.npy"),
            sqlite3.DatabaseError("odd"),
        )[number]

    def end(self, number: int) -> None:
        os._exit(number)


def test_a_single_task_or_one_without_processes_is_done_here(tmp_path: Path) -> None:
    with Workers(Noting(tmp_path), 0) as workers:
        workers.run([("note", 1), ("note", 2)])
    with Workers(Noting(tmp_path), 2) as workers:
        workers.run([("note", 3)])
    assert [path.read_text(encoding="ascii") for path in tmp_path.iterdir()] == 3 * [str(os.getpid())]


def test_each_of_several_tasks_is_done_by_another_process(tmp_path: Path) -> None:
    with Workers(Noting(tmp_path), 2) as workers:
        workers.run([("note", number) for number in range(5)])
    found = {path.read_text(encoding="ascii") for path in tmp_path.iterdir()}
    assert len([*tmp_path.iterdir()]) == 5
    assert str(os.getpid()) not in found


def test_what_a_task_raises_is_raised_here_and_the_process_works_on(tmp_path: Path) -> None:
    with Workers(Noting(tmp_path), 1) as workers:
        with pytest.raises(BadInput, match="it cannot be done") as ours:
            workers.run(2 * [("refuse", 0)])
        with pytest.raises(OSError, match="No space left") as systems:
            workers.run(2 * [("refuse", 1)])
        with pytest.raises(sqlite3.DatabaseError, match="odd"):
            workers.run(2 * [("refuse", 2)])
        workers.run(2 * [("note", 1)])
    assert ours.value.hint == "do something else"
    assert (systems.value.errno, systems.value.filename) == (errno.ENOSPC, "file.npy")
    assert (tmp_path / "1").exists()


def test_a_process_that_ended_is_an_error_each_time_and_says_what_to_do(tmp_path: Path) -> None:
    with Workers(Noting(tmp_path), 1) as workers:
        for task in ("end", "note"):
            with pytest.raises(OutOfResources, match="OMP_NUM_THREADS"):
                workers.run(2 * [(task, 9)])


def test_processes_work_beside_this_one_for_a_large_corpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, passages, processes in (("1", 10**6, 0), ("3", 100, 0), ("3", 10**6, 3)):
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
        assert build_processes(passages) == processes
    for setting in ("0", "many", "-1"):
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
        with pytest.raises(BadInput, match="OMP_NUM_THREADS"):
            build_processes(0)
