"""Runs that are broken off go on: nothing is asked twice, and nothing is mixed with what was asked otherwise."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, ModelUnavailable
from graph.schema import RelationType
from graph.walk.strengths import UNTUNED, adopt
from tests.cases import mostly_slow
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


@pytest.mark.parametrize(
    "fault", mostly_slow([RuntimeError("the process dies"), KeyboardInterrupt(), OSError("the disk is gone")], 1)
)
def test_a_run_that_is_broken_off_goes_on_and_asks_nothing_twice(
    run: Runs, order: Orders, watch: Watch, whole: Run, tmp_path: Path, fault: BaseException
) -> None:
    watch.break_off_at("dense", "q3", fault)
    with pytest.raises(type(fault)):
        run(order())
    with pytest.raises(BadInput, match="is not finished"):
        load_run(tmp_path / "run")
    assert sum(watch.asked.values()) == 8
    watch.go_on()

    done = run(order())

    assert watch.asked == ALL
    assert (done.folder / "results.jsonl").read_bytes() == (whole.folder / "results.jsonl").read_bytes()
    assert not (done.folder / "journal.jsonl").exists()


@pytest.mark.slow
def test_a_run_of_several_questions_at_once_is_broken_off_and_goes_on(run: Runs, order: Orders, watch: Watch) -> None:
    watch.break_off_at("dense", "q3", RuntimeError("the process dies"))
    with pytest.raises(RuntimeError, match="the process dies"):
        run(order(concurrency=3))
    watch.go_on()
    run(order(concurrency=3))
    assert watch.asked == ALL


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C interrupts this process, also where it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_stops_at_once_and_keeps_what_was_answered(run: Runs, order: Orders, watch: Watch) -> None:
    def interrupted(*asked: str) -> None:
        if asked == ("mara", "q3"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    watch.before = interrupted
    with pytest.raises(KeyboardInterrupt):
        run(order())
    watch.go_on()
    assert sum(watch.asked.values()) < len(ALL)
    done = run(order())
    assert set(watch.asked) == set(ALL)
    assert [row["id"] for row in done.results["mara"]] == IDS


@pytest.mark.slow
def test_a_row_that_was_not_written_whole_is_asked_again(
    run: Runs, order: Orders, watch: Watch, tmp_path: Path
) -> None:
    watch.break_off_at("mara", "q4", RuntimeError())
    with pytest.raises(RuntimeError):
        run(order())
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    watch.go_on()
    run(order())
    assert watch.asked == ALL + Counter({("mara", "q3"): 1})


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_costs_one_row(
    run: Runs, order: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, 20_000

    def fills(file: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(file, data[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", fills)
    with pytest.raises(OSError, match="No space left"):
        run(order())
    monkeypatch.setattr(os, "write", write)
    torn = sum(watch.asked.values())
    assert 1 < torn < len(ALL)
    done = run(order())
    assert sum(watch.asked.values()) == len(ALL) + 1
    assert Counter((row["system"], row["id"]) for rows in done.results.values() for row in rows) == ALL


def test_a_finished_run_asks_nothing_again(run: Runs, order: Orders, watch: Watch, finished: Run) -> None:
    first = (finished.folder / "results.jsonl").read_bytes()
    assert (run(order()).folder / "results.jsonl").read_bytes() == first
    assert not watch.asked


def test_further_systems_are_asked_beside_those_of_a_run(run: Runs, order: Orders, watch: Watch, finished: Run) -> None:
    done = run(order(systems=("sparse", "mara")))
    assert set(watch.asked) == {("sparse", key) for key in IDS}
    assert list(done.results) == [*SYSTEMS, "sparse"]
    assert {system: done.results[system] for system in SYSTEMS} == finished.results
    assert list(done.metrics["systems"]) == [*SYSTEMS, "sparse"]


@pytest.mark.slow
def test_more_questions_of_the_same_draw_are_asked_beside_those_of_a_run(
    run: Runs, order: Orders, watch: Watch, tmp_path: Path
) -> None:
    order = partial(order, systems=("mara",))
    run(order(limit=2))
    done = run(order(limit=4))
    whole = run(order(limit=4, out=tmp_path / "whole"))
    assert len(done.results["mara"]) == 4
    assert (done.folder / "results.jsonl").read_bytes() == (whole.folder / "results.jsonl").read_bytes()
    watch.asked.clear()
    run(order(limit=None))
    assert sum(watch.asked.values()) == len(IDS) - 4
    with pytest.raises(BadInput, match=r"questions\.limit was None, now 2"):
        run(order(limit=2))


@pytest.mark.slow
def test_a_broken_off_run_is_finished_with_all_its_systems(run: Runs, order: Orders, watch: Watch) -> None:
    watch.break_off_at("dense", "q1", RuntimeError())
    with pytest.raises(RuntimeError):
        run(order())
    watch.go_on()
    assert list(run(order(systems=("sparse",))).results) == [*SYSTEMS, "sparse"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 1}, "questions.seed was 0, now 1"),
        ({"limit": 2}, "questions.limit was None, now 2"),
        ({"retrieval_only": True}, "retrieval_only was False, now True"),
        ({"questions": QUESTIONS[:-1]}, "questions.count was 6, now 5"),
        ({"questions": [{**QUESTIONS[0], "question": "What is it?"}, *QUESTIONS[1:]]}, "questions.sha256 was"),
        ({"model": "another"}, "systems.mara.chat_model was offline, now another"),
    ],
)
def test_a_run_is_not_gone_on_with_otherwise_unless_it_is_restarted(
    run: Runs, order: Orders, rivers: Path, finished: Run, changes: dict[str, Any], said: str
) -> None:
    if "model" in changes:
        changes = {"context": Context(workspace=str(rivers), model=changes["model"]), "retrieval_only": False}
    with pytest.raises(BadInput) as refused:
        run(order(systems=("dense", "mara"), **changes))
    assert said in str(refused.value)
    assert "--restart" in refused.value.hint
    if "context" not in changes:
        assert list(run(order(systems=("dense",), restart=True, **changes)).results) == ["dense"]


@pytest.mark.slow
def test_a_workspace_indexed_anew_between_two_halves_is_told(
    run: Runs, watch: Watch, own: Path, tmp_path: Path
) -> None:
    workspace = own
    watch.break_off_at("dense", "q1", RuntimeError())
    with pytest.raises(RuntimeError):
        run(order_of(workspace, tmp_path))
    watch.go_on()
    index_rows(tmp_path / "own", [*ROWS, {**KARV, "id": "karv2"}])
    with pytest.raises(BadInput, match=r"generation was \d+, now \d+"):
        run(order_of(workspace, tmp_path))
    assert run(order_of(workspace, tmp_path, restart=True)).settings["generation"] > 1


def test_a_workspace_indexed_anew_while_it_is_asked_stops_the_run(
    run: Runs, watch: Watch, own: Path, tmp_path: Path
) -> None:
    workspace = own

    def index_again(*asked: str) -> None:
        if asked == ("mara", "q3"):
            index_rows(tmp_path / "own", [*ROWS, {**KARV, "id": "karv2"}])

    watch.before = index_again
    with pytest.raises(BadInput, match="was indexed again while it was asked"):
        run(order_of(workspace, tmp_path))


@pytest.mark.slow
def test_a_workspace_tuned_between_two_halves_or_while_it_is_asked_is_told(
    run: Runs, watch: Watch, own: Path, tmp_path: Path
) -> None:
    workspace = own
    stronger = replace(
        UNTUNED,
        strengths={**UNTUNED.strengths, RelationType.SPATIAL: 2.0},
        parent=0,
        recall_before=0.5,
        recall_after=0.6,
    )

    def tuned(*asked: str) -> None:
        if asked == ("dense", "q3"):
            adopt(workspace, stronger)

    watch.before = tuned
    with pytest.raises(BadInput, match="was tuned while it was asked"):
        run(order_of(workspace, tmp_path))
    watch.go_on()
    with pytest.raises(BadInput, match=r"systems.mara.tuning.version was None, now 1"):
        run(order_of(workspace, tmp_path))
    done = run(order_of(workspace, tmp_path, systems=("mara", "mara+no-tuning"), restart=True))
    assert done.settings["systems"]["mara"]["tuning"]["strengths"]["SPATIAL"] == 2.0
    assert done.settings["systems"]["mara+no-tuning"]["tuning"] is None


@pytest.mark.slow
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


def test_a_model_that_fails_now_and_then_does_not_stop_the_run(
    run: Runs, order: Orders, rivers: Path, chat_server: ScriptedServer
) -> None:
    served = Context(workspace=str(rivers), model="scripted")
    refused = Reply("this text is not allowed", status=400)
    chat_server.script({"answerer": ["It is so [1].", refused, refused, refused, refused, "It is so [1]."]})
    done = run(order(context=served, systems=("dense",), concurrency=1))
    figures = done.metrics["systems"]["dense"]
    assert (figures["failed"], figures["failures"]) == (4, {"ModelUnavailable": 4})
    chat_server.script({"answerer": ["It is so [1]."]})
    again = run(order(context=served, systems=("dense",), concurrency=1))
    assert again.metrics["systems"]["dense"]["failed"] == 0
    assert len(chat_server.requests) == 4
