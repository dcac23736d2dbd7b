"""The plots of a run: recall by depth, differences with their intervals, and latency by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflows.evaluation.compare import Difference
from workflows.output.plotting import COLOURS, DPI, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CURVES = 8
"""Systems whose recall is drawn: as many as there are colours that all readers can tell apart."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "xxx")
_ROW = 0.28
_SMALLEST_SHARE = 0.01


def draw_recall(path: Path, recall: Mapping[str, Mapping[int, float]], controls: Sequence[str] = ()) -> None:
    """Draw recall by the number of passages, a line a system, on a logarithmic axis; controls are dashed and hollow.

    Args:
        path: a PNG file to write.
        recall: system -> depth -> recall in [0, 1]; the first ``MOST_CURVES`` are drawn.
        controls: systems that are controls.
    """
    figure = new_figure(6.4, 4.2)
    panel: Any = figure.subplots()
    for place, (system, curve) in enumerate(list(recall.items())[:MOST_CURVES]):
        style = "--" if system in controls else "-"
        look: dict[str, Any] = {"color": COLOURS[place], "marker": _MARKERS[place], "linestyle": style, "markersize": 5}
        look["markerfacecolor"] = "white" if system in controls else COLOURS[place]
        panel.plot(list(curve), list(curve.values()), label=_label(system), **look)
    depths = sorted({depth for curve in recall.values() for depth in curve})
    panel.set_xscale("log")
    panel.set_xticks(depths, [str(depth) for depth in depths])
    panel.minorticks_off()
    panel.set(xlabel="passages retrieved (k)", ylabel="recall@k")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8, loc="lower right", handlelength=3.5)
    figure.savefig(path, dpi=DPI)


def draw_differences(
    path: Path, differences: Mapping[str, Sequence[Difference]], reference: str, controls: Sequence[str] = ()
) -> None:
    """Draw differences with their intervals, a row a system and a panel a metric.

    Args:
        path: a PNG file to write.
        differences: system -> one difference a metric, the same metrics for all.
        reference: the system that the others are compared with.
        controls: systems that are controls: hollow points.
    """
    metrics = [each.metric for each in next(iter(differences.values()))]
    figure = new_figure(1.8 + 2.2 * len(metrics), 1.6 + _ROW * len(differences))
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for panel, metric in zip(panels, metrics, strict=True):
        panel.axvline(0, color="black", linewidth=0.8)
        for place, (system, found) in enumerate(differences.items()):
            _draw_interval(panel, place, next(each for each in found if each.metric == metric), system in controls)
        panel.set_title(metric, fontsize=10)
        panel.locator_params(axis="x", nbins=4)
        panel.grid(axis="x", alpha=0.3)
        panel.tick_params(labelsize=8)
    panels[0].set_yticks(range(len(differences)), [_label(system) for system in differences], fontsize=8)
    panels[0].set_ylim(len(differences) - 0.5, -0.5)
    figure.supxlabel(f"difference to {_label(reference)}, 95 % interval; hollow: control", fontsize=9)
    figure.savefig(path, dpi=DPI)


def _draw_interval(panel: Axes, place: int, found: Difference, is_control: bool) -> None:
    """Draw a point with its interval: blue above 0, vermilion below, grey where the interval holds 0."""
    if found.difference is None:
        return
    low = found.difference if found.low is None else found.low
    high = found.difference if found.high is None else found.high
    colour = "#666666" if low <= 0 <= high else COLOURS[0] if low > 0 else COLOURS[1]
    panel.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
    face = "white" if is_control else colour
    panel.plot([found.difference], [place], "o", color=colour, markerfacecolor=face, markersize=6)


def draw_latency(path: Path, latency: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the median milliseconds of each node, stacked, a bar a system; a diamond is the median of the whole.

    Args:
        path: a PNG file to write.
        latency: system -> ``latency_ms`` of ``metrics.json``. Nodes under 1 % of the longest bar are drawn as one.
    """
    medians = {
        system: {node: times["p50"] for node, times in found["nodes"].items()} for system, found in latency.items()
    }
    nodes = _nodes_shown(medians)
    figure = new_figure(7.6, 1.8 + _ROW * max(len(medians), len(nodes) / 3))
    panel: Any = figure.subplots()
    left = [0.0] * len(medians)
    for place, node in enumerate(nodes):
        widths = [found.get(node, 0.0) for found in medians.values()]
        _draw_bars(panel, place, node, widths, left)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    others = [sum(found.values()) - start for found, start in zip(medians.values(), left, strict=True)]
    if any(width > 1e-9 for width in others):
        panel.barh(range(len(medians)), others, left=left, color="#DDDDDD", label="others")
    wholes = [(found["total"]["p50"], place) for place, found in enumerate(latency.values()) if found["total"]]
    look: dict[str, Any] = {"color": "black", "markerfacecolor": "white", "markersize": 5, "linestyle": ""}
    panel.plot([ms for ms, _ in wholes], [place for _, place in wholes], "D", label="whole question", **look)
    panel.set_yticks(range(len(medians)), [_label(system) for system in medians], fontsize=8)
    panel.set(ylim=(len(medians) - 0.5, -0.5), xlabel="median milliseconds a question")
    panel.grid(axis="x", alpha=0.3)
    figure.legend(fontsize=7, loc="outside right upper")
    figure.savefig(path, dpi=DPI)


def _draw_bars(panel: Axes, place: int, node: str, widths: Sequence[float], left: Sequence[float]) -> None:
    hatch = _HATCHES[place // len(COLOURS) % len(_HATCHES)]
    look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)], "edgecolor": "white", "linewidth": 0.3}
    panel.barh(range(len(widths)), widths, left=left, hatch=hatch, label=_label(node.replace("_", " ")), **look)


def _nodes_shown(medians: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the nodes that take a visible share of the longest bar, in the order in which they are given."""
    longest = max((sum(found.values()) for found in medians.values()), default=0.0)
    nodes = dict.fromkeys(node for found in medians.values() for node in found)
    return [
        node
        for node in nodes
        if max(found.get(node, 0.0) for found in medians.values()) >= _SMALLEST_SHARE * longest > 0
    ]


def _label(text: str) -> str:
    """Return a name that matplotlib does not read as mathematics, nor leave out of a legend."""
    return text.replace("$", r"\$").lstrip("_")
