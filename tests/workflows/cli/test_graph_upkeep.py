"""`mara graph prune`: what the edges of concepts are worth, and hiding those that are worth little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.relationships.record import RelationshipRecord
from tests.workflows.command_line import Mara
from tests.workflows.workspaces import BRANDT, SUND, VELM, Indexer

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture
def workspace(index: Indexer, root: Path) -> Path:
    index([VELM, SUND])
    return root


def values(mara: Mara, root: Path, *options: str) -> dict[str, dict[str, Any]]:
    return {each["type"]: each for each in mara("graph", "prune", *options, "-w", root, "--json").json["values"]}


def edges(root: Path) -> dict[str, int]:
    with RelationshipRecord.of(root) as record:
        counts = record.counts()
        return {of: counts[of] for of in ("EXPLAINS", "RELATED_TO")}


def test_edges_that_are_worth_little_are_hidden_and_come_back(mara: Mara, index: Indexer, workspace: Path) -> None:
    before, all_edges = values(mara, workspace), edges(workspace)
    bar = before["EXPLAINS"]["quartiles"][2]
    assert [each["pruned"] for each in before.values()] == [0, 0]
    pruned = values(mara, workspace, "--below", str(bar))
    assert 0 < pruned["EXPLAINS"]["pruned"] < pruned["EXPLAINS"]["edges"]
    assert edges(workspace) == {of: all_edges[of] - pruned[of]["pruned"] for of in all_edges}
    index([VELM, SUND, BRANDT])
    assert values(mara, workspace)["EXPLAINS"]["pruned"] > 0, "later indexes are pruned, too"
    assert [each["pruned"] for each in values(mara, workspace, "--restore").values()] == [0, 0]
    assert edges(workspace)["EXPLAINS"] > all_edges["EXPLAINS"]


def test_values_are_shown_by_type(mara: Mara, workspace: Path) -> None:
    lines = mara("graph", "prune", "-w", workspace).out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["EXPLAINS", "RELATED_TO"]
    assert mara("graph", "prune", "--below", "0.5", "--restore", "-w", workspace).code == 2
    assert mara("graph", "prune", "--below", "1.5", "-w", workspace).code == 2
