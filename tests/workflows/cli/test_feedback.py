"""``mara tune mark`` and ``mara tune`` on the command line: one thing at a time, in words and as JSON."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.schema import RelationType
from graph.storage.marks import read_marks
from graph.storage.workspace import Workspace
from graph.walk.strengths import UNTUNED, adopt, workspace_tuning
from tests.builders import TripleParts, passage_of, publish_workspace
from tests.workflows.command_line import Mara
from tests.workflows.evaluation import compared_rows
from workflows.runtime.resources import close_indexes
from workflows.tuning import tune

pytestmark = pytest.mark.usefixtures("embedder")

N = 10
QUESTION = "Where is [velm]?"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ["[velm]", *(f"river{number}" for number in range(N))]
    triples: dict[str, list[TripleParts]] = {name: [(name, "flows into", f"sea of {name}")] for name in names}
    passages = [passage_of(name, name, f"{name} is a river.") for name in names]
    return publish_workspace(tmp_path_factory.mktemp("rivers") / "workspace", passages, triples).root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(template, tmp_path / "workspace"))
    close_indexes()


@pytest.fixture
def marked(root: Path, tmp_path: Path, mara: Mara, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace with as many marked questions as tuning needs, which are fewer than usual."""
    monkeypatch.setattr(tune, "FEWEST_QUESTIONS", N)
    questions = {f"river{number}": f"Where is river{number}?" for number in range(N)}
    rows = [compared_rows.row(river, "", river, question=question) for river, question in questions.items()]
    with Workspace(root).open_record() as record:
        run = compared_rows.write_run(tmp_path / "run", {"mara": rows}, workspace_id=record.workspace_id)
    assert mara("tune", "mark", run.folder, "-w", root).code == 0
    return root


class TestFeedback:
    def test_a_mark_is_recorded_listed_and_forgotten(self, mara: Mara, root: Path) -> None:
        named = ("--question", QUESTION, "--passage", "[velm]")
        assert "recorded: 1" in mara("tune", "mark", "-w", root, *named).out
        assert mara("tune", "mark", "-w", root, "--list").out.strip() == f"+ [velm] person {QUESTION}"
        mara("tune", "mark", "-w", root, *named, "--did-not-serve")
        assert mara("tune", "mark", "-w", root, "--list").out.startswith("- [velm]")
        assert "forgotten: 1" in mara("tune", "mark", "-w", root, "--forget", "--passage", "[velm]").out
        assert read_marks(root) == []

    def test_what_is_not_one_thing_is_refused(self, mara: Mara, root: Path) -> None:
        for options in [
            (),
            ("--question", QUESTION),
            ("--list", "--forget"),
            ("run", "--question", QUESTION, "--passage", "[velm]"),
            ("--forget",),
            ("--question", QUESTION, "--passage", "gone"),
            ("run",),
        ]:
            refused = mara("tune", "mark", "-w", root, "--json", *options)
            assert refused.code == 2, options
            assert refused.json["error"]["kind"] == "BadInput", options
            assert refused.json["error"]["hint"], options
            assert read_marks(root) == [], options


class TestTune:
    def test_a_refusal_exits_with_0_and_says_why(self, mara: Mara, marked: Path) -> None:
        shown = mara("tune", "-w", marked, "--model", "offline")
        assert shown.code == 0
        assert "Refused: No other strength" in shown.out

    def test_what_holds_up_is_told_with_what_undoes_it(
        self, mara: Mara, marked: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = mara("tune", "-w", marked, "--json")
        assert outcome.code == 0
        tuning = outcome.json
        assert (tuning["adopted"], tuning["held_out"]) == (False, N // 2)
        tuning |= {"refusal": "", "adopted": True, "version": 1}
        tuning["strengths"]["TEMPORAL"] = 0.25
        monkeypatch.setattr(tune, "tune_workspace", lambda *_: tuning)
        shown = mara("tune", "-w", marked).out
        assert "Adopted; `mara tune --revert` undoes it" in shown
        assert "strengths fitted: TEMPORAL x0.25" in shown

    def test_a_tuning_is_taken_back(self, mara: Mara, root: Path) -> None:
        adopt(root, {RelationType.TEMPORAL: 2.0}, 0.5, 0.75)
        assert "untuned" in mara("tune", "-w", root, "--revert").out
        assert workspace_tuning(root) == UNTUNED
        (root / "tuning.json").write_text("{}")
        assert mara("tune", "-w", root, "--revert").code == 4

    def test_too_few_marks_exit_with_2(self, mara: Mara, root: Path) -> None:
        refused = mara("tune", "-w", root, "--json")
        assert refused.code == 2
        assert refused.json["error"]["kind"] == "BadInput"
