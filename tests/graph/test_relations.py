"""A relation type is added in one table; this names each other place that it needs to stand in."""

from __future__ import annotations

from agents.manager import OfflineManager
from graph.construction.edges import EDGE_KINDS
from graph.explain.matrices import matrices_of
from graph.relations import DEFINITIONS, ENTITY_RELATIONS, PASSAGE_RELATIONS, RELATIONS, Links, RelationType
from graph.schema import RelationFactors
from graph.taxonomy import CUES, QUESTION_CUES
from graph.walk.strengths import TUNED_RELATIONS
from prompts import load_prompt


def test_a_relation_type_stands_wherever_it_is_needed() -> None:
    assert list(RELATIONS) == list(RelationType)
    assert set(CUES) == set(QUESTION_CUES) == set(ENTITY_RELATIONS)
    assert set(DEFINITIONS) == {*ENTITY_RELATIONS, *PASSAGE_RELATIONS}
    assert {kind.relation for kind in EDGE_KINDS} == set(RelationType)
    assert set(TUNED_RELATIONS) == set(RelationType)
    assert {relation for relations in matrices_of().values() for relation in relations} == set(RelationType)
    uniform = RelationFactors.uniform()
    assert [*uniform.entity_entity, *uniform.entity_passage] == [*ENTITY_RELATIONS, *PASSAGE_RELATIONS]


def test_the_prompts_and_the_cues_know_each_type_of_fact() -> None:
    manager, extractor = (load_prompt(name).template for name in ("manager", "extractor"))
    for about in RELATIONS.values():
        assert bool(about.question) == (about.links is Links.FACT)
    for relation in ENTITY_RELATIONS:
        assert f"for {relation}" in " ".join(manager.split())
        assert f'"{relation}":' in manager
        assert f'"relation": "{relation}"' in extractor
        shares = OfflineManager().weigh(RELATIONS[relation].question, None).factors.entity_entity
        assert max(shares, key=lambda each: shares[each]) == relation, "its own question"
