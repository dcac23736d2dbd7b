"""The plots of a run: what they draw, and that they need no window, no warning and no global state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases import refuse_warnings
from workflows.evaluation import plots
from workflows.evaluation.compare import Difference

pytest.importorskip("matplotlib")

CURVE = {1: 0.2, 2: 0.4, 5: 0.6, 10: 0.7, 20: 0.8}


@pytest.fixture(autouse=True)
def no_warning_is_raised() -> None:
    refuse_warnings()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Keep the figures that are saved, beside saving them with few pixels."""
    from matplotlib.figure import Figure

    figures: list[Any] = []
    save = Figure.savefig

    def keep(self: Any, path: Path, **options: Any) -> None:
        figures.append(self)
        save(self, path, **{**options, "dpi": 20})

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


def difference(metric: str, middle: float | None, low: float | None, high: float | None) -> Difference:
    return Difference(metric, 10, 0.5, 0.5, middle, low, high)


def labels(figure: Any) -> list[str]:
    return [
        text.get_text() for legend in (*figure.legends, figure.axes[0].get_legend()) if legend for text in legend.texts
    ]


def test_recall_is_a_line_a_system_and_controls_are_dashed(tmp_path: Path, drawn: list[Any]) -> None:
    plots.draw_recall(tmp_path / "r.png", {"mara": CURVE, "mara+oracle-beta": CURVE}, ["mara+oracle-beta"])
    assert is_png(tmp_path / "r.png")
    lines = drawn[0].axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--"]
    assert list(lines[0].get_ydata()) == list(CURVE.values())
    assert [text.get_text() for text in drawn[0].axes[0].get_xticklabels()] == ["1", "2", "5", "10", "20"]


def test_no_more_systems_are_drawn_than_can_be_told_apart(tmp_path: Path, drawn: list[Any]) -> None:
    plots.draw_recall(tmp_path / "r.png", {f"system {n}": CURVE for n in range(20)})
    lines = drawn[0].axes[0].lines
    assert len(lines) == len({(line.get_color(), line.get_marker()) for line in lines}) == plots.MOST_CURVES


def test_differences_have_a_panel_a_metric_and_a_row_a_system(tmp_path: Path, drawn: list[Any]) -> None:
    found = {
        "dense": [difference("recall@5", -0.2, -0.3, -0.1), difference("mrr", 0.1, -0.1, 0.3)],
        "mara+oracle-beta": [difference("recall@5", 0.2, 0.1, 0.3), difference("mrr", 0.2, 0.1, 0.3)],
    }
    plots.draw_differences(tmp_path / "d.png", found, "mara", ["mara+oracle-beta"])
    assert is_png(tmp_path / "d.png")
    recall, mrr = drawn[0].axes
    assert [panel.get_title() for panel in (recall, mrr)] == ["recall@5", "mrr"]
    assert [text.get_text() for text in recall.get_yticklabels()] == ["dense", "mara+oracle-beta"]
    _, worse, worse_point, better, better_point = recall.lines
    assert list(worse.get_xdata()) == [-0.3, -0.1]
    assert worse_point.get_xdata()[0] == -0.2
    assert better_point.get_markerfacecolor() == "white"
    assert len({worse.get_color(), better.get_color(), mrr.lines[1].get_color()}) == 3


def test_a_metric_without_a_difference_or_an_interval_is_drawn_as_far_as_it_goes(
    tmp_path: Path, drawn: list[Any]
) -> None:
    found = {"dense": [difference("em", None, None, None)], "sparse": [difference("em", 0.5, None, None)]}
    plots.draw_differences(tmp_path / "d.png", found, "mara")
    assert [list(line.get_xdata()) for line in drawn[0].axes[0].lines[1:]] == [[0.5, 0.5], [0.5]]


def test_latency_stacks_the_nodes_and_marks_the_whole(tmp_path: Path, drawn: list[Any]) -> None:
    latency: dict[str, dict[str, Any]] = {
        "mara": {"total": {"p50": 9.0}, "nodes": {"walk_graph": {"p50": 6.0}, "seed_graph": {"p50": 4.0}}},
        "dense": {"total": None, "nodes": {"walk_graph": {"p50": 2.0}, "weigh_relations": {"p50": 0.01}}},
    }
    plots.draw_latency(tmp_path / "l.png", latency)
    assert is_png(tmp_path / "l.png")
    panel = drawn[0].axes[0]
    bars = [[(bar.get_x(), bar.get_width()) for bar in group] for group in panel.containers]
    assert bars[:2] == [[(0, 6.0), (0, 2.0)], [(6.0, 4.0), (2.0, 0.0)]]
    assert bars[2] == [(10.0, 0.0), (2.0, pytest.approx(0.01))]
    assert list(panel.lines[0].get_xdata()) == [9.0]
    assert set(labels(drawn[0])) == {"walk graph", "seed graph", "others", "whole question"}


def test_many_nodes_are_told_apart_by_colour_and_hatch(tmp_path: Path, drawn: list[Any]) -> None:
    nodes = {f"node_{n}": {"p50": 1.0} for n in range(20)}
    plots.draw_latency(tmp_path / "l.png", {"mara": {"total": {"p50": 20.0}, "nodes": nodes}})
    looks = {(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in drawn[0].axes[0].containers}
    assert len(looks) == 20


def test_latency_of_nothing_draws_an_empty_bar(tmp_path: Path) -> None:
    plots.draw_latency(tmp_path / "l.png", {"mara": {"total": {"p50": 1.0}, "nodes": {}}})
    assert is_png(tmp_path / "l.png")


def test_names_are_taken_literally(tmp_path: Path, drawn: list[Any]) -> None:
    plots.draw_recall(tmp_path / "r.png", {"_a+model=$x$_{": CURVE, "b$": CURVE})
    assert labels(drawn[0]) == [r"a+model=\$x\$_{", r"b\$"]


def test_matplotlib_is_loaded_only_where_something_is_drawn() -> None:
    check = "import sys, workflows.evaluation.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
