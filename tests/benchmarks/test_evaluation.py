"""The command that measures the development sets, on small ones, and the tables that it writes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation import __main__ as command
from benchmarks.evaluation import tables
from benchmarks.evaluation.sets import QUESTION_SETS, after_the_turn_before, first_turn, later_turn
from graph.retrieve.modes import Mode
from tests.builders import HashEmbedder
from tests.workflows.evaluation.river_run import QUESTIONS, rows_in
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import ROWS, use_embedder
from workflows.runs.run_folder import load_run
from workflows.runtime.resources import close_indexes

TURNS: list[dict[str, Any]] = [
    {"id": "t1", "turn": 1, "question": "What is the Velm?", "messages": [], "gold_ids": ["velm"]},
    {
        "id": "t2",
        "turn": 2,
        "question": "And into which lake does it flow?",
        "messages": [{"role": "user", "content": "What is the Velm?"}, {"role": "assistant", "content": "A river."}],
        "gold_ids": ["velm", "sund"],
    },
    {
        "id": "t3",
        "turn": 2,
        "question": "Who likes it?",
        "messages": [{"role": "user", "content": "Hm"}],
        "gold_ids": [],
    },
]
EMPTY_PAGE = "# Page\n<!-- from the code: measured modes -->\n<!-- end -->\n"
SWITCHED = ("mara+no-names", "mara+uniform-beta", "mara+oracle-beta")


@dataclass(frozen=True)
class Place:
    """Small development sets, a page to write, and the command on them."""

    folder: Path

    def run(self, *options: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            use_embedder(patch, HashEmbedder())
            patch.setattr(command, "ABLATIONS", SWITCHED)
            patch.setattr(command, "ROOT", self.folder)
            patch.setattr(tables, "FIGURES", self.folder / "figures.jsonl")
            runs = self.folder / "runs"
            patch.setattr(sys, "argv", ["evaluation", str(self.folder / "data"), "--out", str(runs), *options])
            command.main()
        close_indexes()

    @property
    def figures(self) -> list[dict[str, Any]]:
        return rows_in(self.folder / "figures.jsonl")

    @property
    def page(self) -> str:
        return (self.folder / "README.md").read_text(encoding="utf-8")


def place_in(folder: Path) -> Place:
    """Write the three sets, of five passages each, and a page with a place for figures."""
    gold = [row for row in QUESTIONS if row.get("gold_ids")]
    for name, questions in (("musique_train100", gold), ("hotpot_train100", gold), ("mtrag_dev", TURNS)):
        (folder / "data" / name).mkdir(parents=True)
        write_lines(folder / "data" / name / "corpus.jsonl", ROWS)
        write_lines(folder / "data" / name / "questions.jsonl", questions)
    triples = [["Velm", "flows into", "Lake Sund"]]
    imported = [{"id": row["id"], "entities": ["Velm"], "triples": triples} for row in ROWS]
    write_lines(folder / "data" / "musique_train100" / "openie.jsonl", imported)
    (folder / "README.md").write_text(EMPTY_PAGE, encoding="utf-8")
    return Place(folder)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """All sets, measured once."""
    place = place_in(tmp_path_factory.mktemp("measured"))
    place.run()
    return place


def test_a_turn_is_asked_alone_or_after_the_users_turn_before() -> None:
    first, later, _ = TURNS
    assert [first_turn(row) for row in TURNS] == [first, None, None]
    assert [later_turn(row) for row in TURNS] == [None, later, None]
    before = [after_the_turn_before(row) for row in TURNS]
    assert before == [None, {**later, "question": "What is the Velm? And into which lake does it flow?"}, None]


def test_all_sets_are_measured_and_a_page_shows_it(measured: Place) -> None:
    figures = measured.figures
    assert [each["name"] for each in figures] == [each.name for each in QUESTION_SETS]
    assert [each["questions"] for each in figures] == [5, 5, 1, 1, 1, 5, 5]
    for each in figures:
        ablated = each["name"] in tables.MAIN
        assert list(each["systems"]) == [*(mode.value for mode in Mode), *(SWITCHED if ablated else ())]
        told = load_run(measured.folder / "runs" / each["name"]).metrics["systems"]["mara"]
        found = each["systems"]["mara"]
        assert (found["recall"]["5"], found["all_gold"]["5"]) == (told["recall"]["5"], told["all_gold"]["5"])
        less_hybrid = found["recall"]["5"] - each["systems"]["hybrid"]["recall"]["5"]
        assert found["less"]["hybrid"]["recall@5"][0] == pytest.approx(less_hybrid, abs=1e-6)
    assert f"\n\n{tables.modes_table(figures)}\n\n" in measured.page
