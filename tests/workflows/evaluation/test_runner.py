"""Runs: every system is asked every question, and equal runs give equal files."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.evaluation.river_run import (
    IDS,
    SYSTEMS,
    Orders,
    Runs,
    Watch,
    rows_in,
)
from tests.workflows.small_world import MANAGED, picks_first_fact
from workflows.context import Context
from workflows.runs.run_folder import Run


def test_a_run_holds_a_row_for_each_system_and_question_in_order(whole: Run, rivers: Path) -> None:
    rows = rows_in(whole.folder / "results.jsonl")
    assert [(row["system"], row["id"]) for row in rows] == [(system, key) for system in SYSTEMS for key in IDS]
    times = rows_in(whole.folder / "timings.jsonl")
    assert [(row["system"], row["id"]) for row in times] == [(row["system"], row["id"]) for row in rows]
    assert all(tuple(row) == ("id", "system", "total_ms", "timings_ms", "usage") for row in times)
    assert sorted(path.name for path in whole.folder.iterdir() if path.name != ".lock") == [
        *("metrics.json", "results.jsonl", "run.json", "timings.jsonl")
    ]
    assert (whole.settings["questions"]["unresolved_gold"], whole.settings["questions"]["without_gold"]) == (1, 1)
    assert str(rivers) not in (whole.folder / "run.json").read_text(encoding="utf-8"), "no path of the machine"


def test_a_row_tells_how_its_answer_came_about(whole: Run) -> None:
    row = whole.results["mara"][1]
    assert (row["id"], row["type"], row["hops"], row["mode"], row["workflow"]) == ("q2", "bridge", 2, "mara", "mara")
    assert row["gold_ids"] == ["sund", "brandt"]
    assert row["gold_answers"] == ["Karv", "the harbour of Karv"]
    assert set(row["gold_ids"]) <= set(row["retrieved_ids"])
    assert sum(row["relation_factors"]["entity_entity"].values()) == pytest.approx(1)
    assert row["failed"] is None
    for citation in row["citations"]:
        assert f"[{citation['number']}]" in row["answer"]
        assert citation["gold"] == (citation["passage_id"] in row["gold_ids"])
    by_id = {row["id"]: row for row in whole.results["mara"]}
    assert (by_id["q4"]["em"], by_id["q4"]["f1"]) == (None, None), "it has no gold answer"
    assert (by_id["q5"]["f1"] is not None, by_id["q5"]["gold_ids"]) == (True, [])


def test_a_question_that_fails_for_its_own_reason_is_counted_and_the_rest_go_on(
    run: Runs, order: Orders, watch: Watch
) -> None:
    watch.break_off_at("mara", "q2", BadInput("This question is no question"))
    done = run(order())
    row = done.results["mara"][1]
    assert row["failed"] == {"kind": "BadInput", "message": "This question is no question"}
    assert (row["retrieved_ids"], row["answer"], row["em"], row["f1"]) == ([], None, 0.0, 0.0)
    assert done.timings["mara"][1]["total_ms"] is None
    figures = done.metrics["systems"]
    assert (figures["mara"]["failed"], figures["dense"]["failed"]) == (1, 0)
    watch.asked.clear()
    watch.go_on()
    assert run(order()).results == done.results
    assert not watch.asked, "what fails by itself is not asked again"


def test_tokens_are_counted_as_the_server_reports_them(
    run: Runs, order: Orders, rivers: Path, chat_server: ScriptedServer
) -> None:
    tokens = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    chat_server.script(
        {
            "fact filter": lambda body: Reply(picks_first_fact(body), usage=tokens),
            "manager": ["{", Reply(MANAGED, usage=tokens)],
            "answerer": [Reply("It is so [1].", usage={})],
        }
    )
    done = run(order(context=Context(workspace=str(rivers), model="scripted"), systems=("mara", "dense"), limit=1))
    mara, dense = done.timings["mara"][0]["usage"], done.timings["dense"][0]["usage"]
    assert mara == {"calls": 4, "prompt_tokens": 201, "completion_tokens": 14, "unknown": 1}
    assert dense == {"calls": 1, "prompt_tokens": 0, "completion_tokens": 0, "unknown": 1}
    assert len(chat_server.requests) == 5, "warming up asks no model"
    assert done.settings["systems"]["mara"]["chat_model"] == "scripted"
