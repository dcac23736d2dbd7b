from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.growth.report import Quantity, fit, number, report, table


def test_a_power_is_found_and_carried_on() -> None:
    growth = fit([10, 100, 1_000], [2, 2 * 10**1.5, 2 * 100**1.5])
    assert growth is not None
    assert growth.exponent == pytest.approx(1.5)
    assert growth.at(10_000) == pytest.approx(2 * 1_000**1.5)


def test_what_was_nothing_somewhere_has_no_exponent() -> None:
    assert fit([10, 100, 1_000], [0.0, 1, 2]) is None


def test_a_stage_that_failed_leaves_its_cells_empty_and_the_others_stand(tmp_path: Path) -> None:
    for size in (10, 100, 1_000):
        (tmp_path / str(size)).mkdir()
        stages = {"names": size / 10}
        figures = {"size": size, "publish": {"stages": stages, "seconds": size}, "ask": {"error": "no memory"}}
        (tmp_path / str(size) / "figures.json").write_text(json.dumps(figures))
    text = report(tmp_path)
    assert "| build: names | s | 1.0 | 10.0 | 100 | 1.00 | 1,000,000 |" in text
    assert "| a question, p50 | ms |  |  |  |  |  |" in text


def test_the_exponent_is_that_of_the_largest_three_sizes() -> None:
    sizes = [{"size": size, "v": value} for size, value in ((1, 50.0), (10, 100.0), (100, 1_000.0), (1_000, 10_000.0))]
    assert table(sizes, [Quantity("v", "", lambda f: f["v"])]).splitlines()[-1].split(" | ")[-2] == "1.00"


def test_numbers_have_as_many_figures_as_count() -> None:
    for value, written in [(None, ""), (0.01234, "0.0123"), (1.26, "1.3"), (99.96, "100.0"), (1234.5, "1,234")]:
        assert number(value) == written, value
