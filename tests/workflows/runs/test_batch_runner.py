"""Batches: every question gets its row, equal batches give equal files, and interrupted ones go on."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, ModelUnavailable, WorkspaceDamaged
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.evaluation.river_run import index_rows
from tests.workflows.runs.batches import IDS, QUESTIONS, Orders, Watch, lines_of, names_in, order_of, ragenta_result
from tests.workflows.workspaces import KARV, ROWS
from workflows.context import Context
from workflows.runs import batch
from workflows.runs.batch import run_batch
from workflows.runs.runner import GIVE_UP_AFTER
from workflows.settings.enums import Format


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C interrupts this process, also where it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_each_question_gets_a_row_with_its_answer_and_the_passages_behind_it(order: Orders) -> None:
    done = run_batch(order())
    rows = lines_of(done.file)
    assert done.file.name == "answers.jsonl"
    assert rows == done.rows
    settings = json.loads((done.file.parent / "batch.json").read_text(encoding="utf-8"))["settings"]
    assert (settings["mode"], settings["walk"]["damping"] > 0) == ("mara", True)
    assert [row["id"] for row in rows] == IDS
    asked = rows[0]
    assert "Lake Sund" in asked["plain_answer"]
    assert (asked["refused"], asked["failed"]) == (False, None)
    assert len(asked["passages"]) == 5
    assert [passage["number"] for passage in asked["passages"]] == [1, 2, 3, 4, 5]
    cited = next(passage for passage in asked["passages"] if f"[{passage['number']}]" in asked["answer"])
    assert cited["doc_IDs"] == ["velm"]
    assert cited["passage"] == "Velm\nThe Velm is a river in Ostra. It flows into Lake Sund."
    times = lines_of(done.file.parent / "timings.jsonl")
    assert [row["id"] for row in times] == IDS
    assert all(row["total_ms"] > 0 and "write_answer" in row["timings_ms"] for row in times)


def test_two_batches_are_the_same_to_the_byte_however_many_are_asked_at_once(order: Orders, tmp_path: Path) -> None:
    one = run_batch(order(form=Format.DEBUG, concurrency=1))
    other = run_batch(order(form=Format.DEBUG, concurrency=3, out=tmp_path / "other"))
    assert one.file.read_bytes() == other.file.read_bytes()
    row = lines_of(one.file)[0]
    assert one.file.name == "debug.jsonl"
    assert {"seeds", "facts", "relation_factors", "citations", "models", "generation", "failed"} <= row.keys()
    assert "timings_ms" not in row


def test_an_interrupted_batch_goes_on_and_asks_nothing_twice(order: Orders, watch: Watch, tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    whole = run_batch(order(out=tmp_path / "whole"))
    watch.asked.clear()
    watch.break_off_at("q4", RuntimeError("the process dies"))
    with pytest.raises(RuntimeError):
        run_batch(order(limit=len(IDS)), lambda *stage: progress.append(stage))
    assert progress == [("mara", done, 6) for done in range(4)]
    assert watch.asked == IDS[:3]
    assert names_in(tmp_path / "batch") == ["batch.json", "journal.jsonl"]
    progress.clear()
    watch.go_on()
    done = run_batch(order(), lambda *stage: progress.append(stage))
    assert progress == [("mara", done, 6) for done in range(3, 7)]
    assert watch.asked == IDS[3:]
    assert done.file.read_bytes() == whole.file.read_bytes()
    watch.go_on()
    assert run_batch(order(limit=len(IDS))).rows == done.rows
    assert not watch.asked, "a finished question is not asked again"


@pytest.mark.usefixtures("listening")
def test_ctrl_c_stops_at_once_and_keeps_what_was_answered(order: Orders, watch: Watch) -> None:
    def interrupted(key: str) -> None:
        if key == "q3":
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    watch.before = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_batch(order())
    before = list(watch.asked)
    assert before[:2] == IDS[:2]
    assert len(before) < len(IDS)
    watch.go_on()
    assert [row["id"] for row in run_batch(order()).rows] == IDS
    assert not set(watch.asked) & set(IDS[:2])


def test_a_batch_is_not_gone_on_with_otherwise_unless_it_is_restarted(
    order: Orders, watch: Watch, rivers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.break_off_at("2", RuntimeError())
    with pytest.raises(RuntimeError):
        run_batch(order())
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"alpha": 0.2}, {}, "settings.context.walk.alpha was None, now 0.2"),
        ({"model": "another"}, {}, "settings.chat_model was offline, now another"),
        ({}, {"questions": [{**QUESTIONS[0], "id": "other"}, *QUESTIONS[1:]]}, "questions.sha256 was"),
    ]
    for settings, changes, said in cases:
        with pytest.raises(BadInput) as refused:
            run_batch(order(context=Context(workspace=str(rivers), **settings), **changes))
        assert said in str(refused.value)
        assert "--restart" in refused.value.hint
    monkeypatch.setattr(batch, "_CODE", ("graph/errors.py",))
    with pytest.raises(BadInput, match=r"versions\.code was"):
        run_batch(order())
    watch.go_on()
    run_batch(order(limit=2, restart=True))
    assert watch.asked == IDS[:2]


def test_a_workspace_indexed_again_while_or_after_it_is_asked_is_an_error(
    rivers: Path, watch: Watch, tmp_path: Path
) -> None:
    workspace = Path(shutil.copytree(rivers.parent, tmp_path / "own")) / rivers.name

    def index_again(key: str) -> None:
        if key == "q3":
            index_rows(tmp_path / "own", [*ROWS, {**KARV, "id": "karv2"}])

    watch.before = index_again
    with pytest.raises(BadInput, match="was indexed again while it was asked"):
        run_batch(order_of(workspace, tmp_path))
    watch.go_on()
    with pytest.raises(BadInput, match=r"generation was \d+, now \d+"):
        run_batch(order_of(workspace, tmp_path))


def test_a_question_that_fails_by_itself_is_recorded_and_one_that_the_workspace_fails_stops_the_batch(
    order: Orders, watch: Watch
) -> None:
    watch.break_off_at("q3", BadInput("It is no question"))
    done = run_batch(order())
    assert done.rows[2]["failed"] == {"kind": "BadInput", "message": "It is no question"}
    assert done.rows[2]["answer"] is None
    assert [row["failed"] for row in done.rows].count(None) == 5
    watch.go_on()
    assert run_batch(order()).rows == done.rows
    assert not watch.asked
    watch.break_off_at("q3", WorkspaceDamaged("It cannot be read"))
    with pytest.raises(WorkspaceDamaged):
        run_batch(order(restart=True))


def test_a_model_that_goes_away_stops_the_batch_and_only_what_it_failed_is_asked_again(
    order: Orders, watch: Watch
) -> None:
    def gone(key: str) -> None:
        if key != "q1":
            raise ModelUnavailable("No such key")

    watch.before = gone
    with pytest.raises(ModelUnavailable):
        run_batch(order(concurrency=1))
    assert watch.asked == ["q1"]
    assert len(IDS) == GIVE_UP_AFTER + 1, "the last one was the one too many"
    watch.go_on()
    done = run_batch(order())
    assert watch.asked == IDS[1:]
    assert done.summary()["failed"] == 0


def test_a_model_that_fails_now_and_then_does_not_and_those_are_asked_again(
    order: Orders, rivers: Path, chat_server: ScriptedServer
) -> None:
    served = Context(workspace=str(rivers), model="scripted", mode="dense")
    refused = Reply("this text is not allowed", status=400)
    chat_server.script({"answerer": ["It is so [1].", refused, refused, "It is so [1]."]})
    done = run_batch(order(context=served, concurrency=1))
    assert done.summary()["failures"] == {"ModelUnavailable": 2}
    assert [row["id"] for row in done.rows if row["failed"]] == IDS[1:3]
    chat_server.script({"answerer": ["It is so [1]."]})
    again = run_batch(order(context=served, concurrency=1))
    assert len(chat_server.requests) == 2
    assert [row["id"] for row in again.rows] == IDS
    assert again.summary()["answered"] == 6


def test_a_summary_counts_each_kind_of_result_failures_and_coverage(
    order: Orders, rivers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = json.loads((rivers / "manifest.json").read_text(encoding="utf-8"))["generation"]
    fallback = {"node": "quote_passages", "kind": "Fallback", "message": "", "attempt": 3, "raw": ""}
    results: list[dict[str, Any]] = [
        {},
        {"answer_kind": "refusal", "refused": True, "coverage": "NOT ANSWERED"},
        {"answer_kind": "evidence", "coverage": "EVIDENCE, NOT JUDGED"},
        {"answer_kind": "clarification", "coverage": ""},
        {"errors": [fallback], "coverage": "FULLY ANSWERED", "usage": {"calls": 1}},
    ]

    def asked(question: str, context: Context) -> dict[str, Any]:
        if not results:
            raise BadInput("No")
        return ragenta_result(generation=generation, **results.pop(0))

    monkeypatch.setattr(batch, "ask", asked)
    done = run_batch(order(limit=6))
    assert done.summary() == {
        **{"file": str(done.file), "questions": 6, "answered": 2, "evidence": 1, "refused": 1},
        **{"asked_back": 1, "failed": 1, "model_calls": 37},
        **{"failures": {"BadInput": 1}, "fallbacks": {"quote_passages": 1}},
        "coverage": {"EVIDENCE, NOT JUDGED": 1, "FULLY ANSWERED": 1, "NOT ANSWERED": 1, "PARTIALLY ANSWERED": 1},
    }
