"""The files that commands write for a user: none replaces a file of a workspace or of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.storage.workspace import Workspace
from tests.workflows.evaluation.compared_rows import row, write_run
from workflows.explaining import check_target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workspace, a batch, a run of an evaluation, and links into the workspace."""
    write_run(tmp_path / "run", {"mara": [row("q", "a b")]})
    Workspace(tmp_path / "ws").create()
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / "batch.json").write_text("{}", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    (tmp_path / "file.json").symlink_to(tmp_path / "ws" / "manifest.json")
    return tmp_path


def test_an_explanation_is_written_into_neither(folder: Path) -> None:
    cases = [
        ("run/run.json", "lies in the folder of a run"),
        ("run/metrics.json", "lies in the folder of a run"),
        ("batch/answers.json", "lies in the folder of a run"),
        ("run/../run/results.json", "lies in the folder of a run"),
        ("ws/manifest.json", "lies in a workspace"),
        ("link/index/new.JSON", "lies in a workspace"),
        ("file.json", "lies in a workspace"),
        ("run/results.jsonl", "does not end in"),
        ("nowhere/new.json", "cannot be written"),
    ]
    for out, said in cases:
        with pytest.raises(BadInput, match=said):
            check_target(folder / out)
