"""Interrupted runs go on: no question is asked twice, and no settings are mixed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, ModelUnavailable
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.evaluation.river_run import (
    ALL,
    IDS,
    QUESTIONS,
    SYSTEMS,
    Orders,
    Runs,
    Watch,
    index_rows,
    order_of,
)
from tests.workflows.small_world import well_behaved
from tests.workflows.workspaces import KARV, ROWS
from workflows.context import Context
from workflows.runs.run_folder import Run, load_run
from workflows.runs.runner import GIVE_UP_AFTER


@pytest.fixture
def own(rivers: Path, tmp_path: Path) -> Path:
    """A workspace of the test's own that holds the small rows."""
    return Path(shutil.copytree(rivers.parent, tmp_path / "own")) / rivers.name


def test_an_interrupted_run_goes_on_and_asks_nothing_twice(
    run: Runs, order: Orders, watch: Watch, whole: Run, tmp_path: Path
) -> None:
    watch.break_off_at("dense", "q3", RuntimeError("the process dies"))
    with pytest.raises(RuntimeError):
        run(order())
    with pytest.raises(BadInput, match="is not finished"):
        load_run(tmp_path / "run")
    assert sum(watch.asked.values()) == 8
    watch.go_on()

    done = run(order())

    assert watch.asked == ALL
    assert (done.folder / "results.jsonl").read_bytes() == (whole.folder / "results.jsonl").read_bytes()
    assert not (done.folder / "journal.jsonl").exists()


def test_further_systems_are_asked_beside_those_of_a_run(run: Runs, order: Orders, watch: Watch, finished: Run) -> None:
    done = run(order(systems=("sparse", "mara")))
    assert set(watch.asked) == {("sparse", key) for key in IDS}
    assert list(done.results) == [*SYSTEMS, "sparse"]
    assert {system: done.results[system] for system in SYSTEMS} == finished.results
    assert list(done.metrics["systems"]) == [*SYSTEMS, "sparse"]


def test_a_run_is_not_gone_on_with_otherwise_unless_it_is_restarted(
    run: Runs, order: Orders, rivers: Path, finished: Run
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"seed": 1}, "questions.seed was 0, now 1"),
        ({"retrieval_only": True}, "retrieval_only was False, now True"),
        ({"questions": QUESTIONS[:-1]}, "questions.count was 6, now 5"),
        (
            {"context": Context(workspace=str(rivers), model="another")},
            "systems.mara.chat_model was offline, now another",
        ),
    ]
    for changes, said in cases:
        with pytest.raises(BadInput) as refused:
            run(order(systems=("dense", "mara"), **changes))
        assert said in str(refused.value)
        assert "--restart" in refused.value.hint
    assert list(run(order(systems=("dense",), restart=True, seed=1)).results) == ["dense"]


def test_a_workspace_indexed_again_while_it_is_asked_stops_the_run(
    run: Runs, watch: Watch, own: Path, tmp_path: Path
) -> None:

    def index_again(*asked: str) -> None:
        if asked == ("mara", "q3"):
            index_rows(tmp_path / "own", [*ROWS, {**KARV, "id": "karv2"}])

    watch.before = index_again
    with pytest.raises(BadInput, match="was indexed again while it was asked"):
        run(order_of(own, tmp_path))
    watch.go_on()
    with pytest.raises(BadInput, match=r"generation was \d+, now \d+"):
        run(order_of(own, tmp_path))


def test_a_model_that_goes_away_stops_the_run_and_only_what_it_failed_is_asked_again(
    run: Runs, order: Orders, rivers: Path, chat_server: ScriptedServer, watch: Watch
) -> None:
    served = Context(workspace=str(rivers), model="scripted")
    gone = Reply("no such key", status=401)
    chat_server.script({**well_behaved(), "answerer": [*["It is so [1]."] * 8, gone]})
    with pytest.raises(ModelUnavailable):
        run(order(context=served, systems=("mara", "dense", "sparse"), concurrency=1))
    asked = sum(watch.asked.values())
    assert asked == 8 + GIVE_UP_AFTER
    sent = len(chat_server.requests)

    chat_server.script(well_behaved())
    done = run(order(context=served, systems=("mara", "dense", "sparse"), concurrency=1))
    assert sum(watch.asked.values()) == 18 + GIVE_UP_AFTER
    counted = sum(figures["usage"]["calls"] for figures in done.metrics["systems"].values())
    assert counted == sent - GIVE_UP_AFTER + len(chat_server.requests), "a refused request is no call"
    assert all(row["failed"] is None for rows in done.results.values() for row in rows)
