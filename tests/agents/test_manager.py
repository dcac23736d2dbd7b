from __future__ import annotations

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.manager import (
    FACTOR_FLOOR,
    PASSAGE_WEIGHTS,
    ChatManager,
    Manager,
    OfflineManager,
    RelationWeights,
    normalise_factors,
)
from graph.errors import MalformedReply
from graph.relations import DEFINITIONS
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationFactors
from tests.chatting import model_on
from tests.scripted_server import ScriptedServer, scripted

ENTITY = {"HIERARCHICAL": 0.1, "TEMPORAL": 0.6, "SPATIAL": 0.1, "CAUSALITY": 0.1, "ATTRIBUTION": 0.1}
PASSAGE = {"PRIMARY": 0.5, "SECONDARY": 0.3, "PERIPHERAL": 0.2}

entity_names = [relation.value for relation in ENTITY_RELATIONS]
passage_names = [relation.value for relation in PASSAGE_RELATIONS]
any_numbers = st.floats(allow_nan=False, allow_infinity=False)


def factors_of(names: list[str], values: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(st.sampled_from([*names, "BANANA"]), values)


def weigh(reply: str) -> RelationWeights:
    with scripted([reply]) as server:
        return manager_on(server).weigh("When was the line opened?")


def manager_on(server: ScriptedServer) -> Manager:
    return ChatManager(model_on(server))


def test_a_complete_reply_within_limits_is_taken_as_it_is_and_unknown_keys_are_counted() -> None:
    reply = {"entity_entity": ENTITY, "entity_passage": PASSAGE, "passage_weight": 0.03}
    weights = weigh(json.dumps(reply))
    assert weights.factors.entity_entity == pytest.approx(ENTITY)
    assert weights.factors.entity_passage == pytest.approx(PASSAGE)
    assert weights.defaulted == ()
    assert weigh(json.dumps(reply | {"confidence": 1})).defaulted == ("confidence",)


def test_what_is_missing_counts_nothing_but_the_floor_and_is_named() -> None:
    weights = normalise_factors({"TEMPORAL": 1.0}, {"PRIMARY": 1.0})
    assert weights.factors.entity_entity["SPATIAL"] == pytest.approx(FACTOR_FLOOR)
    assert weights.factors.entity_entity["TEMPORAL"] == pytest.approx(1 - 4 * FACTOR_FLOOR)
    assert weights.factors.entity_passage["PERIPHERAL"] == pytest.approx(FACTOR_FLOOR)
    assert weights.passage_weight == DEFAULT_PASSAGE_WEIGHT
    assert set(weights.defaulted) == {*entity_names, *passage_names, "passage_weight"} - {"TEMPORAL", "PRIMARY"}
    zeros = normalise_factors(dict.fromkeys(ENTITY, 0.0), dict.fromkeys(PASSAGE, 0), 0.05)
    assert zeros.factors == RelationFactors.uniform()
    assert zeros.defaulted == ()


def test_names_match_in_any_case_and_unknown_misplaced_and_repeated_ones_are_counted_and_change_nothing() -> None:
    weights = normalise_factors({"temporal": 0.5, "Causal": 0.5}, PASSAGE, 0.05)
    assert weights.factors.entity_entity["TEMPORAL"] == weights.factors.entity_entity["CAUSALITY"]
    assert weights.defaulted == ("HIERARCHICAL", "SPATIAL", "ATTRIBUTION")
    clean = normalise_factors(ENTITY, PASSAGE, 0.05)
    noisy = normalise_factors(ENTITY | {"BANANA": 1, "PRIMARY": 1, "SYNONYMY": 1, "causal": 1}, PASSAGE, 0.05)
    assert noisy.factors == clean.factors
    assert noisy.defaulted == ("BANANA", "PRIMARY", "SYNONYMY")


def test_values_out_of_their_limits_are_clamped_and_named() -> None:
    for passage_weight, clamped in ((-1.0, 0.01), (0.0, 0.01), (0.5, 0.1), (1e300, 0.1)):
        weights = normalise_factors(ENTITY, PASSAGE, passage_weight)
        assert (weights.passage_weight, weights.defaulted) == (clamped, ("passage_weight",))
    weights = normalise_factors(ENTITY | {"TEMPORAL": 5.0, "SPATIAL": -3.0}, PASSAGE, 0.05)
    assert weights.factors.entity_entity["TEMPORAL"] == pytest.approx(1 / 1.3 * (1 - FACTOR_FLOOR))
    assert weights.factors.entity_entity["SPATIAL"] == pytest.approx(FACTOR_FLOOR)


@given(factors_of(entity_names, any_numbers), factors_of(passage_names, any_numbers), st.none() | any_numbers)
def test_each_category_is_complete_sums_to_1_and_keeps_the_floor(
    entity: Mapping[str, float], passage: Mapping[str, float], passage_weight: float | None
) -> None:
    weights = normalise_factors(entity, passage, passage_weight)
    for factors, names in (
        (weights.factors.entity_entity, entity_names),
        (weights.factors.entity_passage, passage_names),
    ):
        assert list(factors) == names
        assert math.isclose(sum(factors.values()), 1, abs_tol=1e-12)
        assert min(factors.values()) >= FACTOR_FLOOR
    assert 0.01 <= weights.passage_weight <= 0.1


def test_what_is_no_number_is_malformed_not_defaulted() -> None:
    for value in ('"0.5"', "true", "NaN", "1e999"):
        with pytest.raises(MalformedReply):
            weigh(f'{{"entity_entity": {{"TEMPORAL": {value}}}, "entity_passage": {{"PRIMARY": 1}}}}')
    for reply in (
        '{"entity_entity": [1, 0, 0, 0, 0], "entity_passage": {"PRIMARY": 1}}',
        '{"entity_entity": {"TEMPORAL": 1}}',
        '{"entity_entity": {"TEMPORAL": 1}, "entity_passage": {"PRIMARY": 1}, "passage_weight": "low"}',
    ):
        with pytest.raises(MalformedReply):
            weigh(reply)


def test_the_request_defines_every_type_and_asks_for_all_of_them() -> None:
    with scripted({"manager": [json.dumps({"entity_entity": ENTITY, "entity_passage": PASSAGE})]}) as server:
        manager_on(server).weigh("When?")
    (request,) = server.requests_of("manager")
    for relation, meaning in DEFINITIONS.items():
        assert f"- {relation.value}: {meaning}" in request.text_of(0)
    schema = request.body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["entity_entity", "entity_passage", "passage_weight"]
    assert schema["properties"]["entity_entity"]["required"] == entity_names
    assert json.loads(request.text_of(1).splitlines()[2]) == {"question": "When?"}


def test_the_offline_manager_puts_first_what_the_cues_of_a_question_ask_for() -> None:
    for question, first in (("When was Nissan founded?", "TEMPORAL"), ("What caused World War I?", "CAUSALITY")):
        factors = OfflineManager().weigh(question).factors.entity_entity
        assert max(factors, key=lambda name: factors[name]) == first
    causes = OfflineManager().weigh("What caused World War I?")
    assert PASSAGE_WEIGHTS[0] <= causes.passage_weight < DEFAULT_PASSAGE_WEIGHT, "it trusts passages less"
    every = "When, in which year, before or after 1990, during which century, was the first one founded and dated?"
    assert 0.3 < OfflineManager().weigh(every).factors.entity_entity["TEMPORAL"] < 0.5, "half is left to the others"
    both = OfflineManager().weigh("When was the director of Emma born?").factors.entity_entity
    assert both["TEMPORAL"] > both["ATTRIBUTION"] > both["SPATIAL"]
    for question in ("", "Emma and Ada", "日産とは何ですか", "ما هي نيسان؟"):
        weights, uniform = OfflineManager().weigh(question), RelationFactors.uniform()
        assert weights.factors.entity_entity == pytest.approx(uniform.entity_entity)
        assert weights.factors.entity_passage == pytest.approx(uniform.entity_passage)
        assert weights.passage_weight == DEFAULT_PASSAGE_WEIGHT
