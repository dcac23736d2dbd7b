"""Exports: what another program, with scipy and without mara, makes of a workspace's relation matrices."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
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
