from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from graph.construction.external.workers import Workers
from graph.errors import BadInput, OutOfResources


def note_process(path: Path) -> None:
    path.write_text(str(os.getpid()), encoding="ascii")


def refuse(error: str, hint: str) -> None:
    if error == "ours":
        raise BadInput("it cannot be done", hint)
    if error == "the system's":
        raise OSError(errno.ENOSPC, "No space left on device", hint)
    raise KeyError(hint)


def end() -> None:
    os._exit(9)


def test_without_processes_this_one_works(tmp_path: Path) -> None:
    with Workers(0) as workers:
        workers.run([partial(note_process, tmp_path / "a")])
    assert (tmp_path / "a").read_text(encoding="ascii") == str(os.getpid())


def test_every_task_is_done_by_another_process(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(5)]
    with Workers(2) as workers:
        workers.run(partial(note_process, path) for path in paths)
    assert str(os.getpid()) not in {path.read_text(encoding="ascii") for path in paths}


def test_what_a_task_raises_is_raised_here_and_the_process_works_on(tmp_path: Path) -> None:
    with Workers(1) as workers:
        with pytest.raises(BadInput, match="it cannot be done") as ours:
            workers.run([partial(refuse, "ours", "do something else")])
        with pytest.raises(OSError, match="No space left") as systems:
            workers.run([partial(refuse, "the system's", "file.npy")])
        with pytest.raises(RuntimeError, match="KeyError: 'odd'"):
            workers.run([partial(refuse, "", "odd")])
        workers.run([partial(note_process, tmp_path / "a")])
    assert ours.value.hint == "do something else"
    assert (systems.value.errno, systems.value.filename) == (errno.ENOSPC, "file.npy")
    assert (tmp_path / "a").exists()


def test_a_process_that_ends_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OutOfResources, match="MARA_BUILD_PROCESSES"), Workers(1) as workers:
        workers.run([partial(end)])
