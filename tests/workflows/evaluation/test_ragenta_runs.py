"""Runs of RAGentA's systems: their rows and figures, with and without a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.workflows.evaluation.river_run import Orders, Runs, order_of, run_order
from tests.workflows.workspaces import use_embedder
from workflows.evaluation import ask_system
from workflows.ragenta import graph
from workflows.runs.run_folder import Run

SYSTEMS = ("ragenta", "ragenta+walk", "basic-rag", "dense+check_claims=true")
PARTLY, FULLY = "PARTIALLY ANSWERED", "FULLY ANSWERED"


@pytest.fixture(scope="module")
def offline(rivers: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of them without a model, read by several tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        use_embedder(patch, HashEmbedder())
        return run_order(patch, order_of(rivers, tmp_path_factory.mktemp("offline"), systems=SYSTEMS))


def test_rows_hold_the_judging_and_checking_that_a_system_does(offline: Run) -> None:
    for row in offline.results["ragenta"]:
        assert row["judge_outcome"] in ("kept", "nothing supports")
        assert set(row["written_from"]) <= set(row["retrieved_ids"])
        assert (row["judge_outcome"] == "kept") == bool(row["written_from"])
        assert row["coverage"] in ("EVIDENCE, NOT JUDGED", PARTLY, "NOT ANSWERED")
    for row in offline.results["basic-rag"]:
        assert (row["judge_outcome"], row["claims"], row["coverage"]) == ("not judged", None, None)
        assert row["written_from"] == row["retrieved_ids"][:10]
    for row in offline.results["dense+check_claims=true"]:
        assert row["judge_outcome"] is None
        assert (row["claims"] is None) == (row["coverage"] is None)
    assert {row["model_calls"] for rows in offline.results.values() for row in rows} == {0}


def test_passages_of_follow_ups_are_no_part_of_the_ranking_and_may_be_written_from(
    run: Runs, order: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LastByFollowUp:
        def invoke(self, *asked: Any, **how: Any) -> dict[str, Any]:
            result: dict[str, Any] = graph.invoke(*asked, **how)
            last = {**result["passages"][-1], "follow_up": 1}
            return {**result, "passages": [*result["passages"][:-1], last], "written_from": [last["number"]]}

    monkeypatch.setattr(ask_system, "graph_of", lambda workflow: LastByFollowUp())
    (row,) = run(order(systems=("basic-rag",), limit=1)).results["basic-rag"]
    assert len(row["retrieved_ids"]) == len(row["retrieved_scores"]) > 0
    assert not set(row["written_from"]) & set(row["retrieved_ids"])
