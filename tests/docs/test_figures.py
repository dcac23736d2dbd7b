"""The measured figures: the README tells the same as docs/evaluation.md."""

from __future__ import annotations

import re

from benchmarks.evaluation.tables import MAIN, read_figures
from graph.retrieve.modes import Mode
from tests.docs.pages import ROOT, read

NUMBERS = re.compile(r"[+-]?\d+\.\d+")
HEADINGS = [each["heading"] for each in read_figures() if each["name"] in MAIN]


def cells_of(page: str, start: str) -> list[str]:
    """The cells of the one row of a page's tables that begins so."""
    (row,) = (line for line in read(ROOT / page).splitlines() if line.startswith(start))
    return [cell.strip() for cell in row.removeprefix(start).strip("| ").split("|")]


def test_the_readme_has_the_recall_and_the_all_gold_of_the_evaluation_page() -> None:
    for mode in Mode:
        row = cells_of("README.md", f"| `{mode}` |")
        assert len(row) == 2 * len(HEADINGS)
        for heading, recall, all_gold in zip(HEADINGS, row[::2], row[1::2], strict=True):
            told = cells_of("docs/evaluation.md", f"| {heading} | `{mode}` |")
            assert recall == told[0]
            assert all_gold == NUMBERS.findall(told[1])[1]
