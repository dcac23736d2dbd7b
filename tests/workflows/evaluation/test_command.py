"""``mara eval`` on the command line: a folder of results, a table, and an exit code that tells the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.retrieve.modes import Mode
from tests.builders import HashEmbedder
from tests.workflows.command_line import Mara, Outcome
from tests.workflows.evaluation.river_run import QUESTIONS
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import use_embedder
from workflows.evaluation import ask_system, runner
from workflows.evaluation.systems import NEED_A_MODEL
from workflows.runs.run_folder import load_run


class Eval:
    """Runs the command on the small rows and questions."""

    def __init__(self, mara: Mara, workspace: Path, folder: Path) -> None:
        self.questions = folder / "questions.jsonl"
        self.out = folder / "run"
        self._mara = mara
        self._workspace = workspace
        write_lines(self.questions, QUESTIONS)

    def __call__(self, *options: str | Path) -> Outcome:
        return self._mara("eval", self.questions, "-w", self._workspace, "--out", self.out, *options)


@pytest.fixture
def run_eval(mara: Mara, rivers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Eval:
    use_embedder(monkeypatch, HashEmbedder())
    return Eval(mara, rivers, tmp_path)


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "write_report", lambda run: None)


def test_all_modes_are_asked_and_the_folder_holds_all_files(run_eval: Eval) -> None:
    shown = run_eval("--limit", "2")
    for mode in Mode:
        assert f"\n{mode} " in shown.out
    written = {path.name for path in run_eval.out.iterdir()}
    assert {"run.json", "results.jsonl", "timings.jsonl", "metrics.json", "report.md"} <= written
    assert "`mara-matrix`" in (run_eval.out / "report.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("without_report")
def test_each_system_has_its_difference_to_the_baseline(run_eval: Eval) -> None:
    shown = run_eval("--mode", "mara", "--mode", "dense", "--mode", "hybrid", "--retrieval-only")
    systems = load_run(run_eval.out).metrics["systems"]
    recall = {name: figures["recall"]["5"] for name, figures in systems.items()}
    table = shown.out.split("less hybrid, with 95 % intervals:")[1]
    assert f"\nmara   {recall['mara'] - recall['hybrid']:+.3f} [" in table
    other = run_eval("--mode", "mara", "--retrieval-only", "--baseline", "dense", "--json").json
    assert (other["baseline"], list(other["differences"])) == ("dense", ["mara", "hybrid"])
    less = other["differences"]["mara"]["recall@5"]
    assert less["difference"] == pytest.approx(recall["mara"] - recall["dense"], abs=1e-6)
    refused = run_eval("--mode", "mara", "--retrieval-only", "--baseline", "sparse")
    assert (refused.code, "The baseline 'sparse' is not of this run" in refused.err) == (2, True)


def test_without_a_model_the_table_of_answers_holds_evidence_and_says_what_is_left_out(run_eval: Eval) -> None:
    shown = run_eval("--answers", "--limit", "2")
    said = " ".join(shown.out.split())
    assert "No chat model is configured: EM, F1 and gold in answer are those of quoted evidence" in said
    assert f"as they need a model: {', '.join(NEED_A_MODEL)}" in said
    report = (run_eval.out / "report.md").read_text(encoding="utf-8")
    assert "## Evidence, side by side" in report


@pytest.mark.usefixtures("without_report")
def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(run_eval: Eval, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*asked: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ask_system, "context_for", interrupted)
        stopped = run_eval("--mode", "mara")
    assert (stopped.code, stopped.out) == (130, "")
    assert "run the same command to go on" in stopped.err
    assert run_eval("--mode", "mara").code == 0


def test_an_unusable_order_exits_with_2_and_leaves_no_folder(run_eval: Eval) -> None:
    cases = [
        (("--mode", "mara+no-bets"), "'no-bets' in 'mara+no-bets' is not a switch"),
        (("--mode", "mara", "--mode", "mara"), "A system is given twice"),
        (("--answers", "--retrieval-only"), "--answers and --retrieval-only exclude each other"),
        (("--concurrency", "0"), "greater than or equal to 1"),
        (("-w", "nowhere"), "There is no workspace at nowhere"),
    ]
    for options, said in cases:
        failed = run_eval(*options, "--json")
        assert failed.code == 2, options
        assert said in failed.json["error"]["message"]
    run_eval.questions.write_text('{"question": "Who?"}\n{"question": ""}\n', encoding="utf-8")
    assert "line 2" in run_eval("--json").json["error"]["message"]
    assert not run_eval.out.exists()
