"""Workspaces that are damaged for real: what the doctor finds and puts right, and that it writes nothing unasked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graph.checks import doctor
from graph.checks.doctor import examine_workspace, repair_workspace
from graph.checks.findings import Finding
from graph.checks.index_checks import compare_with_record
from graph.construction.knowledge_graph import load
from graph.errors import WorkspaceLocked, WorkspaceMissing
from graph.storage.record import RecordReader
from graph.storage.workspace import Workspace
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, publish_workspace, write_passages
from tests.damages import (
    PASSAGES,
    TRIPLES,
    damage_record,
    everything_in,
    garbage,
    problems,
    published,
    said,
    tidyings,
)

pytestmark = pytest.mark.usefixtures("no_embedder")


class TestLooking:
    def test_a_whole_workspace_is_in_order_and_nothing_is_written(self, workspace: Workspace) -> None:
        before = everything_in(workspace.root)
        examination = examine_workspace(workspace.root)
        assert everything_in(workspace.root) == before
        assert (examination.ok, examination.generation) == (True, 1)
        assert not problems(examination)
        assert not tidyings(examination)
        assert len({finding.check for finding in examination.findings}) == len(examination.findings) > 12
        (workspace.root / "record.sqlite-shm").write_bytes(b"\0" * 32768)
        before = everything_in(workspace.root)
        assert examine_workspace(workspace.root).ok
        assert everything_in(workspace.root) == before, "the index of a log was left alone"

    def test_nothing_is_written_to_what_a_killed_writer_left(self, workspace: Workspace) -> None:
        files = ("record.sqlite", "record.sqlite-wal")
        with workspace.open_record() as record:
            write_passages(record, [passage_of("ij", "Title ij", "text")], {}, HashEmbedder())
            left = {name: (workspace.root / name).read_bytes() for name in files}
        for name, content in left.items():
            (workspace.root / name).write_bytes(content)
        before = everything_in(workspace.root)
        examination = examine_workspace(workspace.root)
        assert everything_in(workspace.root) == before
        assert problems(examination) == {"published generation": True}
        assert said(examination, "passages").startswith("5 passages"), "the log is read, too"

    def test_where_there_is_no_workspace_or_no_passage(self, workspace: Workspace, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        for root in (empty, tmp_path / "nowhere"):
            for look in (examine_workspace, repair_workspace):
                with pytest.raises(WorkspaceMissing, match="mara index"):
                    look(root)
        assert not list(empty.iterdir())
        Workspace(empty).create()
        assert examine_workspace(empty).ok
        publish_workspace(workspace.root, [], removed=[passage.id for passage in PASSAGES])
        assert examine_workspace(workspace.root).ok

    def test_a_change_meanwhile_is_looked_at_again(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        looked: list[int] = []

        def publish_and_compare(folder: Path, record: RecordReader) -> Finding:
            looked.append(int(folder.name))
            if len(looked) == 1:
                publish_workspace(workspace.root, [passage_of("ij", "Title ij", "text")])
            return compare_with_record(folder, record)

        monkeypatch.setattr(doctor, "compare_with_record", publish_and_compare)
        examination = examine_workspace(workspace.root)
        assert examination.ok, problems(examination)
        assert looked == [1, 2]
        assert examination.generation == 2


class TestWriters:
    def test_the_published_generation_is_looked_at_while_a_writer_is_at_work(self, workspace: Workspace) -> None:
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            with workspace.open_record() as record:
                write_passages(record, [passage_of("ij", "Title ij", "text")], TRIPLES, HashEmbedder())
                record.mark_complete(False)
            (workspace.root / "index" / "2").mkdir()
            examination = examine_workspace(workspace.root)
            assert examination.ok
            assert not tidyings(examination)
            assert f"process {writer.process.pid}" in said(examination, "writer")
            assert "moved on" in said(examination, "published generation")

    @pytest.mark.slow
    def test_a_repair_waits_for_no_writer(self, workspace: Workspace) -> None:
        (workspace.root / "manifest.json").unlink()
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            with pytest.raises(WorkspaceLocked, match=f"process {writer.process.pid}"):
                repair_workspace(workspace.root)

    def test_what_was_committed_and_not_published_is_published(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            write_passages(record, [passage_of("ij", "Title ij", "text")], TRIPLES, HashEmbedder())
            record.mark_complete(False)
        before, done, after = repair_workspace(workspace.root)
        assert problems(before) == {"indexing run": False, "published generation": True}
        assert len(done) == 1
        assert problems(after) == {"indexing run": False}
        assert "same command" in said(after, "indexing run")
        assert [passage.id for passage in load(published(workspace)).passages] == ["ab", "cd", "ef", "gh", "ij"]


class TestTidyingUp:
    def test_what_nobody_needs_is_no_problem_and_goes(self, workspace: Workspace) -> None:
        shutil.copytree(workspace.index_folder(1), workspace.index_folder(0))
        (workspace.root / ".CURRENT.12").write_text("3\n")
        (workspace.root / ".manifest.json.7").write_text("{")
        (workspace.root / ".notes.7").write_text("the user's own")
        before, done, after = repair_workspace(workspace.root)
        assert before.ok
        assert tidyings(before) == {"older generations", "temporary files"}
        assert said(before, "temporary files").endswith(".CURRENT.12 .manifest.json.7")
        assert len(done) == 3
        assert after.ok
        assert not tidyings(after)
        assert {path.name for path in (workspace.root / "index").iterdir()} == {"1"}, "the current one stays"
        assert (workspace.root / ".notes.7").exists()


class TestWhatCannotBeRepaired:
    def test_nothing_is_derived_from_damage(self, workspace: Workspace) -> None:
        damage_record(workspace, "DELETE FROM facts WHERE rowid = 1")
        (workspace.root / "manifest.json").unlink()
        before = everything_in(workspace.root)
        examination, done, after = repair_workspace(workspace.root)
        assert problems(examination) == {"vectors": False}
        assert "mara doctor --reembed" in said(examination, "vectors")
        assert not done
        assert after == examination
        assert everything_in(workspace.root) == before

    def test_a_record_that_cannot_be_opened(self, workspace: Workspace) -> None:
        garbage("record.sqlite")(workspace)
        before = everything_in(workspace.root)
        examination, done, _ = repair_workspace(workspace.root)
        assert problems(examination) == {"record file": False}
        assert "backup" in said(examination, "record file")
        assert said(examination, "snapshot").startswith("4 passages"), "questions can still be answered"
        assert not done
        assert everything_in(workspace.root) == before
