"""``mara tune mark`` and ``mara tune`` on the command line: one thing at a time, in words and as JSON."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.schema import RelationType
from graph.storage.marks import read_marks
from graph.storage.workspace import Workspace
from graph.walk.strengths import TUNED_RELATIONS, Tuning, adopt, workspace_tuning
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


def strong(relation: RelationType) -> Tuning:
    strengths = {each: 2.0 if each is relation else 1.0 for each in TUNED_RELATIONS}
    return Tuning(0, strengths, 0, {"questions": 20}, 0.5, 0.75)


class TestFeedback:
    def test_a_mark_is_recorded_listed_and_forgotten(self, mara: Mara, root: Path) -> None:
        named = ("--question", QUESTION, "--passage", "[velm]")
        assert "new 1" in mara("tune", "mark", "-w", root, *named).out
        assert mara("tune", "mark", "-w", root, "--list").out.strip() == f"+ [velm] person {QUESTION}"
        assert "changed 1" in mara("tune", "mark", "-w", root, *named, "--did-not-serve").out
        assert mara("tune", "mark", "-w", root, "--list", "--kind", "person").out.startswith("- [velm]")
        assert "1 marks forgotten" in mara("tune", "mark", "-w", root, "--forget", "--passage", "[velm]").out
        assert "No such mark" in mara("tune", "mark", "-w", root, "--list").out
        assert read_marks(root) == []

    def test_what_is_not_one_thing_is_refused(self, mara: Mara, root: Path) -> None:
        for options in [
            (),
            ("--question", QUESTION),
            ("--list", "--forget"),
            ("run", "--did-not-serve"),
            ("--list", "--did-not-serve"),
            ("--forget",),
            ("--question", QUESTION, "--passage", "[velm]", "--kind", "gold"),
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
        assert "Version 0 stays" in shown.out

    def test_what_holds_up_is_told_with_what_undoes_it(
        self, mara: Mara, marked: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = mara("tune", "-w", marked, "--dry-run", "--seed", "3", "--json")
        assert outcome.code == 0
        tuning = outcome.json
        assert tuning["adopted"] is False
        assert (tuning["settings"]["held_out"], tuning["settings"]["seed"]) == (N // 2, 3)
        tuning |= {"refusal": "", "fallbacks": 3}
        tuning["strengths"]["TEMPORAL"] = 0.25
        monkeypatch.setattr(tune, "tune_workspace", lambda *_, **options: tuning)
        for adopted, said in (
            (True, "Adopted as version 1; `mara tune --revert 0` undoes it"),
            (False, "Worth adopting"),
        ):
            tuning |= {"adopted": adopted, "version": int(adopted)}
            shown = mara("tune", "-w", marked).out
            assert said in shown
            assert "strengths fitted: TEMPORAL x0.25" in shown
            assert "fallbacks: 3" in shown
            assert "0 questions gained, 0 lost" in shown

    def test_versions_are_listed_and_gone_back_to(self, mara: Mara, root: Path) -> None:
        made = adopt(root, strong(RelationType.TEMPORAL))
        shown = mara("tune", "-w", root, "--history").out
        assert "  version 0: all 1 (untuned)" in shown
        assert "● version 1: TEMPORAL x2" in shown
        assert "held-out recall 0.500 → 0.750" in shown
        assert "Version 1 → version 0: all 1" in mara("tune", "-w", root, "--revert", "0").out
        assert workspace_tuning(root).version == 0
        assert mara("tune", "-w", root, "--revert", "1", "--json").json["strengths"]["TEMPORAL"] == 2.0
        assert workspace_tuning(root) == made
        assert mara("tune", "-w", root, "--history", "--json").json["current"] == 1
        (root / "tuning.json").write_text("{}")
        assert mara("tune", "-w", root, "--history").code == 4

    def test_what_cannot_be_done_exits_with_2(self, mara: Mara, root: Path) -> None:
        for options in [(), ("--revert", "7"), ("--history", "--dry-run"), ("--history", "--revert", "0")]:
            refused = mara("tune", "-w", root, "--json", *options)
            assert refused.code == 2, options
            assert refused.json["error"]["kind"] == "BadInput", options
