"""A plot of the walk's times: by way, setting and graph."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.walk_report import short
from benchmarks.walk_results import Results
from benchmarks.walk_timing import Table
from benchmarks.walkers import WALKERS
from graph.errors import DependencyMissing

_SHOWN = [name for name in WALKERS if name != "auto"][::-1]


def check_plots() -> None:
    """Raise DependencyMissing where matplotlib is not installed."""
    if not find_spec("matplotlib"):
        raise DependencyMissing("The plot needs matplotlib", "Install it with `pip install 'mara-rag[plots]'`")


def plot(results: Results, path: Path) -> None:
    """Draw medians with a line up to the 95th percentile, one panel a setting, on a logarithmic axis."""
    check_plots()
    from matplotlib.figure import Figure

    settings = [table.setting for table in results.graphs[0].tables]
    figure = Figure(figsize=(4.2 * len(settings), 3.6), layout="constrained")
    panels = figure.subplots(1, len(settings), sharey=True, sharex=True, squeeze=False)[0]
    for number, (panel, setting) in enumerate(zip(panels, settings, strict=True)):
        for place, graph in enumerate(results.graphs):
            _points(panel, graph.tables[number], graph.name, 6 if place % 2 == 0 else -12)
        panel.set_title(setting, fontsize=9)
        panel.set_xscale("log")
        panel.set_xlabel("ms a question", fontsize=8)
        panel.set_yticks(range(len(_SHOWN)), _SHOWN, fontsize=8)
        panel.grid(axis="x", alpha=0.3)
        panel.margins(x=0.12, y=0.15)
    panels[-1].legend(fontsize=8)
    figure.savefig(path, dpi=150)


def _points(panel: Any, table: Table, label: str, height: int) -> None:
    """Draw the median of each way as a point, with its figure so many points above."""
    found = [series for series in table.series if series.walker in _SHOWN]
    places = [_SHOWN.index(series.walker) for series in found]
    medians = np.array([np.median(series.ms) for series in found])
    late = np.array([np.percentile(series.ms, 95) for series in found])
    panel.errorbar(medians, places, xerr=[0 * medians, np.maximum(0, late - medians)], fmt="o", ms=5, label=label)
    for place, median in zip(places, medians, strict=True):
        text = short(median)
        panel.annotate(text, (median, place), (0, height), textcoords="offset points", ha="center", fontsize=7)
