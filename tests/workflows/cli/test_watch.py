"""`mara sync --watch`: folders are followed, whatever happens to them, to the workspace and to its other writers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue

import pytest

from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder
from tests.workflows.command_line import Mara
from tests.workflows.workspaces import ask
from workflows.cli import watch
from workflows.indexing import index_sources
from workflows.indexing_run.report import IndexReport
from workflows.runtime.resources import close_indexes

VELM, SUND, KARV = "Velm is a river in Ostra.", "Lake Sund was dammed in 1911.", "Karv is a harbour in Ostra."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    write(place / "velm.txt", VELM)
    return place


def write(path: Path, text: str) -> None:
    """As editors do: beside it, under a hidden name, and then in its place."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_name(f".{path.name}.new")
    hidden.write_text(text, encoding="utf-8")
    hidden.replace(path)


class Stopped(Exception):
    """Ends the following of a test."""


class Following:
    """A folder that is followed in a thread.

    Attributes:
        syncs: the reports of all syncs, as they come.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.syncs: Queue[IndexReport] = Queue()
        self._folder, self._root, self._is_over = folder, root, False
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def next(self) -> tuple[int, int, int]:
        """How many passages the next sync adds, replaces and removes."""
        report = self.syncs.get(timeout=60)
        return report.added, report.replaced, report.removed

    def end(self) -> None:
        self._is_over = True
        write(self._folder / "end.txt", "The end.")
        self._thread.join()

    def _follow(self) -> None:
        with suppress(Stopped):
            watch.follow([self._folder], self._sync, as_json=False)

    def _sync(self) -> IndexReport:
        if self._is_over:
            raise Stopped
        report = index_sources([self._folder], self._root, sync=True)
        self.syncs.put(report)
        return report


Follow = Callable[..., Following]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Queue[str]:
    """Messages beside the syncs, as they come."""
    lines: Queue[str] = Queue()
    monkeypatch.setattr(watch, "say", lines.put)
    return lines


@pytest.fixture
def follow(
    folder: Path, root: Path, embedder: HashEmbedder, said: Queue[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Follow]:
    monkeypatch.setattr(watch, "_LOOK_S", 0.2)
    begun: list[Following] = []

    def begin(workspace: Path = root) -> Following:
        begun.append(Following(folder, workspace))
        assert said.get(timeout=60) == f"Watching {folder} (Ctrl-C to stop)"
        return begun[-1]

    yield begin
    for each in begun:
        each.end()


def test_files_that_come_change_and_go_are_followed(folder: Path, follow: Follow) -> None:
    following = follow()
    assert following.next() == (1, 0, 0)
    write(folder / "sund.txt", SUND)
    assert following.next() == (1, 0, 0)
    write(folder / "sund.txt", f"{SUND} The dam broke in 1950.")
    assert following.next() == (1, 0, 1)
    (folder / "sund.txt").unlink()
    assert following.next() == (0, 0, 1)


def test_folders_that_come_and_go_whole_are_followed(folder: Path, follow: Follow, tmp_path: Path) -> None:
    following = follow()
    following.next()
    write(tmp_path / "towns" / "karv.txt", KARV)
    write(tmp_path / "towns" / "sund.txt", SUND)
    (tmp_path / "towns").rename(folder / "towns")
    assert following.next() == (2, 0, 0)
    write(folder / "towns" / "karv.txt", f"{KARV} It has a tower.")
    assert following.next() == (1, 0, 1)
    (folder / "towns").rename(tmp_path / "towns")
    assert following.next() == (0, 0, 2)


def test_a_folder_that_is_removed_is_told_once_removes_nothing_and_is_followed_when_it_is_back(
    folder: Path, follow: Follow, said: Queue[str], tmp_path: Path
) -> None:
    following = follow()
    following.next()
    shutil.copytree(folder, tmp_path / "back")
    folder.rename(tmp_path / "gone")
    assert "does not exist" in said.get(timeout=60)
    (tmp_path / "back").rename(folder)
    assert following.next() == (0, 0, 0)
    write(folder / "sund.txt", SUND)
    assert following.next() == (1, 0, 0)
    assert said.empty()


def test_while_another_process_writes_it_waits_and_says_so_once(
    folder: Path, root: Path, follow: Follow, said: Queue[str]
) -> None:
    following = follow()
    following.next()
    with Workspace(root).writing():
        write(folder / "sund.txt", SUND)
        assert "is being written by" in said.get(timeout=60)
    assert following.next() == (1, 0, 0)
    assert said.empty()


def test_a_file_that_cannot_be_read_keeps_its_passages_and_the_others_are_followed(
    folder: Path, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    following = follow()
    following.next()
    (folder / "velm.txt").write_bytes(b"\0")
    write(folder / "sund.txt", SUND)
    while (report := following.syncs.get(timeout=60)).passages < 2:
        pass
    assert (report.refused_count, report.removed) == (1, 0)
    write(folder / "velm.txt", f"{VELM} It is long.")
    assert following.next() == (1, 0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"refused: {folder}/velm.txt") for line in lines)


def test_a_workspace_within_the_folder_is_not_followed(folder: Path, follow: Follow) -> None:
    following = follow(folder / "workspace")
    following.next()
    before = watch._state_of([folder])
    index_sources([folder], folder / "workspace", sync=True)
    (folder / "workspace" / "notes.txt").write_text(SUND, encoding="utf-8")
    assert watch._state_of([folder]) == before


def test_what_a_sync_does_not_read_is_no_change(folder: Path) -> None:
    before = watch._state_of([folder])
    for name in (".hidden.txt", "4913", "velm.txt~", "picture.png", ".git/notes.txt"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("new", encoding="utf-8")
    (folder / "dangling.txt").symlink_to(folder / "nothing")
    (folder / "velm.txt").read_text(encoding="utf-8")
    assert watch._state_of([folder]) == before
    write(folder / "velm.txt", VELM)
    assert watch._state_of([folder]) != before


def test_what_cannot_be_used_at_first_ends_the_command(mara: Mara, folder: Path, root: Path) -> None:
    write(folder / "prices.csv", "part,price\nbolt,3\n")
    done = mara("sync", folder, "--watch", "--field", "title=nope", "-w", root)
    assert (done.code, done.out, root.exists()) == (2, "", False)
    assert "a column 'nope'" in " ".join(done.err.split())


def test_only_folders_can_be_watched_and_not_by_a_dry_run(mara: Mara, folder: Path, root: Path) -> None:
    for name in ("velm.txt", "nothing"):
        done = mara("sync", folder, folder / name, "--watch", "-w", root, "--json")
        assert (done.code, root.exists()) == (2, False)
        assert done.json["error"]["message"] == f"{folder / name} cannot be watched: it is no folder"
    done = mara("sync", folder, "--watch", "--dry-run", "-w", root)
    assert (done.code, "--watch does not go with --dry-run" in done.err) == (2, True)


@contextmanager
def watched(folder: Path, root: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command."""
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("mara")), "sync", str(folder), "--watch", "-w", str(root), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_questions_find_what_came_and_ctrl_c_ends_it(folder: Path, root: Path) -> None:
    with watched(folder, root) as process:
        assert process.stdout
        assert "1 passage in" in process.stdout.readline()
        assert "1911" not in ask(root, "When was Lake Sund dammed?")["answer"]
        process.send_signal(signal.SIGSTOP)
        for number in range(200):
            (folder / f"harbour {number}.txt").write_text(f"Harbour {number} was built in {1700 + number}.")
        process.send_signal(signal.SIGCONT)
        assert "200 added" in process.stdout.readline()
        write(folder / "sund.txt", SUND)
        assert "1 added" in process.stdout.readline()
        assert "1911" in ask(root, "When was Lake Sund dammed?")["answer"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    close_indexes()
    assert (process.returncode, out) == (130, "")
    assert err == (
        f"Watching {folder} (Ctrl-C to stop)\nStopped. What was committed is kept; run the same command to go on.\n"
    )
