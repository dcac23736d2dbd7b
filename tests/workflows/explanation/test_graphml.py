"""GraphML of an explanation, as other programs read it, with any texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import igraph

from workflows.explanation.model import Edge, Explanation, Models, Node, Shown, Stop, to_graphml

HOSTILE = "\x00\x1b[31m]]><!--&amp; \"<node id='x'/>\u2028\ud800\ufffe\U0001f600"
WRITTEN = "\ufffd\ufffd[31m]]><!--&amp; \"<node id='x'/>\u2028\ufffd\ufffd\U0001f600"


def explanation(label: str = "Nissan", *, walked: bool = True) -> Explanation:
    stops = (Stop(0.0, "without β"), Stop(1.0, "with β")) if walked else ()
    mass, start = ((0.125, 0.25), (0.0625, 0.03125)) if walked else ((), ())
    entity = Node("e0", "entity", "entity-1", label, "", "", None, None, mass, start, ())
    passage = Node("p0", "passage", "cars-1", label, "text", "file", 2, (1, 1), mass, start, ())
    edge = Edge("x0", "e0", "p0", "PRIMARY", "own title", 0.75, (), mass, start)
    fact = Edge("x1", "e0", "p0", "TEMPORAL", None, 1.0, (label, "made"), mass, start)
    return Explanation(
        *("question", "answer", "mara", "walk", "workspace", 1, Models("offline", "hash", "embedded"), (), (), "kept"),
        *(None, 1.0, 0.7, stops, (entity, passage), (edge, fact) if walked else (), (), ()),
        *(Shown(2, 2, 2, 2, 1.0), None),
    )


def read(written: Explanation, folder: Path) -> Any:
    path = folder / "out.graphml"
    path.write_text(to_graphml(written), encoding="utf-8")
    return igraph.Graph.Read_GraphML(str(path))


def test_igraph_reads_nodes_and_edges_with_their_numbers_at_the_runs_own_stop(tmp_path: Path) -> None:
    graph = read(explanation(), tmp_path)
    entity, passage = graph.vs
    assert (entity["id"], entity["kind"], entity["label"], entity["ref"]) == ("e0", "entity", "Nissan", "entity-1")
    assert (passage["mass"], passage["restart"], passage["number"]) == (0.25, 0.03125, 2)
    link, fact = graph.es
    assert (link["relation"], link["link"], link["weight"]) == ("PRIMARY", "own title", 0.75)
    assert (fact["predicates"], fact["forward"], fact["backward"]) == ("Nissan; made", 0.25, 0.03125)
    assert graph.is_directed()


def test_characters_that_xml_cannot_hold_are_replaced_and_markup_stays_text(tmp_path: Path) -> None:
    assert read(explanation(HOSTILE), tmp_path).vs["label"] == [WRITTEN, WRITTEN]
