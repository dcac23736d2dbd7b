"""The picture of a document's surroundings: in four columns of boxes, from its passages to the documents next to it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from graph.errors import BadInput
from graph.relationships.discovery import COMMON
from graph.relationships.exchange import to_graphml
from graph.relationships.explanations import ExplanationType
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from graph.relationships.surroundings import CHUNKS, CONCEPTS, RELATED, Surroundings, surroundings_of
from workflows.admin.export import write_lines
from workflows.explanation.pictures.style import FORMATS, picture_format, save_picture
from workflows.output.plotting import COLOURS
from workflows.output.printable import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Place = tuple[float, float]

MOST = 40
"""Passages, concepts or related documents that a picture has room for."""

_GRAPHML = ".graphml"
_BOX, _BOX_HEIGHT, _ROW, _MARGIN = 2.25, 0.46, 0.56, 0.2
_LEFT_ENDS = (0.2, 3.0, 6.15, 10.0)
_WIDTH = 12.45
_ABOVE, _BELOW = 1.15, 0.5
_MOST_SPREAD = 2.0
_LABEL_LINE, _WIDE_LINE = 26, 18
_SMALL_LINE, _TITLE_LENGTH, _ABOUT_LENGTH = 40, 90, 150
_THINNEST, _THICKEST = 0.5, 3.0
_PLAIN = "#999999"
_KINDS: Mapping[str, str] = dict(zip(map(str, ExplanationType), COLOURS, strict=False))
_WHITE: Mapping[str, Any] = {"facecolor": "white", "edgecolor": "black"}
_GREY: Mapping[str, Any] = {"facecolor": "#E4E4E4", "edgecolor": "black"}
_BLACK: Mapping[str, Any] = {"facecolor": "black", "edgecolor": "black"}


def draw_surroundings(
    root: Path, name: str, path: Path, *, chunks: int = CHUNKS, concepts: int = CONCEPTS, related: int = RELATED
) -> dict[str, Any]:
    """Draw the surroundings of a document, or write them as GraphML; return what is shown.

    Args:
        root: the workspace.
        name: id of the document or of a passage of it, or its path.
        path: a file that ends in .png, .svg or .graphml.
        chunks: passages, at most.
        concepts: concepts by their relevance, at most; those by which documents are related are always shown.
        related: related documents, at most.

    Raises:
        BadInput: there is no relationship graph, it knows no such document, or the file cannot be written.
        DependencyMissing: a picture is wanted, and matplotlib is not installed.
    """
    is_graph = path.suffix.lower() == _GRAPHML
    if not is_graph and path.suffix.lower() not in FORMATS:
        raise BadInput(f"{path} is no file that can be drawn", "Name a file that ends in .png, .svg or .graphml")
    if not is_graph:
        picture_format(path)
    with RelationshipRecord.of(root) as record, record.as_it_stands():
        found = surroundings_of(record, name, chunks=chunks, concepts=concepts, related=related)
    if is_graph:
        write_lines(path, to_graphml(found.parts, {"messages": found.messages}))
        return {"picture": str(path), **_told(found), "missing_characters": 0}
    missing = save_picture(path, lambda: surroundings_figure(found))
    return {"picture": str(path), **_told(found), "missing_characters": missing}


def surroundings_figure(found: Surroundings) -> Figure:
    """Return the figure: sources and passages, the document, its concepts, and the documents that share them."""
    from matplotlib.figure import Figure

    left = (*found.sources, *found.chunks)
    columns: Sequence[Sequence[Node]] = (left, (found.document,), found.concepts, found.related)
    height = _ABOVE + max(map(len, columns)) * _ROW + _BELOW
    figure = Figure(figsize=(_WIDTH, height))
    panel = figure.add_axes((0, 0, 1, 1))
    panel.set_axis_off()
    panel.set(xlim=(0, _WIDTH), ylim=(height, 0))
    places = _places(columns)
    _draw_edges(panel, found, places)
    for node in (node for column in columns for node in column):
        _draw_box(panel, node, found, places[node.type, node.id])
    _write_heads(panel, found)
    _draw_key(panel, found, height)
    return figure


def _told(found: Surroundings) -> dict[str, Any]:
    """Return what is shown, as ``--json`` prints it."""
    names = {concept.id: concept.properties["name"] for concept in found.concepts}
    own = found.explains(found.document.id)
    return {
        "document": found.document.id,
        "title": found.document.properties["title"],
        "sources": [source.properties["uri"] for source in found.sources],
        "chunks": [chunk.id for chunk in found.chunks],
        "of_chunks": found.of_chunks,
        "concepts": [
            {
                "name": name,
                "explanation_type": own[key].properties["explanation_type"],
                "relevance_score": own[key].properties["relevance_score"],
                "documents": found.commonness[key],
            }
            for key, name in names.items()
        ],
        "of_concepts": found.of_concepts,
        "related": [
            {
                "id": other.id,
                "title": other.properties["title"],
                "shared": [names[key] for key in found.explains(other.id)],
            }
            for other in found.related
        ],
        "messages": found.messages,
    }


def _places(columns: Sequence[Sequence[Node]]) -> dict[tuple[str, str], Place]:
    """Return the left end and the middle height of each node's box, in inches; each column is spread and centred."""
    most = max(map(len, columns))
    places: dict[tuple[str, str], Place] = {}
    for left, column in zip(_LEFT_ENDS, columns, strict=True):
        step = min(most / max(1, len(column)), _MOST_SPREAD) * _ROW
        top = _ABOVE + (most * _ROW - len(column) * step) / 2
        for row, node in enumerate(column):
            places[node.type, node.id] = left, top + (row + 0.5) * step
    return places


