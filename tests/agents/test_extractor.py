from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agents.chat.model import open_chat_model
from agents.extractor import MAX_ENTITIES, MAX_TRIPLES, ChatExtractor, Extractor
from graph.errors import MalformedReply
from graph.relations import DEFINITIONS
from graph.schema import ENTITY_RELATIONS, Extraction, Passage, RelationType, Triple
from prompts import load_prompt
from tests.extracting import extractor_on, reply_about
from tests.scripted_server import scripted

KARV = Passage("p", "Karv", "Karv lies in Oster.")
TRIPLE = {"subject": "Karv", "predicate": "lies in", "object": "Oster", "relation": "SPATIAL", "confidence": 0.9}


def extractor(model: str = "any", temperature: float = 0.0) -> ChatExtractor:
    return ChatExtractor(
        open_chat_model(model, temperature, base_url="http://127.0.0.1:1/v1", api_key=None, timeout_s=1)
    )


def read(entities: list[str], *triples: Mapping[str, Any], **more: object) -> Extraction:
    return extractor().read(json.dumps({"entities": entities, "triples": triples, **more}), KARV)


class TestReading:
    def test_a_complete_reply_is_taken_as_it_is_and_a_passage_may_say_nothing(self) -> None:
        extraction = read(["Karv", "Oster"], TRIPLE)
        assert extraction.entities == ("Karv", "Oster")
        assert extraction.triples == (Triple("Karv", "lies in", "Oster", RelationType.SPATIAL, 0.9),)
        assert (extraction.extractor, extraction.notes) == (extractor().name, {})
        assert read([]) == Extraction((), (), extractor().name)

    def test_one_listed_end_is_enough_in_any_spelling_and_a_triple_without_is_dropped_and_counted(self) -> None:
        for listed in ("Karv", "Oster", "  karv ", "«OSTER»"):
            assert len(read([listed], TRIPLE).triples) == 1
        extraction = read(["Aalborg"], TRIPLE)
        assert (extraction.triples, extraction.notes) == ((), {"triples without a listed entity": 1})

    def test_relation_names_match_in_any_case_and_other_types_are_given_by_rule_and_counted(self) -> None:
        for name, relation in (("spatial", "SPATIAL"), ("Causal", "CAUSALITY")):
            extraction = read(["Karv"], {**TRIPLE, "relation": name})
            assert (extraction.triples[0].relation, extraction.notes) == (relation, {})
        for no_type in ("LOCATION", "", "SYNONYMY", "PRIMARY", None):
            extraction = read(["Karv"], {**TRIPLE, "predicate": "founded", "object": "1933", "relation": no_type})
            assert extraction.triples[0].relation is RelationType.TEMPORAL
            assert extraction.notes == {"triples typed by rule": 1}
        untyped = {name: value for name, value in TRIPLE.items() if name != "relation"}
        extraction = read(["Karv"], {**untyped, "predicate": "zyx"})
        assert extraction.triples[0].relation is RelationType.ATTRIBUTION
        assert extraction.notes == {"triples typed by rule": 1, "triples without a cue": 1}

    def test_a_missing_confidence_is_a_half_and_one_out_of_range_clamped_and_both_are_counted(self) -> None:
        unsure = {name: value for name, value in TRIPLE.items() if name != "confidence"}
        extraction = read(["Karv"], unsure, {**TRIPLE, "confidence": None})
        assert [triple.confidence for triple in extraction.triples] == [0.5, 0.5]
        assert extraction.notes == {"confidences defaulted": 2}
        for number, clamped in ((1.5, 1.0), (-0.1, 0.0), (95, 1.0), (1e300, 1.0)):
            extraction = read(["Karv"], {**TRIPLE, "confidence": number})
            assert (extraction.triples[0].confidence, extraction.notes) == (clamped, {"confidences clamped": 1})
        for whole in (0, 1):
            extraction = read(["Karv"], {**TRIPLE, "confidence": whole})
            assert (extraction.triples[0].confidence, extraction.notes) == (whole, {})

    def test_names_that_cannot_stand_in_a_graph_and_self_references_are_dropped_and_counted(self) -> None:
        for name in ("", " \n", "\u200b", "x" * 301, "a\u0000b", "a\u009bb"):
            extraction = read(["Karv", name], {**TRIPLE, "object": name})
            assert (extraction.entities, extraction.triples) == (("Karv",), ())
            assert extraction.notes == {"unusable names": 1, "unusable triples": 1}
        assert read(["Karv"], {**TRIPLE, "object": "KARV"}).notes == {"self_reference": 1}


