"""The doctor on the command line: findings in words and as JSON, an exit code, and repairs without a model."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agents.chat import local_model
from tests.builders import HOLD_LOCK, Child, passage_of, publish_workspace
from tests.damages import read_at_once, refuse_to_embed
from tests.workflows.command_line import Mara, Outcome

Doctor = Callable[..., Outcome]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "workspace"
    return publish_workspace(root, [passage_of("[ab]", "Title ab", "text")], {"[ab]": [("ab", "is", "[text]")]}).root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "workspace"))


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, mara: Mara) -> Doctor:
    """Run the command in this process, where no embedding model can be had."""

    refuse_to_embed(monkeypatch)
    read_at_once(monkeypatch)

    def run(root: Path, *options: str) -> Outcome:
        return mara("doctor", "--workspace", root, *options)

    return run


def test_a_whole_workspace_exits_with_0(doctor: Doctor, root: Path) -> None:
    report = doctor(root)
    assert (report.code, report.err) == (0, "")
    assert report.out.rstrip().endswith("is in order")
    assert "✗" not in report.out
    printed = doctor(root, "--json")
    assert printed.code == 0
    assert printed.json["ok"] is True
    assert printed.json["generation"] == 1
    assert all(finding["ok"] for finding in printed.json["findings"])
    failed = doctor(root / "nowhere", "--json")
    assert (failed.code, failed.json["error"]["kind"]) == (2, "WorkspaceMissing")


def test_the_chat_model_is_named_and_what_it_lacks_is_no_fault_of_the_workspace(
    doctor: Doctor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "✓ chat model: none is configured, the offline agents answer" in doctor(root).out
    monkeypatch.setenv("MARA_CHAT_MODEL", "local")
    monkeypatch.setattr(local_model, "find_spec", lambda _: None)
    report = doctor(root)
    assert report.code == 0
    assert "✗ chat model: A local model needs the package xllamacpp, which is not installed" in report.out
    assert "make local" in report.out
    printed = doctor(root, "--json").json["chat_model"]
    assert (printed["name"], printed["ok"]) == ("local:SmolLM2-135M-Instruct.Q4_1", False)


def test_problems_exit_with_4_and_are_told_with_what_repairs_them_if_anything_does(doctor: Doctor, root: Path) -> None:
    shutil.rmtree(root / "index" / "1" / "bm25")
    report = doctor(root)
    assert report.code == 4
    assert "✗ snapshot: The snapshot cannot be read" in report.out
    assert "Problems: 1; `mara doctor --repair` puts 1 of them right" in report.out
    printed = doctor(root, "--json")
    (problem,) = [finding for finding in printed.json["findings"] if not finding["ok"]]
    assert problem.keys() == {"check", "ok", "message", "repairable", "advice", "examples"}
    assert (printed.code, problem["repairable"]) == (4, True)
    with closing(sqlite3.connect(root / "record.sqlite")) as db, db:
        db.execute("UPDATE passages SET triples = '['")
    report = doctor(root, "--repair")
    assert report.code == 4
    assert "✗ passages: 1 passages cannot be read, or are not what was written" in report.out
    assert "[ab]" in report.out, "ids are shown as they are, brackets and all"
    assert "mara index" in report.out


def test_a_repair_tells_what_was_done_and_what_is_now(doctor: Doctor, root: Path) -> None:
    shutil.copytree(root, root.with_name("other"))
    for place in (root, root.with_name("other")):
        (place / "CURRENT").unlink()
    shown = doctor(root, "--repair")
    assert shown.code == 0
    assert shown.out.index("→ Derived") < shown.out.index("is in order")
    printed = doctor(root.with_name("other"), "--repair", "--json").json
    assert printed["ok"] is True
    assert printed["before"]["ok"] is False
    assert len(printed["done"]) >= 1
    again = doctor(root, "--repair").out
    assert "→ Nothing was done" in again


@pytest.mark.slow
def test_a_repair_beside_a_writer_is_refused(doctor: Doctor, root: Path) -> None:
    shutil.rmtree(root / "index" / "1" / "bm25")
    with Child(HOLD_LOCK, root) as writer:
        assert writer.hear() == "locked"
        failed = doctor(root, "--repair", "--json")
    assert (failed.code, failed.json["error"]["kind"]) == (4, "WorkspaceLocked")
