"""Training data for a manager: question, β and outcome of a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.manager import ManagerReply, manager_messages
from tests.workflows.command_line import Mara
from tests.workflows.evaluation.compared_rows import TEMPORAL, row, write_run

BETA = {"entity_entity": TEMPORAL, "entity_passage": {"PRIMARY": 0.6, "SECONDARY": 0.3, "PERIPHERAL": 0.1}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of a system with β, found in full, by half and for a question without gold, and of one without β."""
    walked = [row("full", "a b", relation_factors=BETA, passage_weight=0.02, f1=0.5)]
    walked.append(row("half", "x a", relation_factors=BETA, passage_weight=1.0))
    walked.append(row("no gold", "x a", gold="", relation_factors=BETA))
    dense = [row(each["id"], "a b", (each["gold_ids"] and "a b") or "") for each in walked]
    return write_run(tmp_path / "run", {"mara": walked, "dense": dense}).folder


def test_each_question_with_beta_becomes_an_example_with_its_outcome(mara: Mara, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "beta.jsonl"
    summary = mara("eval", "export", "--beta", run, "--out", file, "--json").json
    assert summary == {"file": str(file), "written": 3, "without_beta": 3, "below": 0}
    first, second, third = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    assert first["outcome"] == {"id": "full", "system": "mara", "recall@5": 1.0, "mrr": 1.0, "f1": 0.5}
    assert (second["outcome"]["recall@5"], second["outcome"]["mrr"], third["outcome"]["recall@5"]) == (0.5, 0.5, None)
    sent = [message.content for message in manager_messages("What is full?")]
    assert [message["role"] for message in first["messages"]] == ["system", "user", "assistant"]
    assert [message["content"] for message in first["messages"][:2]] == sent
    reply = ManagerReply.model_validate_json(first["messages"][2]["content"])
    assert reply.model_dump() == {**BETA, "passage_weight": 0.02}
    assert json.loads(second["messages"][2]["content"])["passage_weight"] == 0.05, "1.0 is no manager's to choose"


def test_an_impossible_export_is_refused(mara: Mara, run: Path, tmp_path: Path) -> None:
    cases = [(f"{run}:dense", "has a β"), (f"{run}:sparse", "has no system 'sparse'"), ("nowhere", "There is no run")]
    for which, said in cases:
        done = mara("eval", "export", "--beta", which, "--out", tmp_path / "beta.jsonl")
        assert (done.code, said in " ".join(done.err.split())) == (2, True), which
    assert not (tmp_path / "beta.jsonl").exists()
