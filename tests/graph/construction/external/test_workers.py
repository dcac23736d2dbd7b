from __future__ import annotations

import os
from pathlib import Path

import pytest

from graph.construction.external.workers import Workers
from graph.errors import BadInput, OutOfResources


def note_process(path: Path) -> None:
    path.write_text(str(os.getpid()), encoding="ascii")


def refuse(hint: str) -> None:
    raise BadInput("it cannot be done", hint)


def end(status: int) -> None:
    os._exit(status)


def test_without_processes_this_one_works(tmp_path: Path) -> None:
    with Workers(0) as workers:
        workers.run(note_process, [tmp_path / "a"])
    assert (tmp_path / "a").read_text(encoding="ascii") == str(os.getpid())


def test_every_task_is_done_by_another_process(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(5)]
    with Workers(2) as workers:
        workers.run(note_process, paths)
    assert str(os.getpid()) not in {path.read_text(encoding="ascii") for path in paths}


def test_what_a_task_raises_is_raised_here_and_the_process_works_on(tmp_path: Path) -> None:
    with Workers(1) as workers:
        with pytest.raises(BadInput, match="it cannot be done") as refused:
            workers.run(refuse, ["do something else"])
        assert refused.value.hint == "do something else"
        workers.run(note_process, [tmp_path / "a"])
    assert (tmp_path / "a").exists()


def test_a_process_that_ends_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(OutOfResources, match="MARA_BUILD_PROCESSES"), Workers(1) as workers:
        workers.run(end, [9])
