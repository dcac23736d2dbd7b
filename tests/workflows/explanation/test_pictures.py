"""Pictures: what they draw, that any name fits into them, and that the same data gives the same bytes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from graph.construction.edges import EdgeKind, PassageLink
from graph.errors import BadInput, DependencyMissing, WorkspaceMissing
from graph.schema import ENTITY_RELATIONS, RelationFactors, RelationType
from tests.builders import TripleParts, passage_of, publish_workspace, typed_graph
from tests.cases import mostly_slow, refuse_warnings
from workflows.explanation.model import Edge, Explanation, Models, Node, Shown, Stop
from workflows.explanation.palette import looks_of
from workflows.explanation.pictures import style
from workflows.explanation.pictures.structure import (
    best_connected,
    degree_distributions,
    degrees_figure,
    plot_degrees,
    plot_relations,
    relation_counts,
    relations_figure,
)
from workflows.explanation.pictures.style import picture_format, save_picture
from workflows.explanation.pictures.walk import draw_walk, walk_figure
from workflows.output.printable import shortened

pytest.importorskip("matplotlib")

FACT = EdgeKind(RelationType.TEMPORAL)
SAME = EdgeKind(RelationType.SYNONYMY)
TITLE = EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)
MENTION = EdgeKind(RelationType.PERIPHERAL, PassageLink.MENTION)
OF_NO_FONT = "\U000f5a3c"
"""A character for private use."""

NAMES = (
    "青石鎮",
    "وادي النور",
    "Белогорка",
    "सोनपुरा",
    "a$b$_{c",
    "<script>&",
    "bell\x07 \u202eback",
    "x" * 5000,
    "",
)


TRIPLES: dict[str, list[TripleParts]] = {"velm": [("Velm", "flows into", "Lake Sund"), ("Velm", "is in", "Ostra")]}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of one passage, which an embedding model wrote that nobody has."""
    passages = [passage_of("velm", "Velm", "Velm flows into Lake Sund in Ostra.")]
    return publish_workspace(tmp_path_factory.mktemp("drawn") / "w", passages, TRIPLES).root


@pytest.fixture(autouse=True)
def few_pixels_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "DPI", 20)
    refuse_warnings()


def node(key: str, label: str = "", mass: float = 0.1, restart: float = 0.0, number: int | None = None) -> Node:
    kind, rank = ("entity", None) if key.startswith("e") else ("passage", (1,))
    shares = {"mass": (mass,), "restart": (restart,), "hidden": (0.0,)}
    return Node(key, kind, f"ref-{key}", label or key, "", "", number, rank, **shares)  # type: ignore[arg-type]


def edge(key: str, source: str, target: str, relation: RelationType, flow: float, back: float = 0.0) -> Edge:
    return Edge(key, source, target, relation.value, None, 1.0, (), (flow,), (back,))


EXPLANATION = Explanation(
    question="When was Marn founded?",
    answer="In 1203 [1].",
    mode="mara",
    ranked_by="walk",
    workspace="small",
    generation=1,
    models=Models("offline", "hash", "embedded"),
    citations=(),
    facts=(),
    fact_outcome="kept",
    beta=RelationFactors(
        {relation.value: 0.2 for relation in ENTITY_RELATIONS}, {"PRIMARY": 0.7, "SECONDARY": 0.2, "PERIPHERAL": 0.1}
    ),
    passage_weight=1.0,
    damping=0.7,
    stops=(Stop(1.0, "as walked"),),
    nodes=(node("e0", "Marn", 0.4, 0.3), node("e1", "1203"), node("p0", "Marn", 0.2, number=1), node("p1", "Velm")),
    edges=(
        edge("x0", "e0", "e1", RelationType.TEMPORAL, 0.04),
        edge("x1", "e0", "e1", RelationType.SPATIAL, 0.01),
        edge("x2", "e1", "p0", RelationType.PRIMARY, 0.06, 0.1),
        edge("x3", "e0", "p1", RelationType.PERIPHERAL, 0.0),
    ),
    paths=(),
    shown=Shown(4, 40, 4, 90, 0.5),
    walk=None,
)


def walk_of(**changes: Any) -> dict[str, Any]:
    return replace(EXPLANATION, **changes).to_json()


def panels_of(figure: Any) -> list[Any]:
    return [panel for part in figure.subfigs for panel in part.axes]


def texts_of(panel: Any) -> list[str]:
    return [text.get_text() for text in panel.texts]


