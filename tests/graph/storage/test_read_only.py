"""A workspace that may not be written is asked like any other, and nothing in it changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Layer, Workspace
from tests.builders import HashEmbedder, publish_workspace
from tests.fleet import BUILT, CARS, SHIPS, seen, whole


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


def test_writing_it_is_refused_by_name(kept: Workspace) -> None:
    before = state_of(kept.root)
    with pytest.raises(BadInput, match="may not be written"), kept.writing():
        pytest.fail("it was written")
    with kept.open_record() as record, pytest.raises(BadInput, match="cannot be opened for writing"):
        record.mark_complete(False)
    assert state_of(kept.root) == before


def test_a_copy_has_what_opening_needs_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
