"""Upkeep: what derived edges are worth, which are pruned, and when a pruned one comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, NodeType
from graph.relationships.upkeep import evaluate, n_pruned, prune
from graph.schema import Passage, RelationType, entity_id
from tests.builders import TripleParts
from tests.graph.relationships.small_graph import Step
from tests.relationship_graphs import sample_node

pytestmark = pytest.mark.usefixtures("database")

NISSAN = Passage("nissan", "Nissan", "Nissan was founded in Yokohama.", "cars.jsonl")
DATSUN = Passage("datsun", "Datsun", "Datsun was a brand of Nissan, perhaps near Tokyo.", "cars.jsonl")
FACTS: dict[str, list[TripleParts]] = {
    "nissan": [("Nissan", "founded in", "Yokohama", RelationType.SPATIAL, 0.9)],
    "datsun": [
        ("Datsun", "brand of", "Nissan", RelationType.HIERARCHICAL, 0.8),
        ("Datsun", "near", "Tokyo", RelationType.SPATIAL, 0.1),
    ],
}
BELOW = 0.38
"""What the uncertain fact of Tokyo is worth less than, as an explanation and as a relation; the others are not."""

EXPLAINS, RELATED_TO = EdgeType.EXPLAINS, EdgeType.RELATED_TO


def explains_tokyo(record: RelationshipRecord) -> bool:
    ends = (NodeType.DOCUMENT, "datsun"), (NodeType.CONCEPT, entity_id("Tokyo"))
    return record.edge(EXPLAINS, *ends) is not None


@pytest.fixture
def step(tmp_path: Path) -> Step:
    opened = Step(tmp_path / "workspace")
    opened.write([NISSAN, DATSUN], FACTS)
    opened.take()
    return opened


def test_values_are_told_by_type(step: Step, tmp_path: Path) -> None:
    explains, related = evaluate(step.to)
    assert (explains.type, explains.edges, explains.pruned) == (EXPLAINS, 5, 0)
    assert explains.quartiles[-1] == 1.0, "a document is worth all to its title"
    assert (related.edges, related.in_use) == (3, 0)
    assert related.quartiles == (0.05, 0.225, 0.4, 0.425, 0.45), "confidence times one half, of one document each"
    (tmp_path / "empty").mkdir()
    with RelationshipRecord.of(tmp_path / "empty", create=True) as record:
        assert [(each.edges, each.quartiles) for each in evaluate(record)] == [(0, ()), (0, ())]
        assert [each.pruned for each in prune(record, 1.0)] == [0, 0]
    for below in (-0.1, 1.1, float("nan")):
        with pytest.raises(BadInput, match="cannot be worth less"):
            prune(step.to, below)


def test_weak_edges_go_and_stay_away_and_are_forgotten_with_their_document(step: Step) -> None:
    before = step.to.revision, step.to.counts()
    values = prune(step.to, BELOW, dry_run=True)
    assert (step.to.revision, step.to.counts()) == before
    assert prune(step.to, BELOW) == values
    assert [each.pruned for each in values] == [1, 1]
    ((one, other, value),) = values[1].examples
    assert ({one, other}, value) == ({"Datsun", "Tokyo"}, 0.05)
    assert not explains_tokyo(step.to)
    assert step.to.counts()[RELATED_TO] == 2
    assert n_pruned(step.to) == 2
    step.write([replace(NISSAN, text="Nissan was founded in Yokohama in 1933.")], FACTS)
    step.take()
    assert not explains_tokyo(step.to)
    assert [each.pruned for each in evaluate(step.to)] == [1, 1]
    step.write([], removed=["datsun"])
    step.take()
    assert n_pruned(step.to) == 0


def test_an_edge_comes_back_when_its_evidence_changes(step: Step) -> None:
    prune(step.to, BELOW)
    facts = {**FACTS, "datsun": [*FACTS["datsun"][:1], ("Datsun", "near", "Tokyo", RelationType.SPATIAL, 0.9)]}
    changed = replace(DATSUN, text="Datsun was a brand of Nissan near Tokyo.")
    step.write([changed], facts)
    step.take()
    assert explains_tokyo(step.to)
    assert step.to.counts()[RELATED_TO] == 3
    assert n_pruned(step.to) == 0


def test_what_conversations_use_stays(step: Step) -> None:
    tokyo, datsun = (NodeType.CONCEPT, entity_id("Tokyo")), (NodeType.CONCEPT, entity_id("Datsun"))
    message = (NodeType.MESSAGE, "m")
    step.to.put_node(sample_node(*message))
    for concept in (tokyo, datsun):
        step.to.link(Edge(EdgeType.MENTIONS, message, concept, {"confidence": 1.0}))
    assert [each.pruned for each in prune(step.to, BELOW, dry_run=True)] == [1, 0]
    step.to.link(Edge(EdgeType.REFERENCES, message, (NodeType.DOCUMENT, "datsun"), {"number": 1}))
    assert [each.pruned for each in prune(step.to, BELOW)] == [0, 0]
    assert [each.in_use for each in evaluate(step.to)] == [2, 1]
