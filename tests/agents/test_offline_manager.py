from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.manager import PASSAGE_WEIGHTS, OfflineManager
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.schema import RelationFactors


def first_relation(question: str) -> str:
    factors = OfflineManager().weigh(question).factors.entity_entity
    return max(factors, key=lambda name: factors[name])


def test_a_when_question_puts_time_first() -> None:
    assert first_relation("When was Nissan founded?") == "TEMPORAL"


def test_a_cause_question_puts_causes_first_and_trusts_passages_less() -> None:
    weights = OfflineManager().weigh("What caused World War I?")
    assert first_relation("What caused World War I?") == "CAUSALITY"
    assert PASSAGE_WEIGHTS[0] <= weights.passage_weight < DEFAULT_PASSAGE_WEIGHT


@pytest.mark.parametrize("question", ["", "Emma and Ada", "日産とは何ですか", "ما هي نيسان؟"])
def test_a_question_without_cues_gets_uniform_factors_and_the_usual_passage_weight(question: str) -> None:
    weights = OfflineManager().weigh(question)
    uniform = RelationFactors.uniform()
    assert weights.factors.entity_entity == pytest.approx(uniform.entity_entity)
    assert weights.factors.entity_passage == pytest.approx(uniform.entity_passage)
    assert weights.passage_weight == DEFAULT_PASSAGE_WEIGHT


def test_a_question_with_every_cue_of_a_type_still_leaves_half_to_the_others() -> None:
    question = "When, in which year, before or after 1990, during which century, was the first one founded and dated?"
    assert 0.3 < OfflineManager().weigh(question).factors.entity_entity["TEMPORAL"] < 0.5


def test_two_kinds_of_relation_share_the_weight() -> None:
    factors = OfflineManager().weigh("When was the director of Emma born?").factors.entity_entity
    assert factors["TEMPORAL"] > factors["ATTRIBUTION"] > factors["SPATIAL"]


@given(st.text(max_size=120))
def test_any_question_gets_complete_factors_within_limits(question: str) -> None:
    weights = OfflineManager().weigh(question)
    for category in (weights.factors.entity_entity, weights.factors.entity_passage):
        assert sum(category.values()) == pytest.approx(1)
        assert min(category.values()) >= 0.02
    assert PASSAGE_WEIGHTS[0] <= weights.passage_weight <= PASSAGE_WEIGHTS[1]
    assert weights.defaulted == ()
    assert weights == OfflineManager().weigh(question)
