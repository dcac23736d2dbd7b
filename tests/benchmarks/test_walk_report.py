from __future__ import annotations

import pytest

from benchmarks.fresh import Memory
from benchmarks.machine import Machine
from benchmarks.walk_report import GraphResult, Results, report
from benchmarks.walk_timing import Agreement, Series, Table


def series(walker: str, ms: list[float], engine: str = "igraph", overlap: float = 1.0) -> Series:
    found = Agreement(dict.fromkeys((5, 20, 100), overlap == 1), dict.fromkeys((5, 20, 100), overlap), 0.25, 0.5)
    return Series(walker, [engine] * len(ms), ms, [1_000_000] * len(ms), [found] * len(ms))


@pytest.fixture
def results() -> Results:
    table = Table(
        "undirected",
        True,
        [
            series("published", [400.0]),
            series("igraph", [100.0, 200.0, 900.0]),
            series("matrix", [10.0, 10.0, 10.0, 10.0], "matrix"),
            series("auto", [1.0, 1.0, 1.0, 1.0], "push", overlap=0.9),
        ],
    )
    graph = GraphResult(
        name="size 1",
        entities=100,
        passages=10,
        edges=1_048_576,
        array_bytes=30 * 1_048_576,
        derived_seconds=0.25,
        igraph_seconds=1.5,
        tables=[table],
        memory={"push": Memory(130 * 1024**2, 20 * 1024**2, 180 * 1024**2)},
    )
    return Results(
        machine=Machine("A processor", 2, 8 * 1024**3, {"L2": "1024K"}, "Linux x86_64", {"python": "3.11.0"}, 0.1),
        seed=7,
        seconds=600.0,
        graphs=[graph],
    )


def row(text: str, start: str) -> list[str]:
    """Return the cells of the first line that begins with these cells."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_way_has_its_median_quartiles_and_percentile(results: Results) -> None:
    assert row(report(results), "igraph | 3")[2:5] == ["200", "150 – 550", "830"]


def test_ratios_are_over_the_questions_that_both_were_asked(results: Results) -> None:
    assert row(report(results), "matrix | 4")[5:] == ["20.0", "40.0"]
    assert row(report(results), "igraph | 3")[5:] == ["1.00", "4.00"]


def test_agreement_is_in_percent_and_the_reference_is_left_out(results: Results) -> None:
    agreement = report(results).split("against PRPACK")[1]
    assert row(agreement, "auto (push) | 4")[2:] == [
        "0 / 0 / 0",
        "0 / 0 / 0",
        "90.0 / 90.0 / 90.0",
        "2.5e-01",
        "2.5e-01",
        "5.0e-01",
        "yes",
    ]
    assert "| igraph |" not in agreement.split("###")[0]
