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


def test_the_readme_has_the_differences_of_the_evaluation_page() -> None:
    lines = [line for line in read(ROOT / "README.md").splitlines() if line.startswith("- `mara` ")]
    less_hybrid, uniform, oracle = (NUMBERS.findall(line) for line in lines)
    for place, heading in enumerate(HEADINGS):
        own = slice(3 * place, 3 * place + 3)
        assert less_hybrid[own] == NUMBERS.findall(cells_of("docs/evaluation.md", f"| {heading} | `mara` |")[3])
        for told, control in ((uniform, "uniform-beta"), (oracle, "oracle-beta")):
            cell = cells_of("docs/evaluation.md", f"| `mara+{control}` |")[3 * place + 2]
            assert told[own] == NUMBERS.findall(cell)
