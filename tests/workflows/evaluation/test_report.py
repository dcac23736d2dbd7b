"""The report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import refuse_warnings
from tests.workflows.evaluation.compared_rows import row, write_run
from workflows.evaluation.report import write_report

GOOD = [row(f"q{n}", "a b x", type="bridge" if n < 6 else "comparison") for n in range(12)]
POOR = [{**each, "retrieved_ids": ["x", "a", "y"], "relation_factors": None} for each in GOOD]


@pytest.fixture(autouse=True)
def no_warning_is_raised() -> None:
    refuse_warnings()


def report(folder: Path, systems: dict[str, list[dict[str, Any]]], **settings: Any) -> str:
    return write_report(write_run(folder, systems, **settings)).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return a section without those that follow on the same or a higher level."""
    level = heading.split()[0]
    own = text.split(f"\n{heading}", 1)[1].split("\n", 1)[1]
    higher = tuple("#" * depth + " " for depth in range(1, len(level) + 1))
    lines = own.splitlines()
    end = next((n for n, line in enumerate(lines) if line.startswith(higher)), len(lines))
    return "\n".join(lines[:end])


def test_retrieval_has_a_row_a_system(tmp_path: Path) -> None:
    table = section(report(tmp_path, {"mara": GOOD, "dense": POOR}), "## Retrieval")
    assert "| system | R@1 | R@2 | R@5 | R@10 | R@20 | all@2 | all@5 | all@10 | MRR | MRR@5 | R@5 − `mara`" in table
    assert f"| `mara` | 0.500 | {' | '.join(['1.000'] * 9)} | – | – |" in table
    recall, all_gold = " | ".join(["0.500"] * 4), " | ".join(["0.000"] * 3)
    assert f"| `dense` | 0.000 | {recall} | {all_gold} | 0.500 | 0.500 | -0.500" in table
    precision = section(report(tmp_path / "b", {"mara": GOOD, "dense": POOR}), "### Precision and F1")
    assert "| system | P@1 | P@2 | P@5 | P@10 | P@20 | F1@1 | F1@2 | F1@5 | F1@10 | F1@20 |" in precision
    poor = "0.000 | 0.500 | 0.200 | 0.100 | 0.050 | 0.000 | 0.500 | 0.286 | 0.167 | 0.091"
    assert f"| `dense` | {poor} |" in precision


def test_controls_stand_apart(tmp_path: Path) -> None:
    text = report(tmp_path, {"dense": POOR, "mara+oracle-filter": GOOD})
    controls = section(text, "### Controls")
    assert "`mara+oracle-filter`" in controls
    assert "\n| `dense`" not in controls
    assert "mara+oracle-filter" not in section(text, "## Retrieval").split("### Controls")[0]


def test_the_table_of_systems_has_the_paired_intervals_to_hybrid(tmp_path: Path) -> None:
    half = [*GOOD[:6], *POOR[6:]]
    text = report(tmp_path, {"mara": GOOD, "hybrid": half, "mara+oracle-beta": POOR})
    table = section(text, "## Retrieval").split("### ")[0]
    assert "| MRR@5 | R@5 − `hybrid` | all@5 − `hybrid` |" in table
    mara, hybrid = (next(line for line in table.splitlines() if f"| `{name}`" in line) for name in ("mara", "hybrid"))
    assert mara.endswith("| +0.250 [+0.125, +0.375] | +0.500 [+0.250, +0.750] |")
    assert hybrid.endswith("| – | – |")
    assert "-0.250 [-0.375, -0.125]" in section(text, "### Controls")


def test_answers_are_told_where_they_were_written(tmp_path: Path) -> None:
    citation = {"number": 1, "passage_id": "a", "supported": True, "gold": False}
    answered = [{**each, "em": 1.0, "f1": 1.0, "refused": False, "citations": [citation]} for each in GOOD]
    refused = [{**each, "em": 0.0, "f1": 0.0, "refused": True} for each in GOOD]
    text = report(tmp_path, {"mara": answered, "dense": refused}, retrieval_only=False)
    answers = section(text, "## Answers")
    assert "| `mara` | 1.000 | 1.000 | 1.000 | 0.000 | 0.000 | 1.000 | 0.000 |" in answers
    assert "| `dense` | 0.000 | 0.000 | 0.000 | 0.000 | 1.000 | – | – |" in answers
    assert "## Answers" not in report(tmp_path / "b", {"mara": GOOD})
