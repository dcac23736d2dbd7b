"""``mara eval compare`` on the command line."""

from __future__ import annotations

import json
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
    assert "B is better on recall@5: +0.500" in done.out
    line = next(line for line in done.out.splitlines() if line.startswith("recall@5"))
    assert line.split() == ["recall@5", "12", "0.500", "1.000", "+0.500", "[+0.500,", "+0.500]", "0.004"]


def test_json_holds_everything(mara: Mara, run: Path) -> None:
    (found,) = mara("eval", "compare", f"{run}:dense", f"{run}:mara", "--json").json["comparisons"]
    assert (found["a"], found["b"], found["paired"]) == (f"{run}:dense", f"{run}:mara", 12)
    assert [each["id"] for each in found["won"]] == [f"q{n}" for n in range(12)]
    assert found["won"][0]["b"]["passages"] == ["a", "b", "x"]
    assert found["won"][0]["b"]["gold"] == [True, True, False]
    assert ["system.mode", "dense", "mara"] in found["settings"]
    assert list(found["groups"]) == ["type", "hops", "relation"]


def test_systems_of_the_same_name_are_compared_where_folders_are_given(mara: Mara, run: Path, other: Path) -> None:
    (found,) = mara("eval", "compare", run, other, "--json").json["comparisons"]
    assert (found["a"], found["b"]) == (f"{run}:mara", f"{other}:mara")
    assert len(found["lost"]) == 12
    assert found["settings"] == [["generation", 3, 4]]


def test_a_folder_stands_for_the_system_of_the_same_name_or_for_its_only_one(
    mara: Mara, run: Path, other: Path, tmp_path: Path
) -> None:
    def names(*sides: str | Path) -> tuple[str, str]:
        (found,) = mara("eval", "compare", *sides, "--json").json["comparisons"]
        return found["a"], found["b"]

    assert names(f"{run}:mara", other) == (f"{run}:mara", f"{other}:mara")
    single = write_run(tmp_path / "single", {"mara+no-beta": GOOD}).folder
    assert names(single, f"{run}:dense") == (f"{single}:mara+no-beta", f"{run}:dense")


def test_metrics_are_chosen(mara: Mara, run: Path) -> None:
    sides = f"{run}:dense", f"{run}:mara"
    (found,) = mara("eval", "compare", *sides, "--metric", "mrr", "--metric", "recall@2", "--json").json["comparisons"]
    assert [each["metric"] for each in found["metrics"]] == ["recall@2", "mrr"]
    assert "B is better on mrr" in mara("eval", "compare", *sides, "--metric", "mrr").out


def test_a_page_is_written(mara: Mara, run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = mara("eval", "compare", f"{run}:dense", f"{run}:mara", "--out", page)
    assert f"The page is {page}" in done.out
    text = page.read_text(encoding="utf-8")
    assert "## Questions won by B: 12" in text
    assert "| 1 | `x` | `a` \\* |" in text


def test_questions_of_one_run_alone_are_counted_and_left_out(mara: Mara, run: Path, tmp_path: Path) -> None:
    fewer = write_run(tmp_path / "fewer", {"mara": POOR[:5]}).folder
    done = mara("eval", "compare", run, fewer)
    assert "left out: 7 questions that only one was asked" in done.out
    (found,) = mara("eval", "compare", run, fewer, "--json").json["comparisons"]
    assert found["only_a"] == [f"q{n}" for n in range(5, 12)]


def test_failures_are_told(mara: Mara, run: Path, tmp_path: Path) -> None:
    failed = {**POOR[0], "retrieved_ids": [], "failed": {"kind": "MaraError", "message": "no"}}
    broken = write_run(tmp_path / "broken", {"mara": [failed, *POOR[1:]]}).folder
    assert "failed, and counted as nothing found: A 0, B 1" in mara("eval", "compare", run, broken).out


def test_what_cannot_be_compared_is_told_with_what_to_do(mara: Mara, run: Path, other: Path, tmp_path: Path) -> None:
    elsewhere = write_run(tmp_path / "elsewhere", {"mara": [row("z1", "a")]}).folder
    for sides, says, hint in (
        ((run, run), "the same as itself", f"{run}:mara {run}:dense"),
        ((f"{run}:sparse", run), "no system 'sparse'", "mara, dense"),
        ((f"{run}:dense", other), "is not clear", f"{other}:sparse"),
        ((tmp_path / "nothing", run), "no run at", "mara eval"),
        ((f"{tmp_path}/nothing:mara", run), "no run at", "mara eval"),
        ((":mara", run), "no run at", "mara eval"),
        ((run, elsewhere), "no question in common", "same question file"),
        ((run, other, "--metric", "recall"), "no metric 'recall'", "all-gold@5"),
    ):
        refused = mara("eval", "compare", *sides, "--json")
        assert refused.code == 2
        assert says in refused.json["error"]["message"]
        assert hint in refused.json["error"]["hint"]


def test_two_folders_without_a_common_system_need_names(mara: Mara, run: Path, tmp_path: Path) -> None:
    third = write_run(tmp_path / "third", {"sparse": POOR, "hybrid": POOR}).folder
    assert f"{run}:dense" in mara("eval", "compare", run, third, "--json").json["error"]["hint"]


def test_a_row_that_lacks_what_is_compared_is_named(mara: Mara, run: Path, other: Path) -> None:
    lines = (run / "results.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    del first["retrieved_ids"]
    (run / "results.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n", encoding="utf-8")
    refused = mara("eval", "compare", run, other, "--json")
    assert refused.code == 2
    assert "the row of 'q0' lacks retrieved_ids" in refused.json["error"]["message"]


def test_a_page_that_cannot_be_written_is_bad_input(mara: Mara, run: Path, other: Path, tmp_path: Path) -> None:
    assert mara("eval", "compare", run, other, "--out", tmp_path / "no" / "page.md").code == 2
