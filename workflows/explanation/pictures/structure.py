"""Pictures of a workspace's graph: its relation types, and how its nodes are connected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.schema import PASSAGE_RELATIONS, RelationType
from workflows.admin.inspection import edges_by_node, published_graph
from workflows.explanation.palette import looks_of
from workflows.explanation.pictures.style import picture_format, save_picture
from workflows.output.plotting import COLOURS, new_figure
from workflows.output.printable import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST_CONNECTED = 5
_NAME_LENGTH = 36


def plot_relations(root: Path, path: Path) -> dict[str, Any]:
    """Draw how many edges a workspace has of each relation type, and their weight together; return the numbers.

    Raises:
        BadInput: the file's name ends neither in .png nor in .svg.
        DependencyMissing: matplotlib is not installed.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
    """
    return _plot(root, path, lambda graph: {"relations": relation_counts(graph)}, relations_figure)


def plot_degrees(root: Path, path: Path) -> dict[str, Any]:
    """Draw the degree distributions of a workspace's entities and passages; return the numbers.

    Raises as `plot_relations` does.
    """

    def measured(graph: KnowledgeGraph) -> dict[str, Any]:
        return {"degrees": degree_distributions(graph), "best_connected": best_connected(graph)}

    return _plot(root, path, measured, degrees_figure)


def _plot(
    root: Path, path: Path, measured: Callable[[KnowledgeGraph], dict[str, Any]], figure_of: Callable[..., Figure]
) -> dict[str, Any]:
    """Draw what is measured of the published graph; return it with where the picture is."""
    picture_format(path)
    with published_graph(root) as (_, graph):
        found = measured(graph)
        about = {"workspace": str(root), "generation": graph.generation}
    missing = save_picture(path, lambda: figure_of(*found.values()))
    return {"picture": str(path), **about, **found, "missing_characters": missing}


def relation_counts(graph: KnowledgeGraph) -> dict[str, dict[str, float]]:
    """Return {relation type: {"edges": how many, "weight": their sum}}, all types, in their order."""
    edges, types = graph.edges, graph.facts.types
    relation_of = np.array([types.index(kind.relation) for kind in graph.kinds])[edges.kind]
    counts = np.bincount(relation_of, minlength=len(types)).tolist()
    weights = np.bincount(relation_of, weights=edges.weight, minlength=len(types)).tolist()
    return {
        relation.value: {"edges": count, "weight": round(weight, 4)}
        for relation, count, weight in zip(types, counts, weights, strict=True)
    }


def degree_distributions(graph: KnowledgeGraph) -> dict[str, dict[str, Any]]:
    """Return {"entities" and "passages": {"nodes", "isolated", "degree", "at_least"}}.

    ``degree`` holds the degrees that occur, from 1, ascending; ``at_least`` the share of all nodes, isolated ones
    included, that have as many edges or more. A node's degree is the number of its edges, of whatever type.
    """
    degree = edges_by_node(graph)
    parts = {"entities": degree[: graph.n_entities], "passages": degree[graph.n_entities :]}
    return {name: _distribution(part) for name, part in parts.items()}


def best_connected(graph: KnowledgeGraph, count: int = BEST_CONNECTED) -> list[dict[str, Any]]:
    """Return the entities with most edges, [{"entity", "edges"}], those of equal degree in the order of their ids."""
    degree = edges_by_node(graph)[: graph.n_entities]
    best = np.argsort(-degree, kind="stable")[:count].tolist()
    return [{"entity": graph.entity_labels[node], "edges": int(degree[node])} for node in best if degree[node]]


def relations_figure(relations: Mapping[str, Mapping[str, float]]) -> Figure:
    """Return bars of the edges and the weight of each relation type, on logarithmic axes."""
    figure = new_figure(7.2, 3.4)
    edges, weight = figure.subplots(1, 2, sharey=True)
    _draw_bars(edges, {name: found["edges"] for name, found in relations.items()}, "edges", "{:,.0f}")
    _draw_bars(weight, {name: found["weight"] for name, found in relations.items()}, "sum of their weights", "{:,.4g}")
    edges.set_yticks(range(len(relations)), [name.capitalize() for name in relations])
    edges.set_ylim(len(relations) - 0.4, -0.6)
    return figure


def degrees_figure(degrees: Mapping[str, Mapping[str, Any]], best: list[dict[str, Any]]) -> Figure:
    """Return the complementary cumulative degree distributions, and the names of the best connected entities."""
    figure = new_figure(7.2, 3.4)
    panel, names = figure.subplots(1, 2, width_ratios=[1.75, 1])
    for (name, found), colour, marker in zip(degrees.items(), COLOURS, "os", strict=False):
        isolated = f", {found['isolated']:,} without an edge" if found["isolated"] else ""
        look = {"color": colour, "marker": marker, "markersize": 3, "linewidth": 1.2, "drawstyle": "steps-pre"}
        panel.plot(found["degree"], found["at_least"], label=f"{found['nodes']:,} {name}{isolated}", **look)
    panel.set(xscale="log", yscale="log", xlabel="edges at a node (k)", ylabel="share of nodes with k edges or more")
    if not any(found["degree"] for found in degrees.values()):
        panel.set(xlim=(1, 10), ylim=(0.1, 1))
        panel.text(0.5, 0.5, "no edge", transform=panel.transAxes, ha="center")
    panel.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside upper left", ncols=2, frameon=False)
    _draw_names(names, best)
    return figure


def _distribution(degree: NDArray[np.intp]) -> dict[str, Any]:
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    at_least = np.cumsum(counts[::-1])[::-1] / max(1, len(degree))
    return {
        "nodes": len(degree),
        "isolated": int((degree == 0).sum()),
        "degree": values.tolist(),
        "at_least": [round(share, 6) for share in at_least.tolist()],
    }


def _draw_bars(panel: Axes, values: Mapping[str, float], title: str, number: str) -> None:
    """Draw a bar a relation type, with its number; types without an edge have the number alone."""
    most = max(values.values(), default=0.0)
    positive = [value for value in values.values() if value > 0]
    left = min([0.5, *(value / 2 for value in positive)])
    panel.set(xscale="log", xlim=(left, max(most, 1.0) * (max(most, 1.0) / left) ** 0.28), xlabel=title)
    looks = looks_of(name for name in values if RelationType(name).is_own)
    for place, (name, value) in enumerate(values.items()):
        hatch = "//" if name in PASSAGE_RELATIONS else ""
        panel.barh(place, max(value - left, 0.0), left=left, color=looks[name].colour, hatch=hatch, edgecolor="white")
        panel.text(max(value, left), place, f" {number.format(value)}", va="center", fontsize=8)
    panel.minorticks_off()
    panel.grid(axis="x", alpha=0.3)
    panel.set_axisbelow(True)


def _draw_names(panel: Axes, best: list[dict[str, Any]]) -> None:
    """Write the best connected entities as a list, at the right of the distributions."""
    panel.set_axis_off()
    panel.text(0, 1, "best connected entities" if best else "", fontsize=8, weight="bold", va="top")
    for place, each in enumerate(best, start=1):
        height = 1 - 0.1 * place
        panel.text(0.2, height, f"{each['edges']:,}", fontsize=8, va="top", ha="right")
        panel.text(0.26, height, shortened(each["entity"], _NAME_LENGTH), fontsize=8, va="top", parse_math=False)