def legend_of(panel: Any) -> list[str]:
    return [text.get_text() for text in panel.get_legend().texts]


@pytest.fixture(scope="module")
def panels() -> list[Any]:
    """What is drawn of the walk, drawn once."""
    return panels_of(walk_figure(EXPLANATION.to_json()))


def write_font(path: Path, character: str) -> None:
    """Write a font that has one character, a square."""
    builder: Any = import_module("fontTools.fontBuilder")
    pens: Any = import_module("fontTools.pens.ttGlyphPen")
    pen = pens.TTGlyphPen(None)
    for move, place in ((pen.moveTo, (0, 0)), (pen.lineTo, (0, 700)), (pen.lineTo, (700, 700)), (pen.lineTo, (700, 0))):
        move(place)
    pen.closePath()
    square = pen.glyph()
    font = builder.FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([".notdef", "square"])
    font.setupCharacterMap({ord(character): "square"})
    font.setupGlyf({".notdef": square, "square": square})
    font.setupHorizontalMetrics({".notdef": (800, 0), "square": (800, 0)})
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Made up for this test", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    path.parent.mkdir()
    font.save(path)


class TestFiles:
    @pytest.mark.parametrize("name", mostly_slow(["a.svg", "a.png"], 1))
    @pytest.mark.slow
    def test_the_same_walk_gives_the_same_bytes(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        draw_walk(path, EXPLANATION.to_json())
        first = path.read_bytes()
        draw_walk(path, EXPLANATION.to_json())
        assert path.read_bytes() == first
        assert b"<dc:date>" not in first
        assert b"matplotlib.org" not in first
        assert [each.name for each in tmp_path.iterdir()] == [name]

    @pytest.mark.parametrize("plot", mostly_slow([plot_relations, plot_degrees], 1))
    @pytest.mark.slow
    def test_the_same_workspace_gives_the_same_bytes(self, workspace: Path, tmp_path: Path, plot: Any) -> None:
        told = [plot(workspace, tmp_path / "a.svg"), plot(workspace, tmp_path / "b.svg")]
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
        assert told[0] | {"picture": str(tmp_path / "b.svg")} == told[1]

    def test_what_cannot_be_drawn_leaves_the_old_picture(self, tmp_path: Path) -> None:
        path = tmp_path / "a.png"
        path.write_bytes(b"old")

        def broken() -> Any:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            save_picture(path, broken)
        assert path.read_bytes() == b"old"
        assert len(list(tmp_path.iterdir())) == 1

    def test_another_suffix_is_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        for name in ("a.pdf", "a", ".png"):
            with pytest.raises(BadInput, match=r"\.png or \.svg"):
                plot_relations(tmp_path / "nowhere", tmp_path / name)

    def test_the_suffix_may_be_in_capitals(self) -> None:
        assert (picture_format(Path("a.PNG")), picture_format(Path("b.c.Svg"))) == ("png", "svg")

    def test_without_matplotlib_the_extra_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(style, "can_plot", lambda: False)
        with pytest.raises(DependencyMissing, match=r"mara-rag\[plots\]"):
            draw_walk(tmp_path / "a.png", EXPLANATION.to_json())

    def test_no_global_setting_changes_and_no_figure_is_kept(self, tmp_path: Path) -> None:
        from matplotlib import pyplot, rcParams

        before = dict(rcParams)
        draw_walk(tmp_path / "a.svg", EXPLANATION.to_json())
        assert dict(rcParams) == before
        assert pyplot.get_fignums() == []

    def test_names_of_all_kinds_fit_and_stay_text_in_svg(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        nodes = tuple(node(f"e{place}", name, restart=0.1) for place, name in enumerate((*NAMES, OF_NO_FONT)))
        told = walk_of(nodes=nodes, edges=(), question=" ".join(NAMES)[:400], answer=NAMES[0])
        assert draw_walk(tmp_path / "a.png", told)["missing_characters"] > 0, "no font has the private character"
        draw_walk(tmp_path / "a.svg", told)
        root = ElementTree.fromstring((tmp_path / "a.svg").read_bytes())
        texts = {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}
        assert {"青石鎮", "Белогорка", "a$b$_{c", "<script>&", "bell back", "e8"} <= texts
        assert not any(len(text) > 200 for text in texts)
        assert capfd.readouterr() == ("", "")

    def test_a_font_that_matplotlib_has_not_listed_yet_is_found_on_the_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        from matplotlib import font_manager

        told = walk_of(nodes=(node("e0", f"a{OF_NO_FONT}b", restart=0.1),), edges=())
        assert draw_walk(tmp_path / "a.png", told)["missing_characters"] == 1
        boxed = (tmp_path / "a.png").read_bytes()
        write_font(tmp_path / "fonts" / "made-up.ttf", OF_NO_FONT)
        monkeypatch.setattr(font_manager, "X11FontDirectories", [str(tmp_path / "fonts")])
        monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
        for _ in range(2):
            assert draw_walk(tmp_path / "a.png", told)["missing_characters"] == 0
            assert (tmp_path / "a.png").read_bytes() != boxed
        assert caplog.messages == [], "that the font has no bold form goes without saying"

    def test_other_warnings_are_passed_on(self, tmp_path: Path) -> None:
        from matplotlib.figure import Figure

        def warn() -> Figure:
            warnings.warn("look at this", UserWarning, stacklevel=1)
            return Figure()

        with pytest.warns(UserWarning, match="look at this"):
            save_picture(tmp_path / "a.png", warn)

    def test_a_label_is_one_line_of_limited_length(self) -> None:
        assert shortened("  a\n\tb\x00\u200fc ", 10) == "a bc"
        assert shortened("x" * 20, 5) == "xxxx…"
        assert shortened("four ", 4) == "four"


class TestWalk:
    def test_shapes_tell_what_a_node_is_and_sizes_its_mass(self, panels: list[Any], tmp_path: Path) -> None:
        done = draw_walk(tmp_path / "a.png", EXPLANATION.to_json())
        assert done["nodes"] == {"seed": 1, "entity": 1, "passage": 1, "cited passage": 1}
        assert done["shown"]["nodes"] == 4
        graph, shapes, _, _ = panels
        sizes = [points.get_sizes()[0] for points in graph.collections]
        assert sizes[0] > sizes[2] > sizes[1] == sizes[3]
        assert len({len(points.get_paths()[0].vertices) for points in graph.collections[:2]}) == 2
        assert texts_of(graph) == ["Marn", "Marn", "1", "1203", "Velm"]
        assert legend_of(shapes)[:4] == ["seed", "entity", "passage", "cited passage"]

    def test_edges_have_the_colour_of_their_type_and_the_width_of_their_flow(self, panels: list[Any]) -> None:
        graph, shapes, relations, _ = panels
        from matplotlib.colors import to_hex

        looks = {to_hex(line.get_edgecolor()).upper(): line.get_linewidth() for line in graph.patches}
        widths = [looks[looks_of()[name].colour.upper()] for name in ("PRIMARY", "TEMPORAL", "SPATIAL", "PERIPHERAL")]
        assert widths[0] / widths[1] == pytest.approx((0.16 / 0.04) ** 0.5)
        assert widths[1] / widths[2] == pytest.approx(2)
        assert widths[3] > 0
        solid = {to_hex(line.get_edgecolor()).upper() for line in graph.patches if line.get_linestyle() == "solid"}
        assert solid == {looks_of()["PRIMARY"].colour.upper()}
        assert legend_of(relations) == ["Temporal", "Spatial", "Primary", "Peripheral"]
        assert legend_of(shapes)[4:] == ["mass 0.16", "mass 0.04", "mass 0.01"]

    def test_edges_of_one_pair_do_not_hide_each_other(self, panels: list[Any]) -> None:
        graph, *_ = panels
        bends = [line.get_connectionstyle().rad for line in graph.patches]
        assert len(set(bends)) == 2

    def test_relation_types_are_told_apart(self) -> None:
        assert set(looks_of()) == {relation.value for relation in RelationType}
        assert len({look.colour for look in looks_of().values()}) == len(looks_of())

    def test_beta_stands_as_bars(self, panels: list[Any]) -> None:
        *_, beta = panels
        assert [bar.get_height() for bar in beta.patches] == [0.2] * 5 + [0.7, 0.2, 0.1]
        *_, none = panels_of(walk_figure(walk_of(beta=None)))
        assert texts_of(none) == ["no β steered this walk"]

    def test_no_mass_no_edge_and_one_passage_alone_are_drawn(self, tmp_path: Path) -> None:
        alone = walk_of(nodes=(node("p0", mass=0.0),), edges=(), answer="", beta=None)
        assert draw_walk(tmp_path / "a.png", alone)["nodes"]["passage"] == 1

    def test_many_nodes_have_few_labels(self) -> None:
        nodes = tuple(node(f"e{place}", mass=1 / (place + 1)) for place in range(150))
        graph, *_ = panels_of(walk_figure(walk_of(nodes=nodes, edges=())))
        assert len(graph.collections) == 150
        assert texts_of(graph) == [f"e{place}" for place in range(25)]

    def test_where_nothing_walked_there_is_nothing_to_draw(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="ranked by dense"):
            draw_walk(tmp_path / "a.png", walk_of(stops=(), ranked_by="dense"))


class TestRelations:
    GRAPH = typed_graph(3, 2, [(0, 1, FACT, 0.5), (0, 2, FACT, 2.0), (1, 2, SAME, 0.9), (0, 3, TITLE, 1.0)])

    def test_edges_and_weights_are_counted_by_type(self) -> None:
        found = relation_counts(self.GRAPH)
        assert list(found) == [relation.value for relation in RelationType]
        assert found["TEMPORAL"] == {"edges": 2, "weight": 2.5}
        assert found["SYNONYMY"] == {"edges": 1, "weight": 0.9}
        assert found["CAUSALITY"] == {"edges": 0, "weight": 0.0}

    def test_each_type_is_a_bar_with_its_number(self) -> None:
        edges, weight = relations_figure(relation_counts(self.GRAPH)).axes
        bars: list[Any] = list(edges.patches)
        ends = [bar.get_x() + bar.get_width() for bar in bars]
        assert ends[1:6] == [2, edges.get_xlim()[0], edges.get_xlim()[0], edges.get_xlim()[0], 1]
        assert [text.get_text().strip() for text in edges.texts] == ["0", "2", "0", "0", "0", "1", "1", "0", "0"]
        assert [text.get_text().strip() for text in weight.texts][1] == "2.5"
        assert edges.get_xscale() == weight.get_xscale() == "log"


class TestDegrees:
    GRAPH = typed_graph(4, 2, [(0, 1, FACT, 1.0), (0, 1, SAME, 1.0), (0, 4, TITLE, 1.0), (2, 4, MENTION, 1.0)])

    def test_the_distribution_is_cumulative_over_all_nodes(self) -> None:
        found = degree_distributions(self.GRAPH)
        assert found["entities"] == {"nodes": 4, "isolated": 1, "degree": [1, 2, 3], "at_least": [0.75, 0.5, 0.25]}
        assert found["passages"] == {"nodes": 2, "isolated": 1, "degree": [2], "at_least": [0.5]}

    def test_the_best_connected_entities_are_named(self) -> None:
        named = best_connected(self.GRAPH, 2)
        assert named == [
            {"entity": self.GRAPH.entity_labels[0], "edges": 3},
            {"entity": self.GRAPH.entity_labels[1], "edges": 2},
        ]
        assert len(best_connected(self.GRAPH)) == 3

    def test_both_axes_are_logarithmic_and_the_names_stand_beside(self) -> None:
        panel, names = degrees_figure(degree_distributions(self.GRAPH), best_connected(self.GRAPH)).axes
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        assert [line.get_label() for line in panel.lines] == [
            "4 entities, 1 without an edge",
            "2 passages, 1 without an edge",
        ]
        assert self.GRAPH.entity_labels[0] in texts_of(names)


class TestWorkspaces:
    def test_a_workspace_is_drawn_whatever_wrote_it(self, workspace: Path, tmp_path: Path) -> None:
        degrees = plot_degrees(workspace, tmp_path / "d.png")
        assert degrees["best_connected"][0] == {"entity": "Velm", "edges": 3}
        assert degrees["degrees"]["passages"]["nodes"] == 1
        assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.slow
    def test_one_passage_without_facts_is_drawn(self, tmp_path: Path) -> None:
        root = publish_workspace(tmp_path / "w", [passage_of("velm", "", "It is raining.")]).root
        assert plot_degrees(root, tmp_path / "d.png")["best_connected"] == []
        found = plot_relations(root, tmp_path / "r.svg")["relations"]
        assert {each["edges"] for each in found.values()} == {0}

    def test_where_there_is_no_workspace_nothing_is_written(self, tmp_path: Path) -> None:
        with pytest.raises(WorkspaceMissing):
            plot_degrees(tmp_path / "none", tmp_path / "d.png")
        assert list(tmp_path.iterdir()) == []
