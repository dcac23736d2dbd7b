"""Runs of RAGentA's systems: their rows and figures, with and without a model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.evaluation.river_run import QUESTIONS, Orders, Runs, order_of, rows_in, run_order
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
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


def test_each_system_answers_in_its_workflow_and_mode(offline: Run) -> None:
    asked = {name: {(row["workflow"], row["mode"]) for row in rows} for name, rows in offline.results.items()}
    assert asked == {
        "ragenta": {("ragenta", "hybrid")},
        "ragenta+walk": {("ragenta", "mara")},
        "basic-rag": {("ragenta", "hybrid")},
        "dense+check_claims=true": {("mara", "dense")},
    }
    assert all(row["failed"] is None for rows in offline.results.values() for row in rows)
    assert {row["ranked_by"] for row in offline.results["ragenta+walk"]} == {"walk"}
    assert len({tuple(row) for row in rows_in(offline.folder / "results.jsonl")}) == 1
    assert offline.settings["systems"]["basic-rag"]["context"]["judge_passages"] is False


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


def test_the_hybrid_of_either_is_that_of_the_mode(run: Runs, order: Orders, tmp_path: Path) -> None:
    systems = ("hybrid", "ragenta", "basic-rag+alpha=1", "dense", "ragenta+alpha=0", "sparse")
    done = run(order(systems=systems, retrieval_only=True, out=tmp_path / "retrieval"))
    ids = {name: [row["retrieved_ids"] for row in rows] for name, rows in done.results.items()}
    assert ids["ragenta"] == ids["hybrid"]
    assert ids["basic-rag+alpha=1"] == ids["dense"]
    assert ids["ragenta+alpha=0"] == ids["sparse"]
    assert {row["workflow"] for rows in done.results.values() for row in rows} == {"retrieval"}
    assert {row["written_from"] is None for rows in done.results.values() for row in rows} == {True}


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


def material_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request quotes."""
    material: dict[str, Any] = json.loads(str(body["messages"][1]["content"]).splitlines()[2])
    return material


def script(follow_up: str) -> dict[str, Any]:
    """Keep the passages on Lake Sund, cite the first, and ask one follow-up question that no passage supports."""

    def judge(body: Mapping[str, Any]) -> str:
        asked = material_of(body)
        return "Yes 0.9" if "Sund" in asked["text"] and asked["question"] != follow_up else "No 0.9"

    def final(body: Mapping[str, Any]) -> str:
        return f"Ada Brandt dammed Lake Sund [{material_of(body)['passages'][0]['number']}]."

    def assess(body: Mapping[str, Any]) -> str:
        number = material_of(body)["passages"][0]["number"]
        components = [
            {"text": "Who dammed it?", "coverage": FULLY, "claims": [1]},
            {"text": "When?", "coverage": PARTLY, "claims": [1]},
        ]
        return json.dumps(
            {
                "structure": "multiple",
                "components": components,
                "claims": [{"number": 1, "supported_by": [number], "relevant": True}],
                "follow_ups": [{"component": 2, "question": follow_up}],
            }
        )

    return {"predictor": "Ada Brandt.", "judge": judge, "final predictor": final, "claim judge": assess}


def test_calls_of_every_agent_are_counted_as_requests_and_told_as_model_calls(
    run: Runs, order: Orders, rivers: Path, chat_server: ScriptedServer
) -> None:
    chat_server.script({name: _counted(reply) for name, reply in script("In which year was Lake Sund dammed?").items()})
    question = [row for row in QUESTIONS if row["id"] == "q4"]
    served = Context(workspace=str(rivers), model="scripted")
    done = run(order(questions=question, context=served, systems=("ragenta", "basic-rag"), concurrency=1))
    (row,), (timing,) = done.results["ragenta"], done.timings["ragenta"]
    assert row["failed"] is None
    assert row["errors"] == []
    tokens = timing["usage"]
    assert tokens["calls"] == row["model_calls"] > 4
    assert (tokens["prompt_tokens"], tokens["unknown"]) == (10 * tokens["calls"], 0)
    assert (row["coverage"], row["claims"]["supported"], row["claims"]["checked_by"]) == (PARTLY, 1, "model")
    assert row["follow_ups"] == ["nothing found"]
    basic = done.results["basic-rag"][0]
    assert (basic["model_calls"], done.timings["basic-rag"][0]["usage"]["calls"]) == (1, 1)
    assert len(chat_server.requests) == tokens["calls"] + 1, "warming up asks no model"
    figures = done.metrics["systems"]["ragenta"]
    assert figures["model_calls"] == figures["usage_per_question"]["calls"] == row["model_calls"]


def _counted(reply: Any) -> Any:
    tokens = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return lambda body: Reply(reply(body) if callable(reply) else reply, usage=tokens)
