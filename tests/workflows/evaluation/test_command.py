"""``mara eval`` on the command line: a folder of results, a table, and an exit code that tells what went wrong."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from graph.retrieve.modes import Mode
from tests.builders import HashEmbedder
from tests.scripted_server import Reply, Script, ScriptedServer
from tests.workflows.command_line import Mara, Outcome
from tests.workflows.evaluation.river_run import IDS, QUESTIONS
from tests.workflows.small_world import well_behaved, write_lines
from tests.workflows.workspaces import use_embedder
from workflows.cli import evaluate
from workflows.cli.evaluate import told_of
from workflows.evaluation import ask_system, runner
from workflows.evaluation.systems import ABLATIONS, ANSWER_SYSTEMS, NEED_A_MODEL
from workflows.runs.run_folder import Answered, load_run


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


def test_all_modes_are_asked_and_the_folder_holds_all_that_was_promised(run_eval: Eval) -> None:
    shown = run_eval("--limit", "2")
    assert shown.code == 0
    for mode in Mode:
        assert f"\n{mode} " in shown.out
    assert "2 questions of questions.jsonl" in shown.out
    assert str(run_eval.out / "report.md") in shown.out.replace("\n", "")
    written = {path.name for path in run_eval.out.iterdir()}
    assert {"run.json", "results.jsonl", "timings.jsonl", "metrics.json", "report.md"} <= written
    assert "`mara-matrix`" in (run_eval.out / "report.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("without_report")
def test_json_is_the_metrics_and_nothing_else(run_eval: Eval) -> None:
    shown = run_eval("--mode", "mara", "--mode", "mara+no-beta+damping=0.5", "--json", "--verbose")
    run = load_run(run_eval.out)
    assert shown.json == {"folder": str(run_eval.out), **run.metrics}
    assert list(shown.json["systems"]) == ["mara", "mara+no-beta+damping=0.5"]
    assert shown.json["systems"]["mara"]["recall"]["5"] > 0


@pytest.mark.usefixtures("without_report")
def test_each_system_has_its_difference_to_the_baseline(run_eval: Eval) -> None:
    shown = run_eval("--mode", "mara", "--mode", "dense", "--mode", "hybrid", "--retrieval-only")
    recall = {name: found["recall"]["5"] for name, found in load_run(run_eval.out).metrics["systems"].items()}
    table = shown.out.split("less hybrid, with 95 % intervals:")[1]
    assert f"\nmara   {recall['mara'] - recall['hybrid']:+.3f} [" in table
    other = run_eval("--mode", "mara", "--retrieval-only", "--baseline", "dense", "--json").json
    assert (other["baseline"], list(other["differences"])) == ("dense", ["mara", "hybrid"])
    found = other["differences"]["mara"]["recall@5"]
    assert found["difference"] == pytest.approx(recall["mara"] - recall["dense"], abs=1e-6)
    assert found["low"] <= found["difference"] <= found["high"]
    refused = run_eval("--mode", "mara", "--retrieval-only", "--baseline", "sparse")
    assert (refused.code, "The baseline 'sparse' is not of this run" in refused.err) == (2, True)


@pytest.mark.usefixtures("without_report")
def test_what_has_no_gold_is_told(run_eval: Eval) -> None:
    shown = run_eval("--mode", "dense")
    assert "1 questions without gold passages are not in recall and MRR" in shown.out
    assert "1 gold passages are not in the workspace" in shown.out
    write_lines(run_eval.questions, [{"question": "Who dammed Lake Sund?"}])
    assert " – " in run_eval("--mode", "dense", "--restart").out


@pytest.mark.usefixtures("without_report")
@pytest.mark.slow
def test_ablations_are_asked_beside_the_modes(run_eval: Eval) -> None:
    shown = run_eval("--ablations", "--limit", "1", "--retrieval-only", "--mode", "mara", "--json")
    assert list(shown.json["systems"]) == ["mara", *ABLATIONS]
    assert shown.json["systems"]["mara"]["f1"]["mean"] is None


def scripts_of_every_role() -> dict[str, Script]:
    """Answer whatever is asked; the judge keeps what it sees, and the claim check finds every claim supported."""
    supported = {
        "structure": "single",
        "components": [{"text": "All", "coverage": "FULLY ANSWERED", "claims": [1]}],
        "claims": [{"number": 1, "supported_by": [1], "relevant": True}],
        "follow_ups": [],
    }
    return {
        **well_behaved(),
        "closed book": ["Lake Sund"],
        "answerer": ["Lake Sund [1]."],
        "predictor": ["Lake Sund"],
        "judge": ["Yes 0.9"],
        "final predictor": ["Lake Sund [1]."],
        "claim judge": [json.dumps(supported)],
    }


def test_answers_are_compared_in_one_table_with_a_model(run_eval: Eval, chat_server: ScriptedServer) -> None:
    chat_server.script(scripts_of_every_role())
    asked = ("--answers", "--limit", "2", "--model", "scripted")
    shown = run_eval(*asked)
    assert shown.code == 0
    report = (run_eval.out / "report.md").read_text(encoding="utf-8")
    table = report.split("## Answers of `scripted`, side by side")[1].split("## Retrieval")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    rows = {name.strip("`"): figures for name, *figures in lines}
    assert list(rows) == list(ANSWER_SYSTEMS)
    assert rows["closed-book"][4] == "–"
    assert rows["gold-passages"][4].endswith(" w")
    assert rows["ragenta"][4] == "1.000 c"
    assert [rows[name][5] for name in ("closed-book", "mara+offline-agents", "mara")] == ["1.0", "1.0", "3.0"]
    for name in ANSWER_SYSTEMS:
        assert f"\n{name} " in shown.out
    assert max(map(len, shown.out.splitlines()[:11])) <= 80
    assert "R@5 − `hybrid`" in report
    requests = len(chat_server.requests)
    written = (run_eval.out / "results.jsonl").read_bytes()
    assert run_eval(*asked).out == shown.out
    assert len(chat_server.requests) == requests, "a finished run asks nothing again"
    run_eval(*asked, "--restart")
    assert (run_eval.out / "results.jsonl").read_bytes() == written


def test_without_a_model_the_table_holds_evidence_and_says_what_is_left_out(run_eval: Eval) -> None:
    shown = run_eval("--answers", "--limit", "2")
    said = " ".join(shown.out.split())
    assert "No chat model is configured: EM, F1 and gold in answer are those of quoted evidence" in said
    for name in NEED_A_MODEL:
        assert f"`{name}` is left out: it " in said
    report = (run_eval.out / "report.md").read_text(encoding="utf-8")
    assert "## Evidence, side by side" in report
    assert "| `closed-book` | left out |" in report


@pytest.mark.usefixtures("without_report")
def test_a_question_that_the_model_lost_is_told_in_the_table_and_asked_again(
    run_eval: Eval, chat_server: ScriptedServer
) -> None:
    lost = Reply("no such key", status=401)
    chat_server.script({**scripts_of_every_role(), "closed book": ["Lake Sund", lost, "Lake Sund"]})
    asked = ("--answers", "--model", "scripted", "--concurrency", "1")
    first = run_eval(*asked)
    assert next(line for line in first.out.splitlines() if line.startswith("closed-book")).split()[-1] == "1"
    assert "closed-book: 1 failed (ModelUnavailable 1)" in first.out
    again = run_eval(*asked, "--json")
    assert again.json["systems"]["closed-book"]["failed"] == 0


@pytest.mark.usefixtures("without_report")
def test_verbose_tells_of_each_question_on_standard_error(run_eval: Eval) -> None:
    shown = run_eval("--mode", "mara", "--verbose")
    lines = [line for line in shown.err.splitlines() if line.startswith("mara")]
    assert [line.split()[1] for line in lines] == IDS
    for said in ("β ", "facts kept ", "seeds Velm", "walk ", "1 of 1 gold in the first 5"):
        assert said in lines[0]


def test_ragenta_tells_what_was_kept_and_how_far_it_answers_and_its_report_tells_of_citations(run_eval: Eval) -> None:
    shown = run_eval("--mode", "ragenta", "--mode", "basic-rag", "--limit", "2", "--verbose")
    assert shown.code == 0
    line = next(line for line in shown.err.splitlines() if line.startswith("ragenta"))
    assert re.search(r"kept: [1-9]\d* passages|nothing supports: 0 passages", line)
    assert re.search(r"evidence, not judged|partially answered|not answered", line)
    report = (run_eval.out / "report.md").read_text(encoding="utf-8")
    assert "### Citations" in report
    assert "### Judged passages and checked claims" in report
    assert "--mode ragenta" in report


def test_all_figures_leave_the_names_of_systems_whole_on_eighty_columns() -> None:
    console = Console(file=io.StringIO(), width=80)
    headings = ["system", "R@2", "R@5", "R@10", "all@2", "all@5", "all@10", "MRR", "EM", "F1", "p50 ms"]
    console.print(evaluate._table(headings, [[mode, *["0.123"] * 9, "1234.5"] for mode in (*Mode, "mara:no-synonyms")]))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["system", *Mode, "mara:no-synonyms"]


def test_a_question_that_failed_says_why_in_one_line() -> None:
    failed = {"system": "mara", "id": "q1", "failed": {"kind": "BadInput", "message": "It is no question"}}
    assert told_of(Answered(failed, {"timings_ms": {}})) == "mara  q1  failed: It is no question"


@pytest.mark.usefixtures("without_report")
def test_prices_make_costs(run_eval: Eval, chat_server: ScriptedServer) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    chat_server.script({"answerer": [Reply("It is so [1].", usage=usage)]})
    asked = ("--mode", "dense", "--model", "scripted", "--json")
    priced = run_eval(*asked, "--price-in", "1", "--price-out", "10")
    assert priced.json["systems"]["dense"]["cost"] == pytest.approx(6 * 0.002)
    assert run_eval(*asked).json["systems"]["dense"]["cost"] is None
    assert len(chat_server.requests) == 6, "asked once, told twice"
    assert "Only one price" in run_eval(*asked, "--price-in", "1").json["error"]["message"]


@pytest.mark.usefixtures("without_report")
def test_a_model_that_goes_away_exits_with_3_and_the_same_command_goes_on(
    run_eval: Eval, chat_server: ScriptedServer
) -> None:
    asked = ("--mode", "mara", "--model", "scripted", "--concurrency", "1", "--json")
    chat_server.script({**well_behaved(), "answerer": ["It is so [1].", Reply("no such key", status=401)]})
    failed = run_eval(*asked)
    assert (failed.code, failed.json["error"]["kind"]) == (3, "ModelUnavailable")
    chat_server.script(well_behaved())
    done = run_eval(*asked)
    assert (done.code, done.json["systems"]["mara"]["failed"]) == (0, 0)
    assert len(chat_server.requests_of("answerer")) == 5


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mode", "mara+no-bets"), "'no-bets' in 'mara+no-bets' is not a switch"),
        (("--mode", "mara", "--mode", "mara"), "mara is given twice"),
        (("--mode", "venus"), "'venus' is not a system"),
        (("--limit", "0"), "The limit is 0"),
        (("--limit", "-3"), "The limit is -3"),
        (("--answers", "--retrieval-only"), "--answers and --retrieval-only exclude each other"),
        (("--mode", "closed-book"), "needs a chat model"),
        (("--limit", "many"), "has to be a whole number"),
        (("--concurrency", "0"), "has to be 1 or more"),
        (("-w", "nowhere"), "There is no workspace at nowhere"),
        (("--out", "nowhere/\0"), "holds a character that no name can"),
    ],
)
def test_what_cannot_be_used_exits_with_2_and_leaves_no_folder(
    run_eval: Eval, options: tuple[str, ...], said: str
) -> None:
    failed = run_eval(*options, "--json")
    assert failed.code == 2
    assert said in failed.json["error"]["message"]
    assert not run_eval.out.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no question"),
        ("{", "line 1"),
        ('{"question": "Who?"}\n{"question": ""}\n', "line 2"),
        ('{"question": "Who?", "id": "a"}\n{"question": "When?", "id": "a"}\n', "its id 'a' is that of"),
    ],
)
def test_a_malformed_question_file_is_told_with_its_line(run_eval: Eval, text: str, said: str) -> None:
    run_eval.questions.write_text(text, encoding="utf-8")
    failed = run_eval("--json")
    assert failed.code == 2
    assert said in failed.json["error"]["message"]
    assert not run_eval.out.exists()


def test_a_folder_or_file_of_something_else_is_left_alone(run_eval: Eval) -> None:
    run_eval.out.write_text("mine", encoding="utf-8")
    assert "is a file" in run_eval("--json").json["error"]["message"]
    run_eval.out.unlink()
    run_eval.out.mkdir()
    (run_eval.out / "thesis.md").write_text("mine", encoding="utf-8")
    failed = run_eval("--restart", "--json")
    assert (failed.code, failed.json["error"]["kind"]) == (2, "BadInput")
    assert [path.name for path in run_eval.out.iterdir()] == ["thesis.md"]


@pytest.mark.usefixtures("without_report")
def test_langsmith_without_a_key_is_refused_before_anything_is_asked(run_eval: Eval) -> None:
    failed = run_eval("--mode", "dense", "--langsmith", "--json")
    assert failed.code == 2
    assert "LANGSMITH_API_KEY" in failed.json["error"]["hint"]
    assert not run_eval.out.exists()


def test_the_folder_has_to_be_named(mara: Mara, tmp_path: Path) -> None:
    failed = mara("eval", tmp_path / "questions.jsonl", "--json")
    assert (failed.code, "--out" in failed.json["error"]["message"]) == (2, True)
