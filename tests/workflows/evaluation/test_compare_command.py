"""``mara eval compare`` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.command_line import Mara
from tests.workflows.evaluation.compared_rows import row, write_run

GOOD = [row(f"q{n}", "a b x") for n in range(12)]
POOR = [row(f"q{n}", "x a y") for n in range(12)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two systems."""
    return write_run(tmp_path / "run", {"mara": GOOD, "dense": POOR}).folder


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A later run of one of them, and of another, by other settings."""
    return write_run(tmp_path / "other", {"mara": POOR, "sparse": POOR}, generation=4).folder


def test_two_systems_of_one_run_are_compared(mara: Mara, run: Path) -> None:
    done = mara("eval", "compare", f"{run}:dense", f"{run}:mara")
    assert done.code == 0
    assert "B wins 12 questions, loses 0, 0 are equal" in done.out
    line = next(line for line in done.out.splitlines() if line.startswith("recall@5"))
    assert line.split() == ["recall@5", "12", "0.500", "1.000", "+0.500", "[+0.500,", "+0.500]", "0.004"]


def test_a_folder_stands_for_the_system_of_the_same_name_or_for_its_only_one(
    mara: Mara, run: Path, other: Path, tmp_path: Path
) -> None:
    def names(*sides: str | Path) -> tuple[str, str]:
        (compared,) = mara("eval", "compare", *sides, "--json").json["comparisons"]
        return compared["a"], compared["b"]

    assert names(f"{run}:mara", other) == (f"{run}:mara", f"{other}:mara")
    single = write_run(tmp_path / "single", {"mara+no-beta": GOOD}).folder
    assert names(single, f"{run}:dense") == (f"{single}:mara+no-beta", f"{run}:dense")


def test_an_impossible_comparison_is_refused_with_a_hint(mara: Mara, run: Path, other: Path, tmp_path: Path) -> None:
    elsewhere = write_run(tmp_path / "elsewhere", {"mara": [row("z1", "a")]}).folder
    for sides, says, hint in (
        ((f"{run}:sparse", run), "no system 'sparse'", "mara, dense"),
        ((f"{run}:dense", other), "is not clear", f"{other}:sparse"),
        ((run, elsewhere), "no question in common", "same question file"),
        ((run, other, "--metric", "recall"), "no metric 'recall'", "all-gold@5"),
    ):
        refused = mara("eval", "compare", *sides, "--json")
        assert refused.code == 2
        assert says in refused.json["error"]["message"]
        assert hint in refused.json["error"]["hint"]
