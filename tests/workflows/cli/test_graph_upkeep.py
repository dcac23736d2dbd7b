"""`mara graph prune`, `prune` and `restore`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflows.command_line import Mara
from tests.workflows.workspaces import BRANDT, SUND, VELM, Indexer

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture
def workspace(index: Indexer, root: Path) -> Path:
    index([VELM, SUND, BRANDT])
    return root


def values(mara: Mara, root: Path) -> dict[str, dict[str, int]]:
    summary = json.loads(mara("graph", "prune", "-w", root, "--json").out)
    return {each["type"]: each for each in summary["values"]}


def test_what_would_go_goes_and_comes_back(mara: Mara, workspace: Path) -> None:
    before = values(mara, workspace)
    outcome = mara("graph", "prune", "--below", "0.45", "--dry-run", "-w", workspace)
    assert outcome.code == 0
    assert "would be pruned" in outcome.out
    assert values(mara, workspace) == before
    done = json.loads(mara("graph", "prune", "--below", "0.45", "-w", workspace, "--json").out)
    after = values(mara, workspace)
    for each in done["types"]:
        assert after[each["type"]]["pruned"] == each["pruned"]
        assert after[each["type"]]["edges"] == before[each["type"]]["edges"] - each["pruned"]
    assert sum(each["pruned"] for each in done["types"]) > 0
    assert "pruned edges restored" in mara("graph", "prune", "--restore", "-w", workspace).out
    assert values(mara, workspace) == before


def test_what_went_is_counted(mara: Mara, workspace: Path) -> None:
    lines = mara("graph", "prune", "-w", workspace).out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["EXPLAINS", "RELATED_TO"]
    mara("graph", "prune", "--below", "0.45", "-w", workspace)
    summary = mara("show", "-w", workspace, "--json").json["relationships"]
    assert summary["Document"] == summary["DocumentChunk"] == 3
    assert summary["pruned"] == sum(each["pruned"] for each in values(mara, workspace).values())
