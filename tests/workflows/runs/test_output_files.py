"""The files that commands write for a user: none of them replaces a file of a workspace or of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.storage.workspace import Workspace
from tests.workflows.command_line import Mara
from tests.workflows.evaluation.compared_rows import TEMPORAL, row, write_run
from workflows.explaining import check_target

BETA = {"entity_entity": TEMPORAL, "entity_passage": {"PRIMARY": 0.6, "SECONDARY": 0.3, "PERIPHERAL": 0.1}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workspace, a batch, a run of an evaluation, and links into the workspace."""
    write_run(tmp_path / "run", {"mara": [row("q", "a b", relation_factors=BETA)]})
    Workspace(tmp_path / "ws").create()
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / "batch.json").write_text("{}", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    (tmp_path / "file.json").symlink_to(tmp_path / "ws" / "manifest.json")
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_overwrites_nothing_of_a_workspace_or_a_run(mara: Mara, folder: Path) -> None:
    cases = [
        ("run/results.json", "does not end in .jsonl"),
        ("run/new.jsonl", "lies in the folder of a run"),
        ("batch/answers.jsonl", "lies in the folder of a run"),
        ("run/../run/results.jsonl", "lies in the folder of a run"),
        ("ws/new.jsonl", "lies in a workspace"),
        ("link/index/new.JSONL", "lies in a workspace"),
        ("nowhere/new.jsonl", "cannot be written"),
        (f"{'n' * 235}.jsonl", "cannot be written"),
    ]
    before = contents(folder)
    for out, said in cases:
        done = mara("eval", "export", "--beta", folder / "run", "--out", folder / out)
        assert (done.code, said in " ".join(done.err.split())) == (2, True), out
    for out in ("ws/page.md", "run/report.md"):
        assert mara("eval", "compare", folder / "run", folder / "run", "--out", folder / out).code == 2, out
    assert contents(folder) == before


def test_an_explanation_is_written_into_neither(folder: Path) -> None:
    for out in ("ws/manifest.json", "run/run.json", "run/metrics.json", "file.json"):
        with pytest.raises(BadInput, match="lies in"):
            check_target(folder / out)