def _draw_edges(panel: Axes, found: Surroundings, places: Mapping[tuple[str, str], Place]) -> None:
    """Draw each edge as a curve from the box that is farther left; EXPLAINS in the colour of its type."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    for edge in found.edges:
        (left, start), (right, end) = sorted((places[edge.source], places[edge.target]))
        middle = (left + _BOX + right) / 2
        corners = [(left + _BOX, start), (middle, start), (middle, end), (right, end)]
        curve = Outline(corners, [Outline.MOVETO, *[Outline.CURVE4] * 3])
        panel.add_patch(PathPatch(curve, fill=False, edgecolor=_colour(edge), linewidth=_width(edge), alpha=0.8))


def _colour(edge: Edge) -> str:
    return _KINDS.get(str(edge.properties.get("explanation_type")), _PLAIN)


def _width(edge: Edge) -> float:
    relevance = float(edge.properties.get("relevance_score") or 0)
    return max(_THINNEST, _THICKEST * relevance) if edge.type is EdgeType.EXPLAINS else 1.0


def _draw_box(panel: Axes, node: Node, found: Surroundings, place: Place) -> None:
    """Draw a node's box with its name, and below the name what else is known of it."""
    from matplotlib.patches import FancyBboxPatch

    left, middle = place
    label, about = _texts(node, found)
    look = _WHITE if node.type in (NodeType.CONCEPT, NodeType.SOURCE) else _GREY
    look = _BLACK if node is found.document else look
    shape = f"round,pad=0,rounding_size={0.2 if node.type is NodeType.CONCEPT else 0.03}"
    corner = (left, middle - _BOX_HEIGHT / 2)
    panel.add_patch(FancyBboxPatch(corner, _BOX, _BOX_HEIGHT, boxstyle=shape, linewidth=0.9, zorder=3, **look))
    ink = "white" if node is found.document else "black"
    text: dict[str, Any] = {"ha": "center", "va": "center", "color": ink, "zorder": 4, "parse_math": False}
    lines = _lines(label)
    panel.text(left + _BOX / 2, middle - 0.08, lines, fontsize=7 if "\n" not in lines else 6, linespacing=1.0, **text)
    panel.text(left + _BOX / 2, middle + 0.14, _cut(about, _SMALL_LINE), fontsize=5.5, **text)


def _texts(node: Node, found: Surroundings) -> tuple[str, str]:
    """Return the name of a node, and what else is told of it."""
    properties = node.properties
    if node.type is NodeType.SOURCE:
        return str(properties["name"]), str(properties["type"])
    if node.type is NodeType.CHUNK:
        return f"passage {int(properties['chunk_index'] or 0) + 1}", node.id
    if node.type is NodeType.DOCUMENT:
        return str(properties["title"]), node.id
    edge = found.explains(found.document.id)[node.id].properties
    common = found.commonness[node.id]
    documents = "1 document" if common == 1 else f"{common:,}{'+' if common >= COMMON else ''} documents"
    return str(properties["name"]), f"{edge['explanation_type']}, {edge['relevance_score']:.2f}, {documents}"


def _lines(label: str) -> str:
    """Return a label on at most two lines that a box has room for."""
    line = _WIDE_LINE if _is_wide(label) else _LABEL_LINE
    lines = textwrap.wrap(shortened(label, 2 * line), line, max_lines=2, placeholder="…")
    return "\n".join(lines) or "(no name)"


def _cut(text: str, line: int) -> str:
    return shortened(text, line // 2 if _is_wide(text) else line)


def _is_wide(text: str) -> bool:
    """Tell whether a text holds characters twice as wide as others, as those of Chinese are."""
    return any(east_asian_width(character) in "WF" for character in text)


def _write_heads(panel: Axes, found: Surroundings) -> None:
    """Write the document's title and how often it is cited, and above each column what it holds."""
    properties = found.document.properties
    cited = "1 message cites it" if found.messages == 1 else f"{found.messages:,} messages cite it"
    about = f"{found.document.id} · {properties['path']} · version {properties['version']} · {cited}"
    look: dict[str, Any] = {"va": "baseline", "parse_math": False}
    title = _cut(str(properties["title"]), _TITLE_LENGTH)
    panel.text(_MARGIN, 0.38, title, fontsize=11, weight="bold", **look)
    panel.text(_MARGIN, 0.62, _cut(about, _ABOUT_LENGTH), fontsize=7, **look)
    heads = (
        f"sources; passages ({len(found.chunks):,} of {found.of_chunks:,})",
        "the document",
        f"concepts that it explains ({len(found.concepts):,} of {found.of_concepts:,})",
        f"related by shared concepts ({len(found.related):,})",
    )
    for left, head in zip(_LEFT_ENDS, heads, strict=True):
        panel.text(left + _BOX / 2, 1.0, head, fontsize=7.5, ha="center", **look)


def _draw_key(panel: Axes, found: Surroundings, height: float) -> None:
    """Explain the colours of the kinds of explanation that occur."""
    from matplotlib.lines import Line2D

    present = {edge.properties.get("explanation_type") for edge in found.edges}
    handles = [
        Line2D([], [], color=colour, linewidth=_THICKEST, label=kind)
        for kind, colour in _KINDS.items()
        if kind in present
    ]
    if handles:
        at: dict[str, Any] = {"bbox_to_anchor": (0.5, 0.25 / height), "bbox_transform": panel.transAxes}
        panel.legend(handles=handles, loc="center", fontsize=7, frameon=False, ncols=len(handles), **at)
