"""The command line asks, counts and exports: results on standard output, in words or as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import mostly_slow
from tests.workflows.command_line import CORPUS, Mara
from workflows.indexing import index_sources


@pytest.fixture(scope="module")
def owned(corpus: Path) -> Path:
    """The same passages with metadata."""
    extra = {"tenant": 7, "year": 1999, "draft": True, "day": "2020-12-31"}
    rows = [{**json.loads(line), **extra} for line in CORPUS.splitlines()]
    path = corpus.parent / "owned" / "corpus.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    index_sources([path], path.parent / "workspace")
    return path.parent / "workspace"


def test_a_question_is_answered_with_its_citation(mara: Mara, workspace: Path) -> None:
    shown = mara("ask", "Into which lake does the Velm flow?", "-w", workspace)
    assert shown.code == 0
    head, _, evidence, *_ = shown.out.splitlines()
    assert head == "Quotes from your documents (not checked by a model):"
    assert "**It flows into Lake Sund.** [1]" in evidence
    assert "● [1] Velm · corpus.jsonl\n" in shown.out
    assert "evidence, no model configured" in shown.out
    verbose = mara("ask", "Into which lake does the Velm flow?", "-w", workspace, "--verbose")
    assert "chat offline, embedding all-MiniLM-L6-v2" in verbose.out


def test_conditions_that_no_passage_meets_are_said_on_paper(mara: Mara, owned: Path) -> None:
    shown = mara("ask", "What flows into Lake Sund?", "-w", owned, "--where", "tenant=8")
    assert shown.code == 0
    assert shown.out.startswith("Not found in the documents.")
    assert "No passage meets the conditions" in shown.out


def test_a_key_that_no_passage_has_is_refused_with_those_that_there_are(
    mara: Mara, owned: Path, tmp_path: Path
) -> None:
    question = "What flows into Lake Sund?"
    for command in (
        ["ask", question],
        ["batch", "--single-question", question, "--out", tmp_path / "out"],
        ["serve", "mcp"],
    ):
        refused = mara(*command, "-w", owned, "--where", "yaer!=1999", "--where", "draft=true")
        assert refused.code == 2, command
        message = " ".join(refused.err.split())
        assert "No passage has metadata called `yaer`" in message, command
        assert "The keys there are: `day`, `draft`, `source`, `tenant`, `year`" in message, command


def test_matrices_are_exported_once_and_again(mara: Mara, workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "export"
    shown = mara("graph", "export", "--format", "matrices", folder, "-w", workspace)
    assert (shown.code, shown.err) == (0, "")
    assert "weighted by counts" in shown.out
    again = mara(
        "graph", "export", "--format", "matrices", folder, "-w", workspace, "--weights", "evidence", "--json"
    ).json
    assert (again["weights"], again["n_passages"]) == ("evidence", 3)
    assert len(list(folder.glob("matrix_*.npz"))) == len(again["matrices"]) == 7
    assert (folder / "graph_metadata.json").exists()


@pytest.mark.slow
def test_the_demo_indexes_the_sample_and_answers_its_questions(mara: Mara, tmp_path: Path) -> None:
    shown = mara("demo", "-w", tmp_path / "demo")
    assert shown.code == 0
    assert "When was Nissan founded?" in shown.out
    assert "1933" in shown.out
    assert "20 questions: recall@5" in shown.out


@pytest.mark.parametrize(
    ("command", "expected"),
    mostly_slow([(("show",), ("passages", 3)), (("ask", "What flows into Lake Sund?"), ("workflow", "mara"))], 1),
)
def test_the_installed_command_runs(workspace: Path, command: tuple[str, ...], expected: tuple[str, object]) -> None:
    installed = Path(sys.executable).with_name("mara")
    done = subprocess.run([installed, *command, "-w", workspace, "--json"], capture_output=True, text=True, check=True)
    assert expected in json.loads(done.stdout).items()
    assert done.stderr == ""
