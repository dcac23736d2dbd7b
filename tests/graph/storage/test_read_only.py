"""A workspace that may not be written is asked like any other, and nothing in it changes."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graph.errors import BadInput, DiskFull, WorkspaceDamaged
from graph.retrieve.open_index import open_index
from graph.storage.read_only import writable_copy
from graph.storage.record import Record
from graph.storage.workspace import Layer, Workspace
from tests.builders import HashEmbedder, publish_workspace
from tests.fleet import BUILT, CARS, NEWER, SHIPS, seen, whole

MOUNTED = (
    "unshare",
    "-rm",
    "sh",
    "-c",
    'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" && shift 2 && "$@"',
    "sh",
)
"""Runs a command where one folder stands read-only at another's place."""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace that the system says may not be written."""
    workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
    may = os.access

    def refused(place: Path, mode: int) -> bool:
        return may(place, mode) and not (mode & os.W_OK and Path(place).is_relative_to(workspace.root))

    monkeypatch.setattr(os, "access", refused)
    return workspace


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file was last changed, and what it holds."""
    paths = sorted(folder.rglob("*"))
    return {str(path): (path.stat().st_mtime_ns, b"" if path.is_dir() else path.read_bytes()) for path in paths}


def test_it_is_asked_and_nothing_in_it_changes(kept: Workspace) -> None:
    before = state_of(kept.root)
    index = open_index(kept.root, HashEmbedder())
    assert seen(index) == whole(CARS)
    index.close()
    assert state_of(kept.root) == before


def test_what_a_writer_left_in_its_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
    with workspace.open_record() as writer:
        writer.mark_complete(False)
        kept = Path(shutil.copytree(workspace.root, tmp_path / "kept", ignore=shutil.ignore_patterns("*-shm")))
    assert (kept / "record.sqlite-wal").stat().st_size > 0
    monkeypatch.setattr(os, "access", lambda place, mode: not Path(place).is_relative_to(kept))
    before = state_of(kept)
    with Record(kept / "record.sqlite") as record:
        assert not record.complete
    assert state_of(kept) == before


def test_one_that_was_left_between_commit_and_publication_answers_as_it_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
    with workspace.open_record() as record:
        record.advance_generation()
    monkeypatch.setattr(os, "access", lambda place, mode: not Path(place).is_relative_to(workspace.root))
    index = open_index(workspace.root, HashEmbedder())
    assert (seen(index), index.complete) == (whole(CARS), False)
    index.close()


def test_writing_it_is_refused_by_name(kept: Workspace) -> None:
    before = state_of(kept.root)
    with pytest.raises(BadInput, match="may not be written"), kept.writing():
        pytest.fail("it was written")
    with kept.open_record() as record, pytest.raises(BadInput, match="cannot be opened for writing"):
        record.mark_complete(False)
    assert state_of(kept.root) == before


def test_one_whose_index_is_missing_is_to_be_published_elsewhere(kept: Workspace) -> None:
    shutil.rmtree(kept.root / "index")
    with pytest.raises(WorkspaceDamaged, match="Publish it again where it may be written"):
        open_index(kept.root, HashEmbedder())


def test_without_room_for_copies_it_says_so(kept: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(BadInput, match="TMPDIR"):
        open_index(kept.root, HashEmbedder())


def test_a_copy_may_be_written_whatever_its_original_may_be(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("text")
    for path in (tmp_path / "a" / "b" / "c", tmp_path / "a" / "b"):
        path.chmod(0o555)
    with writable_copy(tmp_path / "a") as copy:
        copied = Path(copy) / "b" / "c"
        assert copied.read_text() == "text"
        assert all(path.stat().st_mode & 0o200 for path in (copied, copied.parent))


@pytest.mark.parametrize("store", ["chroma", "mapped"])
def test_a_copy_has_what_opening_needs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.setenv("MARA_VECTORS", store)
    monkeypatch.setattr("graph.publish.generation_vectors._LARGE", 1)
    publish_workspace(tmp_path / "workspace", CARS, BUILT)
    workspace = publish_workspace(tmp_path / "workspace", SHIPS[:1], BUILT)
    layer = Layer.load(workspace.index_folder(workspace.current() or 0))
    assert layer
    assert layer.base != workspace.current(), "it lies over another one"
    kept = Workspace(tmp_path / "kept")
    for generation in (layer.base, workspace.current() or 0):
        shutil.copytree(workspace.index_folder(generation), kept.index_folder(generation))
        (kept.index_folder(generation) / "held.db").unlink(missing_ok=True)
    for path in (workspace.record_path, workspace.root / "CURRENT"):
        shutil.copy(path, kept.root)
    shutil.rmtree(workspace.root)
    monkeypatch.setattr(os, "access", lambda place, mode: not Path(place).is_relative_to(kept.root))
    before = state_of(kept.root)
    index = open_index(kept.root, HashEmbedder())
    assert seen(index) == whole([*CARS, *SHIPS[:1]])
    index.close()
    assert state_of(kept.root) == before


@pytest.mark.slow
def test_on_a_file_system_that_is_mounted_read_only(tmp_path: Path) -> None:
    mount = tmp_path / "mounted"
    mount.mkdir()
    if subprocess.run([*MOUNTED, tmp_path, mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
    before = state_of(workspace.root)
    program = (
        "import pathlib, sys; from graph.retrieve.open_index import open_index\n"
        "from tests.builders import HashEmbedder\n"
        "from tests.fleet import CARS, seen, whole\n"
        "index = open_index(pathlib.Path(sys.argv[1]), HashEmbedder())\n"
        "print(seen(index) == whole(CARS)); index.close()"
    )
    asked: list[str | Path] = [*MOUNTED, workspace.root, mount, sys.executable, "-c", program, mount]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert done.stdout == "True\n", done.stderr
    assert state_of(workspace.root) == before
    publish_workspace(workspace.root, NEWER, BUILT)


@contextmanager
def no_room() -> Iterator[None]:
    """Every file that grows meets what it meets on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.sqlite_file
def test_a_record_is_read_and_not_written_where_the_disk_has_no_room_for_its_log(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
    for _ in range(2):  # What the first opening leaves half made does not keep the second one from reading.
        with no_room(), workspace.open_record() as record:
            assert record.count_passages() == len(CARS)
            with pytest.raises(DiskFull), record.transaction():
                record.set_note("a", "b")
        with no_room(), pytest.raises(DiskFull):
            workspace.claim()
    workspace.claim().release()
