from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from graph.errors import WorkspaceLocked
from graph.storage.lock import WriterLock, is_being_written, writer_of
from graph.storage.postgres import SessionLock
from graph.storage.workspace import Workspace
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, publish_workspace, write_passages
from workflows.admin.upkeep import move_record


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "w", [passage_of("a", "A", "text")]).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path, database: str) -> Workspace:
    """A workspace of the test's own, with its record in either database."""
    root = Path(shutil.copytree(template, tmp_path / "workspace"))
    if database == "postgres":
        move_record(root)
    return Workspace(root)


class TestWriter:
    def test_a_second_writer_of_the_same_process_is_refused_too(self, workspace: Workspace) -> None:
        told = rf"written by process {os.getpid()} on .*stop that process"
        with workspace.writing(), pytest.raises(WorkspaceLocked, match=told):
            workspace.claim()

    def test_it_is_told_while_it_lasts_and_nobody_after_it(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            assert (writer_of(record), is_being_written(workspace.record_path)) == ("", False)
            with workspace.writing():
                assert writer_of(record).startswith(f"process {os.getpid()} on ")
                assert is_being_written(workspace.record_path)
            assert (writer_of(record), is_being_written(workspace.record_path)) == ("", False)

    def test_a_dead_writer_keeps_nobody_waiting(self, workspace: Workspace) -> None:
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            writer.kill()
            with workspace.open_record() as record:
                assert writer_of(record).startswith(f"process {writer.process.pid} on ")
            assert not is_being_written(workspace.record_path)
            workspace.claim().release()

    def test_a_writer_that_is_stopped_keeps_the_workspace_until_it_ends(self, workspace: Workspace) -> None:
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            os.kill(writer.process.pid, signal.SIGSTOP)
            with pytest.raises(WorkspaceLocked, match=f"process {writer.process.pid} "):
                workspace.claim()
            writer.kill()
            workspace.claim().release()

    def test_it_is_given_free_from_any_thread(self, workspace: Workspace) -> None:
        lock = workspace.claim()
        thread = threading.Thread(target=lock.release)
        thread.start()
        thread.join()
        workspace.claim().release()


class TestFence:
    def test_a_writer_that_lost_its_lock_commits_nothing_and_publishes_nothing(self, workspace: Workspace) -> None:
        lock = workspace.claim()
        with workspace.open_record(lock) as record:
            _lose(lock)
            with workspace.writing():
                with pytest.raises(WorkspaceLocked, match="Run the same command again"):
                    write_passages(record, [passage_of("b", "B", "text")], {}, HashEmbedder())
                with pytest.raises(WorkspaceLocked):
                    workspace.publish(record)
                lock.release()
                assert writer_of(record), "the note is its successor's"
            assert record.count_passages() == 1
        assert workspace.current() == 1


def _lose(lock: WriterLock) -> None:
    """Let a lock be gone, as with its connection to the server."""
    held = lock._lock
    if isinstance(held, SessionLock):
        assert held._db is not None
        held._db.close()
    else:
        held.release()
