from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from graph.errors import WorkspaceLocked, WorkspaceMissing
from graph.relationships.moving import move_to_postgres
from graph.storage.lease import claim_lease, holder_of
from graph.storage.workspace import Workspace
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, publish_workspace, write_passages


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "w", [passage_of("a", "A", "text")]).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path, database: str) -> Workspace:
    """A workspace of the test's own, with its record in either database."""
    root = Path(shutil.copytree(template, tmp_path / "workspace"))
    if database == "postgres":
        move_to_postgres(root)
    return Workspace(root)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def claim(workspace: Workspace, clock: Clock) -> object:
    return claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)


class TestOwner:
    def test_a_second_writer_of_the_same_process_is_refused_too(self, workspace: Workspace) -> None:
        told = rf"written by process {os.getpid()} on .*(299|300) s"
        with workspace.writing(), pytest.raises(WorkspaceLocked, match=told):
            workspace.claim()

    def test_it_is_told_while_it_lasts_and_nobody_after_it(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            assert holder_of(record) == ""
            lease = workspace.claim()
            assert holder_of(record).startswith(f"process {os.getpid()} on ")
            lease.release()
            assert holder_of(record) == ""

    @pytest.mark.parametrize(
        "note", ["rubbish", "[]", '{"token": "t", "owner": "o", "expires": "soon", "locked": true}']
    )
    def test_a_lease_that_cannot_be_read_keeps_nobody_out(self, workspace: Workspace, note: str) -> None:
        with workspace.open_record() as record:
            with record.transaction():
                record.set_note("writer", note)
            assert holder_of(record) == ""
            workspace.claim().release()

    def test_where_there_is_no_workspace_there_is_nothing_to_claim(self, tmp_path: Path) -> None:
        with pytest.raises(WorkspaceMissing):
            Workspace(tmp_path / "nowhere").claim()

    def test_a_dead_writer_keeps_nobody_waiting(self, workspace: Workspace) -> None:
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            writer.kill()
            workspace.claim().release()


class TestExpiry:
    def test_a_writer_that_hangs_loses_the_workspace_when_its_lease_ends(
        self, workspace: Workspace, clock: Clock
    ) -> None:
        hung = claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)
        clock.now += 99
        with pytest.raises(WorkspaceLocked, match=r"its lease ends in 1 s"):
            claim(workspace, clock)
        clock.now += 2
        successor = claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)
        with pytest.raises(WorkspaceLocked, match=r"lost the workspace to process \d+"):
            hung.renew()
        hung.release()
        with pytest.raises(WorkspaceLocked, match="is being written by process"):
            claim(workspace, clock)
        successor.release()
        claim(workspace, clock)

    def test_renewing_puts_the_end_off(self, workspace: Workspace, clock: Clock) -> None:
        lease = claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)
        for _ in range(5):
            clock.now += 60
            lease.renew()
            with pytest.raises(WorkspaceLocked):
                claim(workspace, clock)

    def test_a_commit_renews_it(self, workspace: Workspace, clock: Clock) -> None:
        lease = claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)
        with workspace.open_record(lease) as record:
            for key in "bcd":
                clock.now += 60
                write_passages(record, [passage_of(key, key, "text")], {}, HashEmbedder())
        with pytest.raises(WorkspaceLocked):
            claim(workspace, clock)

    def test_a_block_that_keeps_it_renews_it_although_it_commits_nothing(
        self, workspace: Workspace, clock: Clock
    ) -> None:
        lease = claim_lease(workspace.record_path, workspace.root / "lock", 1.0, clock)
        with workspace.open_record(lease) as record, record.kept():
            clock.now += 0.9
            pause = threading.Event()
            while "for 1 s at most" not in holder_of(record, clock):
                pause.wait(0.02)
            clock.now += 0.9
            with pytest.raises(WorkspaceLocked):
                claim(workspace, clock)
        clock.now += 1.1
        claim(workspace, clock)

    def test_what_took_over_from_a_hung_process_is_not_taken_for_dead_when_that_process_dies(
        self, workspace: Workspace, clock: Clock
    ) -> None:
        hung = claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)
        clock.now += 101
        claim(workspace, clock)
        hung.release()  # the system gives its lock file free, as at its death
        with pytest.raises(WorkspaceLocked, match="is being written"):
            claim(workspace, clock)


class TestFence:
    def test_a_writer_that_lost_its_lease_commits_nothing_and_publishes_nothing(
        self, workspace: Workspace, clock: Clock
    ) -> None:
        lease = claim_lease(workspace.record_path, workspace.root / "lock", 100, clock)
        with workspace.open_record(lease) as record:
            clock.now += 101
            claim(workspace, clock)
            with pytest.raises(WorkspaceLocked, match="Run the same command again"):
                write_passages(record, [passage_of("b", "B", "text")], {}, HashEmbedder())
            with pytest.raises(WorkspaceLocked):
                workspace.publish(record)
            assert record.count_passages() == 1
        assert workspace.current() == 1

    def test_a_stopped_process_that_wakes_up_finds_itself_shut_out(self, workspace: Workspace) -> None:
        program = """
import sys
from pathlib import Path
from graph.storage.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
lease = workspace.claim(0.0)
print("claimed")
input()
try:
    lease.renew()
except Exception as fault:
    print(type(fault).__name__)
"""
        with Child(program, workspace.root) as writer:
            assert writer.hear() == "claimed"
            os.kill(writer.process.pid, signal.SIGSTOP)
            successor = workspace.claim()
            os.kill(writer.process.pid, signal.SIGCONT)
            writer.tell()
            assert writer.hear() == "WorkspaceLocked"
            successor.release()
