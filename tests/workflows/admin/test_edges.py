"""``mara show edges``: what an edge stands for is what the graph was made from, to the last edge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.construction.edges import OBJECT_ROLE, SUBJECT_ROLE, UNTRIPLED_ROLE
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS
from tests.workflows.command_line import Mara
from workflows.admin.inspection import entity_edges, published_graph
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext

ROWS = [
    {"id": "p1", "title": "Velm (river)", "text": "The Velm is a river in Ostra. It flows into Lake Sund."},
    {"id": "p2", "title": "Lake Sund", "text": "Lake Sund lies in Ostra, and the Velm feeds it."},
    {"id": "p3", "title": "Karv", "text": "Karv lies on Lake Sund and was founded in 1802."},
    {"id": "p4", "title": "Same", "text": "Nothing of note."},
    {"id": "p5", "title": "Same", "text": "Nothing either."},
]
TRIPLES = [
    {
        "id": "p1",
        "entities": ["Velm", "Lake Sund", "Ostra"],
        "triples": [
            ["Velm", "flows into", "Lake Sund", "SPATIAL", 0.9],
            ["Velm", "is a", "river", "HIERARCHICAL", 0.5],
        ],
    },
    {"id": "p2", "entities": ["Velm"], "triples": [["velm", "feeds", "Lake Sund", "SPATIAL", 0.6]]},
    {"id": "p3", "entities": [], "triples": [["Karv", "founded", "1802", "TEMPORAL", 1.0]]},
]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("edges")
    (root / "corpus.jsonl").write_text(lines(ROWS), encoding="utf-8")
    (root / "triples.jsonl").write_text(lines(TRIPLES), encoding="utf-8")
    long = " ".join(f"Sentence {n} of the Chronicle tells of Karv and of many other things." for n in range(40))
    (root / "chronicle.md").write_text(f"# Chronicle\n\n{long}\n", encoding="utf-8")
    index_sources(
        [root / "corpus.jsonl", root / "chronicle.md"],
        root / "workspace",
        root / "triples.jsonl",
        settings=IndexingContext(chunk_tokens=100),
    )
    return root / "workspace"


def test_a_fact_edge_shows_its_triples_passage_by_passage(workspace: Path) -> None:
    listing = entity_edges(workspace, "Velm", "lake sund")
    (edge,) = listing["edges"]
    assert (listing["entity"]["label"].casefold(), listing["to"]["label"], listing["of_edges"]) == (
        "velm",
        "Lake Sund",
        1,
    )
    assert (edge["relation"], edge["link"]) == ("SPATIAL", None)
    assert edge["weight"] == pytest.approx(1.5)
    assert edge["triples"] == [
        {
            "passage": passage,
            "subject": subject,
            "predicate": predicate,
            "object": "Lake Sund",
            "relation": "SPATIAL",
            "confidence": confidence,
        }
        for passage, subject, predicate, confidence in (
            ("p1", "Velm", "flows into", 0.9),
            ("p2", "velm", "feeds", 0.6),
        )
    ]


def test_a_passage_edge_shows_its_role_similarity_and_position(workspace: Path) -> None:
    (edge,) = entity_edges(workspace, "Lake Sund", "p1")["edges"]
    content = "Velm (river)\nThe Velm is a river in Ostra. It flows into Lake Sund."
    assert edge["other"] == {"kind": "passage", "id": "p1", "label": "Velm (river)"}
    assert edge["link"] == "title of another passage"
    assert edge["terms"]["role"] == OBJECT_ROLE
    assert edge["terms"]["position"] == pytest.approx(1 - content.index("Lake Sund") / len(content))
    assert 0 <= edge["terms"]["similarity"] <= 1
    assert entity_edges(workspace, "Velm", "p1")["edges"][0]["terms"]["role"] == SUBJECT_ROLE
    assert entity_edges(workspace, "Ostra", "p1")["edges"][0]["terms"]["role"] == UNTRIPLED_ROLE


def test_every_weight_of_a_workspace_is_made_of_what_is_shown(workspace: Path) -> None:
    with published_graph(workspace) as (_, graph):
        names, n_edges = list(graph.entity_names), len(graph.edges)
        chunks = sum("chunk" in passage.metadata for passage in graph.passages)
    assert chunks > 1
    shown_edges = [edge for name in names for edge in entity_edges(workspace, name, limit=10_000)["edges"]]
    links = [edge for edge in shown_edges if edge["relation"] in PASSAGE_RELATIONS]
    assert len(shown_edges) - (len(shown_edges) - len(links)) / 2 == n_edges, (
        "an edge between entities is shown from both"
    )
    for edge in shown_edges:
        if edge["relation"] in ENTITY_RELATIONS:
            assert edge["weight"] == pytest.approx(sum(triple["confidence"] for triple in edge["triples"]))
        elif edge in links:
            terms = edge["terms"]
            weight = 0.4 * terms["role"] + 0.4 * terms["similarity"] + 0.2 * terms["position"]
            if edge["link"] == "own title" and edge["other"]["label"] == "Chronicle":
                weight /= chunks**0.5
            assert edge["weight"] == pytest.approx(weight, abs=1e-6)
        else:
            assert not {"triples", "terms"} & edge.keys()


def test_the_heaviest_come_first_and_a_limit_says_how_many_there_are(workspace: Path) -> None:
    every = entity_edges(workspace, "Lake Sund", limit=100)["edges"]
    weights = [edge["weight"] for edge in every]
    assert weights == sorted(weights, reverse=True)
    two = entity_edges(workspace, "Lake Sund", limit=2)
    assert two["edges"] == every[:2]
    assert two["of_edges"] == len(every)


def test_the_command_shows_them_in_words_and_as_json(workspace: Path, mara: Mara) -> None:
    shown = mara("show", "edges", "Velm", "--to", "Lake Sund", "-w", workspace)
    assert shown.code == 0
    assert "SPATIAL, weight 1.500" in shown.out
    assert "Velm | flows into | Lake Sund  confidence 0.90 (p1)" in shown.out
    assert "role 1.000, similarity 0." in mara("show", "edges", "Velm", "--to", "p1", "-w", workspace).out
    assert mara("show", "edges", "Velm", "-w", workspace, "--json").json == entity_edges(workspace, "Velm")
    without = mara("show", "edges", "Velm", "--to", "Karv", "-w", workspace).out
    assert without.casefold() == "velm – karv: no edges; omit --to to show all of its edges\n"
    assert "– passage Karv (p3): no edges" in mara("show", "edges", "Velm", "--to", "p3", "-w", workspace).out
    refused = mara("show", "edges", "Nobody", "-w", workspace)
    assert (refused.code, "Nobody" in refused.err) == (2, True)