class TestRefusing:
    def test_a_reply_that_is_not_of_the_schema_or_without_measure_is_malformed(self) -> None:
        triples: list[object] = [
            ["Karv", "lies in", "Oster"],
            {"subject": "Karv", "predicate": "lies in"},
            {"subject": "Karv", "predicate": "since", "object": 1933},
            *({**TRIPLE, "confidence": confidence} for confidence in ("high", True, float("nan"))),
        ]
        for reply in (
            *('{"entities": ["Karv"]}', '{"triples": []}', '{"entities": "Karv", "triples": []}'),
            *(json.dumps({"entities": ["Karv"], "triples": [triple]}) for triple in triples),
        ):
            with pytest.raises(MalformedReply):
                extractor().read(reply, KARV)
        for n_entities, n_triples in ((MAX_ENTITIES + 1, 0), (0, MAX_TRIPLES + 1)):
            with pytest.raises(MalformedReply, match="at most 200 items"):
                read([f"n{number}" for number in range(n_entities)], *[TRIPLE] * n_triples)


class TestAsking:
    def test_it_asks_once_a_passage_with_the_five_types_and_the_limits(self) -> None:
        with scripted({"extractor": [reply_about("Oster")]}) as server:
            role: Extractor = extractor_on(server, temperature=0.2)
            assert role.extract(KARV).entities == ("Oster", "Karv")
        (request,) = server.requests_of("extractor")
        for relation in ENTITY_RELATIONS:
            assert f"- {relation.value}: {DEFINITIONS[relation]}" in request.text_of(0)
            assert DEFINITIONS[relation] not in load_prompt("extractor").template
        assert f"no more than {MAX_ENTITIES} entities and {MAX_TRIPLES} triples" in request.text_of(0)
        assert json.loads(request.text_of(1).splitlines()[2]) == {"title": "Karv", "text": "Karv lies in Oster."}
        schema = request.body["response_format"]["json_schema"]["schema"]
        assert (schema["required"], schema["additionalProperties"]) == (["entities", "triples"], False)
        triple = schema["properties"]["triples"]
        assert triple["items"]["required"] == ["subject", "predicate", "object", "relation", "confidence"]
        assert triple["items"]["properties"]["relation"]["enum"] == [relation.value for relation in ENTITY_RELATIONS]
        assert request.body["temperature"] == 0.2

    def test_the_limits_of_a_reply_follow_from_the_length_of_the_passage(self) -> None:
        with scripted(['{"entities": [], "triples": []}']) as server:
            for times in (1, 10, 1_000):
                extractor_on(server).extract(Passage("p", "Marn", "Marn is a town on Lake Sund. " * times))
        limits = [request.body["max_tokens"] for request in server.requests]
        assert limits == sorted(limits)
        assert 256 < limits[0] < 512
        assert limits[2] == 4_096
        schemas = [request.body["response_format"]["json_schema"]["schema"] for request in server.requests]
        for part in ("entities", "triples"):
            items = [schema["properties"][part]["maxItems"] for schema in schemas]
            assert items[0] < items[1] < items[2] == 200


class TestIdentity:
    def test_the_name_is_the_model_and_a_hash_of_its_prompt(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model, mark, digest = extractor("some/model:7b").name.partition("#")
        assert (model, mark, len(digest)) == ("some/model:7b", "#", 8)
        int(digest, 16)
        assert extractor("other").name == f"other#{digest}"
        monkeypatch.setattr("agents.extractor.MAX_TRIPLES", 7)
        assert extractor("other").name != f"other#{digest}"

    def test_a_key_tells_model_temperature_title_and_text_apart_and_nothing_else(self) -> None:
        same = Passage("other id", "Karv", "Karv lies in Oster.", "source", {"page": 3})
        assert extractor().key(KARV) == extractor().key(same) == extractor(temperature=0).key(KARV)
        others = [
            extractor("other").key(KARV),
            extractor(temperature=0.3).key(KARV),
            extractor().key(Passage("p", "Karv\nKarv lies in Oster.", "")),
            extractor().key(Passage("p", "", "Karv\nKarv lies in Oster.")),
        ]
        assert len({extractor().key(KARV), *others}) == 5
