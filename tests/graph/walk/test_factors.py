from __future__ import annotations

import numpy as np
import pytest

from graph.construction.edges import EDGE_KINDS, KIND_INDEX, EdgeKind
from graph.relations import PassageLink
from graph.schema import RelationFactors, RelationType
from graph.walk.factors import EdgeFactors, edge_factors
from graph.walk.settings import DIRECTED, UNDIRECTED, FactorPolicy

TEMPORAL_FIRST = RelationFactors(
    {"HIERARCHICAL": 0.1, "TEMPORAL": 0.7, "SPATIAL": 0.1, "CAUSALITY": 0.05, "ATTRIBUTION": 0.05},
    {"PRIMARY": 0.6, "SECONDARY": 0.3, "PERIPHERAL": 0.1},
)


def factor_of(factors: EdgeFactors, relation: RelationType, link: PassageLink | None = None) -> float:
    return float(factors.from_entity[KIND_INDEX[EdgeKind(relation, link)]])


def test_under_the_category_policy_the_factor_of_a_type_is_its_beta_whatever_the_link() -> None:
    factors = edge_factors(TEMPORAL_FIRST, policy=FactorPolicy.CATEGORY)
    assert 0.9 * factor_of(factors, RelationType.TEMPORAL) == pytest.approx(0.63), "as in the source documents"
    for kind in EDGE_KINDS:
        beta = {**TEMPORAL_FIRST.entity_entity, **TEMPORAL_FIRST.entity_passage}.get(kind.relation, 0.05)
        assert factor_of(factors, kind.relation, kind.link) == beta, "a synonym's is that of attribution"


def test_under_the_facts_policy_beta_is_the_factor_of_facts_and_one_that_of_others() -> None:
    factors = edge_factors(TEMPORAL_FIRST, policy=FactorPolicy.FACTS)
    for kind in EDGE_KINDS:
        expected = TEMPORAL_FIRST.entity_entity.get(kind.relation, 1.0)
        assert factor_of(factors, kind.relation, kind.link) == expected
    other = RelationFactors(TEMPORAL_FIRST.entity_entity, {"PRIMARY": 1.0, "SECONDARY": 0.0, "PERIPHERAL": 0.0})
    same = edge_factors(other, policy=FactorPolicy.FACTS)
    assert np.array_equal(same.from_entity, factors.from_entity)
    assert np.array_equal(same.from_passage, factors.from_passage)
    assert set(edge_factors(None, policy=FactorPolicy.FACTS).from_entity) == {1.0}


def test_types_that_beta_does_not_name_take_the_mean_of_their_category_and_are_named() -> None:
    partial = RelationFactors({"TEMPORAL": 0.6, "SPATIAL": 0.2}, {"PRIMARY": 0.5})
    missing = ("HIERARCHICAL", "CAUSALITY", "ATTRIBUTION", "SECONDARY", "PERIPHERAL")
    for policy, unknown, cause, peripheral in [
        (FactorPolicy.CATEGORY, missing, 0.4, 0.5),
        (FactorPolicy.FACTS, missing[:3], 0.4, 1.0),
        (FactorPolicy.NEUTRAL, missing, 1.0, 1.0),
    ]:
        factors = edge_factors(partial, policy=policy)
        assert factors.unknown == unknown
        assert factor_of(factors, RelationType.CAUSALITY) == pytest.approx(cause)
        assert factor_of(factors, RelationType.PERIPHERAL, PassageLink.MENTION) == peripheral
    empty = edge_factors(RelationFactors({}, {}), policy=FactorPolicy.CATEGORY)
    assert factor_of(empty, RelationType.TEMPORAL) == 1 / 5
    assert factor_of(empty, RelationType.PRIMARY, PassageLink.OWN_TITLE) == 1 / 3
    assert edge_factors(TEMPORAL_FIRST).unknown == edge_factors(None).unknown == ()


class TestDirections:
    title, mention = (
        KIND_INDEX[EdgeKind(RelationType.PRIMARY, link)] for link in (PassageLink.OWN_TITLE, PassageLink.MENTION)
    )

    def test_with_them_passage_edges_alone_differ_by_side(self) -> None:
        assert edge_factors(TEMPORAL_FIRST, directions=UNDIRECTED).symmetric
        factors = edge_factors(None, directions=DIRECTED)
        assert not factors.symmetric
        for index, kind in enumerate(EDGE_KINDS):
            same = factors.from_entity[index] == factors.from_passage[index]
            assert same == (kind.link is None)

    def test_without_titles_a_title_is_left_as_a_mention_is(self) -> None:
        factors = edge_factors(None, directions=DIRECTED.without_titles())
        for link in (PassageLink.OWN_TITLE, PassageLink.OTHER_TITLE):
            title = KIND_INDEX[EdgeKind(RelationType.PRIMARY, link)]
            assert factors.from_entity[title] == factors.from_entity[self.mention]
            assert factors.from_passage[title] == factors.from_passage[self.mention]
        assert not factors.symmetric
        assert UNDIRECTED.without_titles().fact == 1
        assert edge_factors(None, directions=UNDIRECTED.without_titles()).symmetric

    def test_an_edge_takes_the_factor_of_the_side_it_is_left_from(self) -> None:
        """From an entity to the passage about it, from a passage to what it mentions."""
        factors = edge_factors(None, directions=DIRECTED)
        assert factors.from_entity[self.title] > factors.from_entity[self.mention]
        assert factors.from_passage[self.title] < factors.from_passage[self.mention]
        assert factors.from_source[[self.title, 0]].tolist() == [10.0, 0.3]
        assert factors.from_target[[self.title, 0]].tolist() == [0.1, 0.3]
