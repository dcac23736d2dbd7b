"""Exports: what another program, with scipy and without mara, makes of a workspace's relation matrices."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput, WorkspaceMissing
from graph.storage.workspace import Workspace
from tests.workflows.workspaces import KARV, Indexer
from workflows.admin.export import export_matrices


@pytest.mark.usefixtures("embedder")
def test_nothing_is_written_into_the_workspace(index: Indexer, root: Path) -> None:
    index([KARV])
    (root.parent / "link").symlink_to(root)
    before = sorted(root.rglob("*"))
    for place in (".", "export", "index/7", "../link/export"):
        with pytest.raises(BadInput, match="workspace"):
            export_matrices(root, root / place)
        assert sorted(root.rglob("*")) == before, place


def test_without_a_workspace_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="mara index"):
        export_matrices(tmp_path / "none", tmp_path / "export")
    Workspace(tmp_path / "empty").create()
    with pytest.raises(WorkspaceMissing, match="no passage"):
        export_matrices(tmp_path / "empty", tmp_path / "export")
    with pytest.raises(BadInput, match="path"):
        export_matrices(tmp_path / "empty", Path("\x00"))
    assert not (tmp_path / "export").exists()
    assert not (tmp_path / "none").exists()
