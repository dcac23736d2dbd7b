"""The picture of a question's walk: seeds at the left, the passages that it led to at the right."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS
from workflows.explanation.layout import positions
from workflows.explanation.palette import Look, looks_of
from workflows.explanation.pictures.style import line_look, picture_format, save_picture
from workflows.output.plotting import new_figure
from workflows.output.printable import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = Mapping[str, Any]
Positions = Mapping[str, tuple[float, float]]

MOST_NODES = 140
"""Nodes that a picture has room for; of more, a few have labels."""

_LABELS_AMONG_MORE = 25
_WIDTH = 10.0
_AROUND, _KEYS = 2.3, 1.35
_BASE, _A_NODE, _LOWEST, _HIGHEST = 2.4, 0.1, 3.0, 12.0
_LABEL_LINE, _LABEL_LENGTH = 20, 38
_QUESTION_LINE, _QUESTION_LENGTH, _ANSWER_LENGTH, _ANSWER_LINE = 105, 315, 330, 170
_THINNEST, _THICKEST = 0.35, 5.0
_KEY_WIDTH = 2.2
_SMALLEST, _LARGEST = 45.0, 330.0
_SEED, _ENTITY, _PASSAGE, _CITED = "seed", "entity", "passage", "cited passage"
_LOOKS: Mapping[str, Mapping[str, Any]] = {
    _SEED: {"marker": "D", "facecolor": "#F0E442", "edgecolor": "black"},
    _ENTITY: {"marker": "o", "facecolor": "white", "edgecolor": "black"},
    _PASSAGE: {"marker": "s", "facecolor": "#E4E4E4", "edgecolor": "black"},
    _CITED: {"marker": "s", "facecolor": "black", "edgecolor": "black"},
}


def draw_walk(path: Path, explanation: Values) -> dict[str, Any]:
    """Draw the part of the graph that carried a walk's mass; return what the picture shows.

    Nodes are shaped by what they are and sized by their mass, edges coloured by relation type and as wide as the root
    of the mass that they carry, both ways together; all at the run's own stop.

    Args:
        path: a file that ends in .png or .svg.
        explanation: as ``Explanation.to_json`` gives it.

    Raises:
        BadInput: nothing walked, or the file's name ends otherwise.
        DependencyMissing: matplotlib is not installed.
    """
    picture_format(path)
    if not explanation["stops"]:
        raise BadInput(
            f"No walk answered the question: its passages are ranked by {explanation['ranked_by']}",
            "Draw one of mode mara, hipporag2 or mara-matrix whose question leads into the graph",
        )
    missing = save_picture(path, lambda: walk_figure(explanation))
    kinds = Counter(_look_of(node) for node in explanation["nodes"])
    return {
        "picture": str(path),
        "question": explanation["question"],
        "mode": explanation["mode"],
        "generation": explanation["generation"],
        "nodes": {name: kinds[name] for name in _LOOKS},
        "shown": dict(explanation["shown"]),
        "missing_characters": missing,
    }


def walk_figure(explanation: Values) -> Figure:
    """Return the figure of an explanation with a walk."""
    count = len(explanation["nodes"])
    height = _AROUND + min(max(_LOWEST, _BASE + _A_NODE * count), _HIGHEST)
    figure = new_figure(_WIDTH, height)
    below = _KEYS / height
    parts: Any = figure.subfigures(2, 1, height_ratios=[1 - below, below])
    graph, keys = parts
    _draw_graph(graph.subplots(), explanation, positions(explanation))
    shapes, relations, beta = keys.subplots(1, 3, width_ratios=[1, 1.15, 1.5])
    _draw_shapes(shapes, explanation)
    _draw_relations(relations, explanation)
    _draw_beta(beta, explanation)
    _write_title(figure, explanation)
    return figure


def _look_of(node: Values) -> str:
    if node["kind"] == "passage":
        return _PASSAGE if node["number"] is None else _CITED
    return _SEED if node["restart"][-1] > 0 else _ENTITY


def _flow(edge: Values) -> float:
    return float(edge["forward"][-1] + edge["backward"][-1])


def _draw_graph(panel: Axes, explanation: Values, places: Positions) -> None:
    panel.set_axis_off()
    panel.invert_yaxis()
    _draw_edges(panel, explanation["edges"], places, looks_of(explanation["own_relations"]))
    heaviest = max((node["mass"][-1] for node in explanation["nodes"]), default=0.0) or 1.0
    for node in explanation["nodes"]:
        share = node["mass"][-1] / heaviest
        x, y = places[node["id"]]
        size = _SMALLEST + (_LARGEST - _SMALLEST) * share
        panel.scatter([x], [y], s=size, zorder=3, linewidths=0.9, **_LOOKS[_look_of(node)])
    by_mass = sorted(explanation["nodes"], key=lambda node: -node["mass"][-1])
    _write_labels(panel, by_mass if len(by_mass) <= MOST_NODES else by_mass[:_LABELS_AMONG_MORE], places, heaviest)
    panel.margins(x=0.07, y=0.06)


def _draw_edges(panel: Axes, edges: Sequence[Values], places: Positions, looks: Mapping[str, Look]) -> None:
    """Draw the thin edges under the thick; edges of one pair, and those within a column, are bent apart."""
    from matplotlib.patches import FancyArrowPatch

    strongest = max(map(_flow, edges), default=0.0)
    drawn: Counter[frozenset[str]] = Counter()
    for edge in sorted(edges, key=lambda each: (-_flow(each), each["id"])):
        pair = frozenset((edge["source"], edge["target"]))
        start, end = sorted((places[edge["source"]], places[edge["target"]]))
        column, width = start[0] == end[0], _line_width(_flow(edge), strongest)
        bend = (0.28 if column else 0.04) + 0.14 * drawn[pair]
        drawn[pair] += 1
        panel.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-",
                connectionstyle=f"arc3,rad={bend}",
                **line_look(looks[edge["relation"]], width),
                alpha=0.8,
                shrinkA=0,
                shrinkB=0,
                zorder=1 + _flow(edge) / (strongest or 1.0),
            )
        )


def _line_width(flow: float, strongest: float) -> float:
    return max(_THINNEST, _THICKEST * math.sqrt(flow / strongest)) if strongest else _THINNEST


def _write_labels(panel: Axes, nodes: Sequence[Values], places: Positions, heaviest: float) -> None:
    """Write a label under each node, and its number into a cited passage."""
    look: dict[str, Any] = {"ha": "center", "fontsize": 7, "zorder": 5, "parse_math": False, "annotation_clip": False}
    behind = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    for node in nodes:
        size = _SMALLEST + (_LARGEST - _SMALLEST) * node["mass"][-1] / heaviest
        down = -(math.sqrt(size) / 2 + 2.5)
        lines = textwrap.wrap(shortened(node["label"], _LABEL_LENGTH), _LABEL_LINE, max_lines=2, placeholder="…")
        offset: dict[str, Any] = {"xytext": (0, down), "textcoords": "offset points"}
        text = "\n".join(lines) or "(no name)"
        panel.annotate(text, places[node["id"]], va="top", linespacing=1.0, bbox=behind, **offset, **look)
        if node["number"] is not None:
            panel.annotate(str(node["number"]), places[node["id"]], va="center_baseline", color="white", **look)


def _draw_shapes(panel: Axes, explanation: Values) -> None:
    """Explain the shapes that occur, and the widths."""
    from matplotlib.lines import Line2D

    present = {_look_of(node) for node in explanation["nodes"]}
    handles = []
    for name in _LOOKS:
        if name in present:
            look = _LOOKS[name]
            colours = {"markerfacecolor": look["facecolor"], "markeredgecolor": look["edgecolor"]}
            handles.append(Line2D([], [], linestyle="", marker=look["marker"], markersize=7, label=name, **colours))
    strongest = max(map(_flow, explanation["edges"]), default=0.0)
    for part in (1, 1 / 4, 1 / 16) if strongest else ():
        width = _line_width(strongest * part, strongest)
        handles.append(Line2D([], [], color="black", linewidth=width, label=f"mass {strongest * part:.2g}"))
    _draw_key(panel, handles)


def _draw_relations(panel: Axes, explanation: Values) -> None:
    """Explain the colours of the relation types that occur."""
    from matplotlib.lines import Line2D

    present = {edge["relation"] for edge in explanation["edges"]}
    handles = [
        Line2D([], [], label=relation.capitalize(), **line_look(look, _KEY_WIDTH))
        for relation, look in looks_of(explanation["own_relations"]).items()
        if relation in present
    ]
    _draw_key(panel, handles)


def _draw_key(panel: Axes, handles: Sequence[Any]) -> None:
    panel.set_axis_off()
    panel.legend(handles=handles, loc="upper left", fontsize=7, frameon=False, ncols=2, borderaxespad=0)


def _draw_beta(panel: Axes, explanation: Values) -> None:
    """Draw the manager's shares as bars, those of both categories side by side."""
    beta, looks = explanation["beta"], looks_of(explanation["own_relations"])
    if beta is None:
        panel.set_axis_off()
        panel.text(0.5, 0.6, "no β steered this walk", ha="center", fontsize=7, transform=panel.transAxes)
        return
    place = 0.0
    ticks: list[tuple[float, str]] = []
    between_entities = (*ENTITY_RELATIONS, *sorted(explanation["own_relations"]))
    for category, relations in (("entity_entity", between_entities), ("entity_passage", PASSAGE_RELATIONS)):
        for relation in map(str, relations):
            share = beta[category].get(relation, 0.0)
            panel.bar(place, share, color=looks[relation].colour, width=0.8)
            panel.text(place, share, f"{share:.2f}", ha="center", va="bottom", fontsize=6)
            ticks.append((place, relation.capitalize()))
            place += 1
        place += 0.7
    panel.set_xticks([at for at, _ in ticks], [name for _, name in ticks], fontsize=6, rotation=32, ha="right")
    panel.tick_params(axis="x", length=0, pad=1)
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)
    panel.set_title("β: shares of relation types", fontsize=7, loc="left")
    panel.margins(y=0.2)


def _write_title(figure: Figure, explanation: Values) -> None:
    """Write the question, the answer, and how much of the walk is shown."""
    question = textwrap.fill(shortened(explanation["question"], _QUESTION_LENGTH), _QUESTION_LINE)
    figure.suptitle(question, fontsize=10, weight="bold", x=0.01, ha="left", parse_math=False)
    shown = explanation["shown"]
    told = (
        f"mode {explanation['mode']}; {shown['nodes']:,} of {shown['of_nodes']:,} nodes and {shown['edges']:,} of"
        f" {shown['of_edges']:,} edges, which carry {shown['inflow']:.0%} of what flows into these passages"
    )
    answer = shortened(explanation["answer"] or "", _ANSWER_LENGTH)
    text = textwrap.fill(f"Answer: {answer}", _ANSWER_LINE) if answer else ""
    figure.supxlabel(f"{text}\n{told}" if text else told, fontsize=7, x=0.01, ha="left", parse_math=False)
