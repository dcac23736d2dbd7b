"""What documents explain and how concepts are related, on graphs that are worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relations import ENTITY_RELATIONS, RelationType
from graph.relationships import concept_view as module
from graph.relationships.concept_view import EXPLANATION_TYPES, NAME_ALONE, descriptions, explanations, relatedness
from graph.schema import Passage, entity_id
from graph.storage.record import Record
from tests.builders import HashEmbedder, TripleParts, passage_of, write_passages

Facts = Mapping[str, Sequence[TripleParts]]
Explained = dict[tuple[int, str], tuple[float, str, float]]

HIERARCHICAL, TEMPORAL, SPATIAL, _, ATTRIBUTION = ENTITY_RELATIONS
DEFINITION, EXAMPLE, APPLICATION, SETTING, MENTION = EXPLANATION_TYPES


def graph_of(
    tmp_path: Path, passages: Sequence[Passage], triples: Mapping[str, Sequence[TripleParts]]
) -> KnowledgeGraph:
    with Record(tmp_path / "record.sqlite", create=True) as record:
        write_passages(record, passages, triples, HashEmbedder())
        return derive_graph(record)


def explained(graph: KnowledgeGraph, document_of: Sequence[int]) -> Explained:
    """Return {(document, concept's name): (relevance, type, confidence)}."""
    edges = explanations(graph, np.array(document_of, dtype=np.int64))
    columns = (edges.sources, edges.targets, edges.weights, edges.kinds, edges.confidence)
    return {
        (document, graph.entity_labels[concept]): (relevance, EXPLANATION_TYPES[kind], confidence)
        for document, concept, relevance, kind, confidence in zip(*(each.tolist() for each in columns), strict=True)
    }


def related(graph: KnowledgeGraph, document_of: Sequence[int]) -> dict[frozenset[str], tuple[str, int, float]]:
    """Return {names of two concepts: (relation, documents, confidence)}."""
    edges = relatedness(graph, np.array(document_of, dtype=np.int64))
    columns = (edges.sources, edges.targets, edges.kinds, edges.weights, edges.confidence)
    return {
        frozenset((graph.entity_labels[a], graph.entity_labels[b])): (graph.kinds[kind].relation, documents, confidence)
        for a, b, kind, documents, confidence in zip(*(each.tolist() for each in columns), strict=True)
    }


MARN = passage_of("marn", "Marn", "Marn is a town on the Velm, founded in 1201.")
ORLO = passage_of("orlo", "Orlo Brandt", "Orlo Brandt owned the Sund yard. He went to Marn.")
FACTS: dict[str, list[TripleParts]] = {
    "marn": [
        ("Marn", "is", "town", HIERARCHICAL, 0.9),
        ("Marn", "on", "Velm", SPATIAL, 0.7),
        ("Marn", "founded in", "1201", TEMPORAL, 0.9),
    ],
    "orlo": [("Orlo Brandt", "owned", "Sund yard", ATTRIBUTION, 0.8)],
}


class TestExplanations:
    def test_the_type_and_the_confidence_follow_from_titles_and_facts(self, tmp_path: Path) -> None:
        graph = graph_of(tmp_path, [MARN, ORLO], FACTS)
        edges = explained(graph, [0, 1])
        assert {key: (kind, confidence) for key, (_, kind, confidence) in edges.items()} == {
            (0, "Marn"): (DEFINITION, 1.0),
            (0, "town"): (EXAMPLE, 0.9),
            (0, "Velm"): (SETTING, 0.7),
            (0, "1201"): (SETTING, 0.9),
            (1, "Orlo Brandt"): (DEFINITION, 1.0),
            (1, "Sund yard"): (APPLICATION, 0.8),
            (1, "Marn"): (MENTION, NAME_ALONE),
        }
        assert edges[0, "Marn"][0] == 1.0
        town = graph.entity_index[entity_id("town")]
        (weight,) = graph.edges.weight[(graph.edges.source == town) & (graph.edges.target == graph.n_entities)]
        assert edges[0, "town"][0] == pytest.approx(weight, abs=1e-4)

    def test_of_several_passages_the_best_counts(self, tmp_path: Path) -> None:
        early = passage_of("early", "", "Velm. The river floods in spring.")
        late = passage_of("late", "", "The river floods in spring, and it is called Velm.")
        facts: Facts = {key: [("Velm", "floods in", "spring", TEMPORAL)] for key in ("early", "late")}
        graph = graph_of(tmp_path, [early, late], facts)
        apart, joined = explained(graph, [0, 1]), explained(graph, [0, 0])
        assert joined[0, "Velm"][0] == max(apart[0, "Velm"][0], apart[1, "Velm"][0])
        assert set(joined) == {(0, "Velm"), (0, "spring")}

    def test_an_own_type_tells_an_application_and_a_loop_nothing(self, tmp_path: Path) -> None:
        supplies = RelationType("SUPPLIES")
        facts: Facts = {
            "p": [("Velm", "supplies", "Marn", supplies, 0.6)],
            "q": [("Sund", "is", "sund", HIERARCHICAL)],
        }
        passages = [passage_of("p", "", "The Velm supplies Marn."), passage_of("q", "", "Sund and Sund.")]
        graph = graph_of(tmp_path, passages, facts)
        assert explained(graph, [0, 1])[0, "Velm"][1:] == (APPLICATION, 0.6)
        assert explained(graph, [0, 1])[1, "Sund"][1] == MENTION
        assert related(graph, [0, 1]) == {frozenset(("Velm", "Marn")): (supplies, 1, 0.6)}


class TestRelatedness:
    def test_statements_confirm_each_other(self, tmp_path: Path) -> None:
        texts = [passage_of(key, "", "Orlo lived in Marn.") for key in "abc"]
        facts: Facts = {
            "a": [("Orlo", "lived in", "Marn", SPATIAL, 0.5)],
            "b": [("Marn", "home of", "Orlo", SPATIAL, 0.5)],
            "c": [("Orlo", "left", "Marn", TEMPORAL, 0.6), ("Ada", "lived in", "Sund", SPATIAL, 1.0)],
        }
        pairs = related(graph_of(tmp_path, texts, facts), [0, 0, 1])
        relation, documents, confidence = pairs.pop(frozenset(("Orlo", "Marn")))
        assert (relation, documents) == (SPATIAL, 2)
        assert confidence == pytest.approx(1 - 0.5 * 0.5 * 0.4, abs=1e-4)
        assert pairs == {frozenset(("Ada", "Sund")): (SPATIAL, 1, 1.0)}, "the certain stays certain"

    def test_a_concept_keeps_so_many_relations_at_most(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "RELATED_PER_CONCEPT", 2)
        facts: Facts = {
            "a": [("Hub", "near", name, SPATIAL, share) for name, share in (("Ada", 0.9), ("Bo", 0.5), ("Cy", 0.7))],
            "b": [("Hub", "near", "Bo", SPATIAL, 0.5), ("Bo", "near", "Cy", SPATIAL, 0.1)],
        }
        texts = [passage_of(key, "", "Hub, Ada, Bo and Cy.") for key in "ab"]
        pairs = related(graph_of(tmp_path, texts, facts), [0, 1])
        assert set(pairs) == {frozenset(("Hub", "Bo")), frozenset(("Hub", "Ada")), frozenset(("Bo", "Cy"))}
        assert pairs[frozenset(("Hub", "Bo"))][1] == 2, "what most documents state goes first, then the surest"


class TestDescriptions:
    def test_a_concept_is_described_by_what_most_passages_say_that_it_is(self, tmp_path: Path) -> None:
        texts = [passage_of(key, "", "Marn is a town.") for key in "abc"]
        part: TripleParts = ("Marn", "part of", "Velmland", HIERARCHICAL)
        town: TripleParts = ("Marn", "was also the", "town", HIERARCHICAL)
        facts: Facts = {"a": [("Marn", "is", "port", HIERARCHICAL), part], "b": [town, part], "c": [town, part]}
        graph = graph_of(tmp_path, texts, facts)
        assert descriptions(graph, np.ones(graph.n_entities, dtype=bool)) == {
            graph.entity_index[entity_id("Marn")]: "town"
        }
