"""A user's own types: what a file may declare, and what the rules find by them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from graph.own_types import (
    ASKED,
    LONGEST_MEANING,
    MOST_RELATIONS,
    NO_TYPES,
    OwnTypes,
    any_cue,
    any_shape,
    cue_pattern,
    own_types_of,
    shape_pattern,
)
from graph.relations import RESERVED_NAMES, RelationType
from graph.taxonomy import type_triple

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
    def test_all_that_is_declared_is_kept_and_a_record_keeps_it(self) -> None:
        assert OWN.relation_types == (BERTHS, SUPPLIES)
        assert OWN.entity_types == ("Berth", "Vessel")
        supplies = OWN.relations[1]
        assert supplies.meaning == "one delivers goods to the other"
        assert (supplies.examples, supplies.cues) == (("Orrin supplies Halden",), ("suppl*", "deliver* to"))
        assert OWN.entities[1].shapes == ("MV *",)
        assert OwnTypes.from_json(OWN.to_json()) == own_types_of(OWN.to_mapping()) == OWN
        assert list(json.loads(OWN.to_json())["relations"]) == ["BERTHS_AT", "SUPPLIES"]
        assert (NO_TYPES.to_json(), OwnTypes.from_json(""), bool(NO_TYPES), bool(OWN)) == ("", NO_TYPES, False, True)

    def test_what_is_no_type_is_refused_with_where_it_stands(self) -> None:
        for declared, said in [
            ([], "dictionary"),
            ({"relation": {}}, "relation"),
            ({"relations": {"SUPPLIES": 1}}, "relations.*no table"),
            (relations(SUPPLIES={"cues": "supplies"}), "SUPPLIES.cues"),
            (relations(SUPPLIES={"cues": [" "]}), "at least 1 item"),
            (relations(SUPPLIES={"cues": ["*"]}), "no letter"),
            (relations(SUPPLIES={"meaning": 1}), "SUPPLIES.meaning"),
            ({"entities": {"Vessel": {}, "VESSEL": {}}}, "twice"),
            (relations(SUPPLIES={"meaning": "a\nb"}), "control character"),
            (relations(SUPPLIES={"meaning": "x" * (LONGEST_MEANING + 1)}), "at most 300"),
            *(
                ({kind: {name: {}}}, "pattern")
                for kind in ("relations", "entities")
                for name in ("SUP PLIES", "1ST", "X" * 41, "ÄNDERT", "", "A`) DETACH DELETE n", "A\n")
            ),
            (relations(**{f"T{i}": {} for i in range(MOST_RELATIONS + 1)}), "at most 20"),
            *((relations(**{name: {}}), "built-in") for name in (*RelationType, *RESERVED_NAMES, "temporal")),
        ]:
            with pytest.raises(ValueError, match=said):
                own_types_of(declared)


class TestTyping:
    def test_a_cue_tells_a_statement_before_any_built_in_one_but_a_date(self) -> None:
        supplies = ("supplies castings to", "is_supplied_by", "is a supplier of", "delivers to", "supplies", "SUPPLIES")
        for predicate in (*supplies, "supplies while berthed at", "berths at", "Berths_at"):
            expected = SUPPLIES if predicate in supplies else BERTHS
            assert type_triple("Orrin", predicate, "Halden", OWN) == (expected, True), predicate
        assert type_triple("Orrin", "supplied", "5 May 1999", OWN) == (RelationType.TEMPORAL, True)

    def test_a_question_asks_for_a_type_by_its_cues(self) -> None:
        for question, asked in {
            "Who supplies Halden Pumps?": {SUPPLIES},
            "Which vendors does Halden have?": {SUPPLIES},
            "Where do its suppliers berth?": {SUPPLIES, BERTHS},
            "When was Nissan founded?": set(),
        }.items():
            assert OWN.asked_in(question) == {name: ASKED if name in asked else 0.0 for name in OWN.relation_types}


class TestEntities:
    def test_a_rule_tells_the_type_of_a_name(self) -> None:
        for name, before, said, expected in [
            ("aurora", [], [], "Vessel"),
            ("MV Solveig", [], [], "Vessel"),
            ("Solveig", ["and the vessel "], [], "Vessel"),
            ("Solveig", [], ["bulk carrier ship"], "Vessel"),
            ("AB-12", [], [], "Berth"),
            ("Solveig", ["the vessels of "], ["ship owner"], None),
            ("Worship", [], [], None),
        ]:
            assert OWN.entity_type_of(name, before, said) == expected


def test_a_cue_is_found_as_whole_words_in_any_case_and_nowhere_else() -> None:
    for cue, text in [
        ("supplies", "ORRIN SUPPLIES castings"),
        ("suppl*", "is a supplier of"),
        ("deliver* to", "delivers_to"),
        ("供应", "厂供应零件"),
    ]:
        assert any_cue([cue]).search(text), cue
    match = any_cue(["deliver*", "deliver* to"]).search("delivers to Halden")
    assert match is not None
    assert match[0] == "delivers to", "the longest"
    for cue, text in [
        ("port", "transport of"),
        ("suppl*", "resupplied"),
        ("deliver* to", "deliver it to"),
        ("a.b", "aXb"),
    ]:
        assert not any_cue([cue]).search(text), cue
    assert not any_cue([]).search("")


def test_one_that_would_find_anything_or_nothing_or_be_slow_is_refused() -> None:
    cues = ("", " ", "*", "a*", "s*pply", "**", "su*pl*", "...", "x" * 61, "un* *")
    shapes = ("", "*", "* *", "**", "*#", "#*", "*a", "* - * - *a*", "* a * b *", "-" * 61)
    for compiled, texts in ((cue_pattern, cues), (shape_pattern, shapes)):
        for text in texts:
            with pytest.raises(ValueError, match=r"letter|characters|\*"):
                compiled(text)


def test_a_shape_is_the_form_of_a_whole_name() -> None:
    for shape, name in [
        ("@@-###", "HX-200"),
        ("MV *", "MV Aurora"),
        ("* AG", "Orrin AG"),
        ("*-#", "ab-1"),
    ]:
        assert any_shape([shape]).fullmatch(name), shape
        assert any_shape([shape]).search(f"see {name}, or"), shape
        assert not any_shape([shape]).search(f"see x{name}x"), shape
    for shape, name in [("@@-###", "hx-200"), ("@@-###", "HX-2000"), ("MV *", "MV"), ("#", "a")]:
        assert not any_shape([shape]).fullmatch(name), shape
    assert not any_shape([]).search("a")
