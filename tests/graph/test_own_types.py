"""A user's own types: what a file may declare, and what the rules find by them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.own_types import (
    ASKED,
    LONGEST_MEANING,
    MOST_ENTITIES,
    MOST_RELATIONS,
    NO_TYPES,
    OwnTypes,
    definition_list,
    own_types_of,
)
from graph.relations import DEFINITIONS, ENTITY_RELATIONS, RESERVED_NAMES, RelationType, fact_relations
from graph.taxonomy import fact_type_of, relation_type_of, type_triple

SUPPLIES, BERTHS = RelationType("SUPPLIES"), RelationType("BERTHS_AT")
DECLARED: Mapping[str, Any] = {
    "relations": {
        "SUPPLIES": {
            "meaning": "one delivers goods to the other",
            "examples": ["Orrin supplies Halden"],
            "cues": ["suppl*", "deliver* to"],
            "questions": ["vendor*"],
        },
        "berths_at": {"cues": ["berth*"]},
    },
    "entities": {
        "Vessel": {"cues": ["vessel", "ship"], "shapes": ["MV *"], "examples": ["Aurora"]},
        "Berth": {"shapes": ["@@-##"]},
    },
}
OWN = own_types_of(DECLARED)


def relations(**tables: Any) -> dict[str, Any]:
    return {"relations": tables}


class TestDeclaring:
    def test_relation_types_have_names_in_capitals_and_entity_types_their_own(self) -> None:
        assert OWN.relation_types == (BERTHS, SUPPLIES)
        assert OWN.entity_types == ("Berth", "Vessel")

    def test_all_that_is_declared_is_kept(self) -> None:
        supplies = OWN.relations[1]
        assert supplies.meaning == "one delivers goods to the other"
        assert (supplies.examples, supplies.cues) == (("Orrin supplies Halden",), ("suppl*", "deliver* to"))
        assert OWN.entities[1].shapes == ("MV *",)

    def test_a_record_keeps_them_as_they_are(self) -> None:
        assert OwnTypes.from_json(OWN.to_json()) == OWN
        assert own_types_of(OWN.to_mapping()) == OWN

    def test_none_is_kept_as_nothing(self) -> None:
        assert (NO_TYPES.to_json(), OwnTypes.from_json(""), bool(NO_TYPES), bool(OWN)) == ("", NO_TYPES, False, True)

    @given(st.randoms(use_true_random=False))
    def test_the_order_of_a_file_does_not_matter(self, draw: Any) -> None:
        shuffled = {
            key: {name: DECLARED[key][name] for name in draw.sample(list(DECLARED[key]), len(DECLARED[key]))}
            for key in draw.sample(list(DECLARED), 2)
        }
        assert own_types_of(shuffled) == OWN
        assert own_types_of(shuffled).rules == OWN.rules

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            ([], "no table"),
            ({"relation": {}}, "known are entities, relations"),
            (relations(SUPPLIES=[]), r"\[relations.SUPPLIES\] is no table"),
            (relations(SUPPLIES={"cue": ["x"]}), "known are cues, examples, meaning, questions"),
            ({"entities": {"Vessel": {"questions": ["x"]}}}, "known are cues, examples, meaning, shapes"),
            (relations(SUPPLIES={"cues": "supplies"}), "cues is no list"),
            (relations(SUPPLIES={"cues": [3]}), "cues is no text"),
            (relations(SUPPLIES={"cues": [" "]}), "empty text"),
            (relations(SUPPLIES={"cues": ["*"]}), "cannot be used"),
            (relations(SUPPLIES={"cues": ["su*p"]}), "end of a word alone"),
            (relations(SUPPLIES={"questions": ["..."]}), "no letter and no digit"),
            (relations(SUPPLIES={"examples": ["x"] * 51}), "more than 50"),
            (relations(SUPPLIES={"meaning": "a\nb"}), "control character"),
            (relations(SUPPLIES={"meaning": "\ud800"}), "control character"),
            (relations(SUPPLIES={"meaning": "x" * (LONGEST_MEANING + 1)}), "more than 300"),
            (relations(SUPPLIES={"meaning": 1}), "meaning is no text"),
            (relations(**{"SUP PLIES": {}}), "no name"),
            (relations(**{"1ST": {}}), "no name"),
            (relations(**{"X" * 41: {}}), "no name"),
            (relations(**{"ÄNDERT": {}}), "no name"),
            (relations(**{"": {}}), "no name"),
            (relations(**{"A`) DETACH DELETE n": {}}), "no name"),
            (relations(supplies={}, SUPPLIES={}), "twice"),
            ({"entities": {"Vessel": {}, "VESSEL": {}}}, "twice"),
            ({"entities": {"Vessel": {"shapes": ["**"]}}}, "cannot be used"),
            (relations(**{f"T{i}": {} for i in range(MOST_RELATIONS + 1)}), "more than 20"),
            ({"entities": {f"T{i}": {} for i in range(MOST_ENTITIES + 1)}}, "more than 40"),
            *((relations(**{name: {}}), "built-in") for name in (*RelationType, *RESERVED_NAMES, "temporal")),
        ],
    )
    def test_what_is_no_type_is_refused_with_where_it_stands(self, found: Any, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            own_types_of(found)

    def test_a_type_without_a_rule_is_told(self) -> None:
        own = own_types_of(
            {
                "relations": {"SUPPLIES": {"meaning": "x"}},
                "entities": {"Vessel": {}, "Berth": DECLARED["entities"]["Berth"]},
            }
        )
        assert own.unfound == ["SUPPLIES", "Vessel"]
        assert OWN.unfound == []

    def test_extraction_by_rule_depends_on_rules_alone(self) -> None:
        def changed(**more: Any) -> str:
            return own_types_of(
                {**DECLARED, "relations": {"SUPPLIES": {**DECLARED["relations"]["SUPPLIES"], **more}}}
            ).rules

        same = changed()
        assert changed(meaning="other", examples=[], questions=[]) == same
        assert changed(cues=["suppl*"]) != same
        assert own_types_of(relations(SUPPLIES={"meaning": "x"})).rules == NO_TYPES.rules == ""


class TestTyping:
    @pytest.mark.parametrize(
        ("predicate", "expected"),
        [
            ("supplies castings to", SUPPLIES),
            ("is supplied by", SUPPLIES),
            ("is_supplied_by", SUPPLIES),
            ("is a supplier of", SUPPLIES),
            ("delivers to", SUPPLIES),
            ("berths at", BERTHS),
            ("supplies while berthed at", BERTHS),
            ("supplies", SUPPLIES),
            ("SUPPLIES", SUPPLIES),
            ("Berths_at", BERTHS),
        ],
    )
    def test_a_cue_tells_a_statement_before_any_built_in_one(self, predicate: str, expected: RelationType) -> None:
        assert type_triple("Orrin", predicate, "Halden", OWN) == (expected, True)

    def test_a_date_stays_temporal(self) -> None:
        assert type_triple("Orrin", "supplied", "5 May 1999", OWN) == (RelationType.TEMPORAL, True)

    @given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
    def test_without_a_cue_everything_is_as_it_is_without_own_types(
        self, subject: str, predicate: str, end: str
    ) -> None:
        own = own_types_of({"relations": {"SUPPLIES": {"cues": ["qqqq zzzz qqqq"]}}})
        if predicate.strip().upper() != "SUPPLIES":
            assert type_triple(subject, predicate, end, own) == type_triple(subject, predicate, end)

    def test_names_of_own_types_count_in_any_case_and_of_others_do_not(self) -> None:
        assert fact_type_of(" supplies", OWN) == relation_type_of("Supplies", OWN) == SUPPLIES
        assert fact_type_of("OWNS", OWN) is relation_type_of("SUPPLIES") is None
        assert fact_type_of("PRIMARY", OWN) is None
        assert fact_type_of("causal", OWN) is RelationType.CAUSALITY


class TestAsking:
    @pytest.mark.parametrize(
        ("question", "asked"),
        [
            ("Who supplies Halden Pumps?", {SUPPLIES}),
            ("Which vendors does Halden have?", {SUPPLIES}),
            ("Where do its suppliers berth?", {SUPPLIES, BERTHS}),
            ("When was Nissan founded?", set()),
        ],
    )
    def test_a_question_asks_for_a_type_by_its_cues(self, question: str, asked: set[RelationType]) -> None:
        assert OWN.asked_in(question) == {name: ASKED if name in asked else 0.0 for name in OWN.relation_types}


class TestEntities:
    @pytest.mark.parametrize(
        ("name", "before", "said", "expected"),
        [
            ("aurora", [], [], "Vessel"),
            ("MV Solveig", [], [], "Vessel"),
            ("Ship Inn", [], [], "Vessel"),
            ("Solveig", ["and the vessel "], [], "Vessel"),
            ("Solveig", [], ["bulk carrier ship"], "Vessel"),
            ("AB-12", [], [], "Berth"),
            ("AB-12", ["the vessel "], [], "Berth"),
            ("Solveig", ["the vessels of "], ["ship owner"], None),
            ("Solveig", ["shipped by vessel"], [], None),
            ("Worship", [], [], None),
        ],
    )
    def test_a_rule_tells_the_type_of_a_name(
        self, name: str, before: list[str], said: list[str], expected: str | None
    ) -> None:
        assert OWN.entity_type_of(name, before, said) == expected


class TestUsed:
    def test_only_what_facts_and_names_have_takes_part(self) -> None:
        used = OWN.used([SUPPLIES], ["Vessel"])
        assert (used.relations, used.entities) == (OWN.relations[1:], OWN.entities[1:])
        assert not OWN.used([], [])

    def test_what_is_declared_no_more_keeps_its_name_alone(self) -> None:
        used = NO_TYPES.used([SUPPLIES], ["Vessel"])
        assert (used.relation_types, used.definitions) == ((SUPPLIES,), {SUPPLIES: ""})
        assert OwnTypes.from_json(used.to_json()) == used

    def test_a_prompt_lists_own_types_behind_the_built_in_ones(self) -> None:
        lines = definition_list(fact_relations(OWN.relation_types), OWN).splitlines()
        assert lines[:5] == [f"- {relation}: {DEFINITIONS[relation]}" for relation in ENTITY_RELATIONS]
        assert lines[5:] == ["- BERTHS_AT", "- SUPPLIES: one delivers goods to the other (Orrin supplies Halden)"]


def test_types_are_the_same_in_json_whatever_the_hash_seed() -> None:
    assert list(json.loads(OWN.to_json())["relations"]) == ["BERTHS_AT", "SUPPLIES"]
