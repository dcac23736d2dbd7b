"""The picture of a document's surroundings: labels, colours and widths, room for any name, and the same as GraphML."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from graph.errors import BadInput, DependencyMissing
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.relationships.surroundings import surroundings_of
from tests.cases import refuse_warnings
from tests.graph.relationships.small_graph import cite, document, small_record
from workflows.explanation.pictures import style
from workflows.explanation.pictures.surroundings import draw_surroundings, surroundings_figure
from workflows.output.plotting import COLOURS

pytest.importorskip("matplotlib")

NAMES = ("青石鎮の長い名前" * 9, "W" * 200, "a$b$_{c", "<script>&", "bell\x07 \u202eback", "two words " * 30)


@pytest.fixture(autouse=True)
def few_pixels_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "DPI", 20)
    refuse_warnings()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small graph, in which an answer to Mia cites the document on Nissan."""
    folder = tmp_path / "w"
    folder.mkdir()
    with small_record(folder) as record:
        cite(record, "m2", "d-nissan")
    return folder


def svg_texts(path: Path) -> list[str]:
    root = ElementTree.fromstring(path.read_bytes())
    return ["".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_labels_are_text_in_svg_and_nothing_of_people_is(root: Path, tmp_path: Path) -> None:
    told = draw_surroundings(root, "d-nissan", tmp_path / "a.svg")
    texts = svg_texts(tmp_path / "a.svg")
    assert {"Nissan", "Yokohama", "D-Alliance", "D-Yokohama", "mention, 0.50, 2 documents"} <= set(texts)
    assert any(text.endswith("1 message cites it") for text in texts)
    assert (told["messages"], told["of_concepts"]) == (1, 2)
    assert told["related"] == [
        {"id": "d-alliance", "title": "D-Alliance", "shared": ["Nissan"]},
        {"id": "d-yokohama", "title": "D-Yokohama", "shared": ["Yokohama"]},
    ]
    assert told.pop("picture") == str(tmp_path / "a.svg")
    for shown in (*texts, str(told)):
        assert not any(word in shown.lower() for word in ("mia", "thread", "m2"))


def test_the_same_document_gives_the_same_bytes(root: Path, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw_surroundings(root, "d-nissan", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_explanation_has_the_colour_of_its_type_and_the_width_of_its_relevance(root: Path) -> None:
    from matplotlib.colors import to_hex
    from matplotlib.patches import PathPatch

    with RelationshipRecord.of(root) as record:
        found = surroundings_of(record, "d-nissan", related=0)
    panel: Any = surroundings_figure(found).axes[0]
    curves = [patch for patch in panel.patches if type(patch) is PathPatch]
    assert {to_hex(curve.get_edgecolor()).upper() for curve in curves} == {COLOURS[4]}
    assert curves[0].get_linewidth() == pytest.approx(2 * curves[1].get_linewidth())
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["mention"]


def test_any_name_stays_within_its_box_and_boxes_do_not_overlap(root: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patches import FancyBboxPatch

    with RelationshipRecord.of(root) as record:
        for place, name in enumerate(NAMES):
            record.put_nodes([named_concept(f"c{place}", name), titled(f"x{place}", name)])
            record.link_all([link(f"x{place}", f"c{place}"), link("d-plain", f"c{place}")])
        figure = surroundings_figure(surroundings_of(record, "d-plain"))
    warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
    renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    (panel,) = figure.axes
    boxes = [patch.get_window_extent(renderer) for patch in panel.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == 1 + 2 * len(NAMES)
    inside = 0
    for text in panel.texts:
        extent = text.get_window_extent(renderer)
        around = [box for box in boxes if box.overlaps(extent)]
        assert len(around) <= 1
        for box in around:
            inside += 1
            assert box.x0 <= extent.x0 < extent.x1 <= box.x1, text.get_text()
            assert box.y0 <= extent.y0 < extent.y1 <= box.y1, text.get_text()
    assert inside == 2 * len(boxes)
    chinese = [line for text in panel.texts if "青" in text.get_text() for line in text.get_text().splitlines()]
    assert len(chinese) == 4
    assert max(map(len, chinese)) * 7 / 72 < boxes[0].width / figure.dpi, (
        "a character may be as wide as the font is high"
    )
    columns = {round(box.x0): [other for other in boxes if other.x0 == box.x0] for box in boxes}
    for column in columns.values():
        rows = sorted(column, key=lambda box: box.y0)
        assert all(below.y1 < above.y0 for below, above in pairwise(rows))


def test_graphml_is_read_by_igraph(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    igraph = pytest.importorskip("igraph")
    monkeypatch.setattr(style, "can_plot", lambda: False)
    draw_surroundings(root, "d-nissan", tmp_path / "a.graphml")
    read = igraph.Graph.Read_GraphML(str(tmp_path / "a.graphml"))
    assert read["messages"] == 1
    assert sorted(read.vs["kind"]) == ["Concept"] * 2 + ["Document"] * 3
    edges = {
        (read.vs[edge.source]["ref"], read.vs[edge.target]["name"], edge["explanation_type"], edge["relevance_score"])
        for edge in read.es
    }
    assert edges == {
        ("d-nissan", "Nissan", "mention", 1.0),
        ("d-nissan", "Yokohama", "mention", 0.5),
        ("d-alliance", "Nissan", "mention", 0.8),
        ("d-yokohama", "Yokohama", "mention", 1.0),
    }


@pytest.mark.parametrize("name", ["a.pdf", "a", "no/folder/a.svg", "no/folder/a.graphml"])
def test_a_file_that_cannot_be_written_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        draw_surroundings(root, "d-nissan", tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["w"]


def test_without_matplotlib_the_extra_is_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "can_plot", lambda: False)
    with pytest.raises(DependencyMissing, match=r"mara-rag\[plots\]"):
        draw_surroundings(root, "d-nissan", tmp_path / "a.png")


def named_concept(key: str, name: str) -> Node:
    return Node(NodeType.CONCEPT, key, {"name": name})


def titled(key: str, title: str) -> Node:
    return Node(NodeType.DOCUMENT, key, {**document(key).properties, "title": title})


def link(document_id: str, concept_id: str) -> Edge:
    properties: dict[str, PropertyValue] = {
        "relevance_score": 0.5,
        "explanation_type": "definition",
        "confidence": 1.0,
    }
    return Edge(EdgeType.EXPLAINS, (NodeType.DOCUMENT, document_id), (NodeType.CONCEPT, concept_id), properties)
