"""What a filter lets be seen of a graph, from the ids of the passages alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.edges import EdgeKind
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relations import PassageLink
from graph.retrieve.open_index import open_index
from graph.retrieve.selection import Selection
from graph.schema import RelationType, entity_id
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace, typed_graph

MENTION = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)
SPATIAL = EdgeKind(RelationType.SPATIAL)
N_ENTITIES, N_PASSAGES = 4, 5

PASSAGES = [
    passage_of("open", "Marn", "Marn lies by lake sund."),
    passage_of("hidden", "LAKE SUND", "LAKE SUND is salty. MARN LIES BY LAKE SUND."),
    passage_of("secret", "Project Orlo", "Project Orlo began in 1933."),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "open": [("Marn", "lies by", "lake sund", RelationType.SPATIAL)],
    "hidden": [
        ("MARN", "LIES BY", "LAKE SUND", RelationType.SPATIAL),
        ("LAKE SUND", "is", "salty", RelationType.ATTRIBUTION),
        ("LAKE SUND", "is in", "OSTRA", RelationType.SPATIAL),
    ],
    "secret": [("Project Orlo", "began in", "1933", RelationType.TEMPORAL)],
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    root = tmp_path_factory.mktemp("selection")
    publish_workspace(root, PASSAGES, TRIPLES)
    index = open_index(root, HashEmbedder())
    yield index.graph
    index.close()


def entity(graph: KnowledgeGraph, name: str) -> int:
    return graph.entity_index[entity_id(name)]


links = st.lists(st.tuples(st.integers(0, N_ENTITIES - 1), st.integers(0, N_PASSAGES - 1)), max_size=12)


@given(links=links, selected=st.sets(st.integers(0, N_PASSAGES)))
def test_an_entity_is_seen_where_a_selected_passage_has_it(links: list[tuple[int, int]], selected: set[int]) -> None:
    """One passage more than there are is asked for: ids that the graph does not know are left out."""
    edges = [(e, N_ENTITIES + p, MENTION, 0.5) for e, p in links]
    graph = typed_graph(N_ENTITIES, N_PASSAGES, [*edges, (0, 1, SPATIAL, 1.0), (2, 3, SPATIAL, 1.0)])
    selection = Selection.of(graph, graph.passages_of([f"p{p}" for p in selected]))
    assert selection.rows.tolist() == sorted(selected - {N_PASSAGES})
    assert np.flatnonzero(selection.passages).tolist() == selection.rows.tolist()
    assert set(np.flatnonzero(selection.entities)) == {e for e, p in links if p in selected}
    assert set(np.flatnonzero(selection.shared)) == {e for e, p in links if p not in selected}
    assert selection.is_empty == (not selected - {N_PASSAGES})


def test_a_fact_is_seen_with_the_evidence_and_the_spelling_of_selected_passages_alone(graph: KnowledgeGraph) -> None:
    selection = Selection.of(graph, graph.passages_of(["open"]))
    (key,) = selection.facts
    fact = selection.fact(key)
    assert fact is not None
    assert fact.passages == (graph.passage_index["open"],)
    assert len(graph.facts[key].passages) == 2
    assert (fact.fact.text, fact.fact.id) == ("marn lies by lake sund", key)
    assert [selection.fact(other) for other in graph.facts if other != key] == [None] * 3
    assert selection.fact("no fact") is None
    assert [selection.label(entity(graph, name)) for name in ("Marn", "Lake Sund")] == ["marn", "lake sund"]
    assert graph.entity_labels[entity(graph, "Lake Sund")] == "LAKE SUND"


def test_what_only_selected_passages_hold_is_shown_as_they_spell_it(graph: KnowledgeGraph) -> None:
    selection = Selection.of(graph, graph.passages_of(["open", "hidden"]))
    assert selection.facts.keys() == {key for key, fact in graph.facts.items() if fact.fact.object != "1933"}
    assert all(selection.fact(key) == graph.facts[key] for key in selection.facts)
    assert selection.label(entity(graph, "Ostra")) == "OSTRA"
