from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.schema import Extraction, Passage, RelationType, Triple
from graph.sources.triples import IMPORTED, MAX_TYPES_BYTES, ImportedTriples, read_own_types, read_triples
from tests.builders import passage_of

TEXT = "Nissan was founded in 1933."


def imported(folder: Path, *rows: Any) -> ImportedTriples:
    path = folder / "triples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_triples(path)


def extraction_of(folder: Path, *triples: Any, entities: Any = ()) -> Extraction:
    found = imported(folder, {"id": "a", "entities": list(entities), "triples": list(triples)})
    return found.by_id["a"]


class TestShapes:
    def test_openie_results_of_hipporag_are_matched_by_their_passages(self, tmp_path: Path) -> None:
        path = tmp_path / "openie_results_ner_gpt.json"
        doc = {
            "idx": "chunk-4f2a",
            "passage": f"Nissan\n{TEXT}",
            "extracted_entities": ["Nissan", "1933"],
            "extracted_triples": [["Nissan", "was founded in", "1933"]],
        }
        path.write_text(json.dumps({"docs": [doc], "avg_ent_chars": 4.5}), encoding="utf-8")
        triples = read_triples(path)
        extraction = triples.of(Passage("anything", "Nissan", TEXT))
        assert extraction is not None
        assert extraction.entities == ("Nissan", "1933")
        assert extraction.triples == (Triple("Nissan", "was founded in", "1933", RelationType.TEMPORAL, 1.0),)
        assert (extraction.extractor, triples.rows) == (IMPORTED, 1)

    def test_a_type_that_no_fact_can_have_is_found_by_rule(self, tmp_path: Path) -> None:
        for relation in ["FRIENDSHIP", "SYNONYMY", "PRIMARY", None, 7]:
            extraction = extraction_of(tmp_path, ["Nissan", "founded in", "1933", relation, 0.5])
            assert extraction.triples[0].relation is RelationType.TEMPORAL, relation
            assert extraction.notes["triples typed by rule"] == 1, relation


OBJECT_KEYS = ("subject", "predicate", "object", "relation_type", "confidence")
NOTATIONS: dict[str, Callable[..., Any]] = {
    "list": lambda *parts: list(parts),
    "object": lambda *parts: dict(zip(OBJECT_KEYS, parts, strict=False)),
}


class TestNotations:
    def test_each_is_read_back(self, tmp_path: Path) -> None:
        names = ('It\'s "Karv"', "lies, in", "(Ostra) [1]")
        for notation, write in NOTATIONS.items():
            first, second = extraction_of(tmp_path, write(*names), write(*names, "CAUSALITY", 0.5)).triples
            assert (first.subject, first.predicate, first.object, first.confidence) == (*names, 1.0), notation
            assert second == Triple(*names, RelationType.CAUSALITY, 0.5), notation


class TestParts:
    def test_malformed_triples_are_dropped_and_counted(self, tmp_path: Path) -> None:
        for parts in [
            "x ||| is ||| y",
            {"subject": "x", "object": "y"},
            ["x", "is"],
            ["x", "is", 5],
            ["\ud800", "is", "y"],
        ]:
            extraction = extraction_of(tmp_path, ["a", "is in", "B", "SPATIAL", 1], parts, parts)
            assert len(extraction.triples) == 1, parts
            assert extraction.notes == {"malformed triples": 2}, parts

    def test_an_object_may_have_a_type_or_a_confidence_alone(self, tmp_path: Path) -> None:
        fact = {"subject": "Nissan", "predicate": "founded in", "object": "1933"}
        typed, sure = {**fact, "relation": "causal"}, {**fact, "confidence": 0.5}
        extraction = extraction_of(tmp_path, typed, sure)
        assert [(t.relation.value, t.confidence) for t in extraction.triples] == [("CAUSALITY", 1.0), ("TEMPORAL", 0.5)]

    def test_confidence_is_clamped(self, tmp_path: Path) -> None:
        for confidence, kept in [(0.3, 0.3), (1.7, 1.0), (-2, 0.0)]:
            extraction = extraction_of(tmp_path, ["a", "in", "b", "SPATIAL", confidence])
            assert extraction.triples[0].confidence == kept, confidence
            assert "confidences defaulted" not in extraction.notes, confidence

    def test_a_confidence_that_is_no_number_is_a_half_and_counted(self, tmp_path: Path) -> None:
        for confidence in [None, "high", True, float("nan"), float("inf"), [1]]:
            extraction = extraction_of(tmp_path, ["a", "in", "b", "SPATIAL", confidence])
            assert extraction.triples[0].confidence == 0.5, confidence
            assert extraction.notes == {"confidences defaulted": 1}, confidence


class TestMatching:
    def test_the_id_comes_before_the_text(self, tmp_path: Path) -> None:
        triples = imported(
            tmp_path, {"id": "a", "triples": [["by", "is", "id"]]}, {"passage": TEXT, "triples": [["by", "is", "text"]]}
        )
        by_id, by_text = triples.of(passage_of("a", "", TEXT)), triples.of(passage_of("b", "", TEXT))
        assert by_id is not None
        assert by_text is not None
        assert (by_id.triples[0].object, by_text.triples[0].object) == ("id", "text")

    def test_else_the_exact_text_with_or_without_the_title(self, tmp_path: Path) -> None:
        numbered = imported(tmp_path, {"idx": 0, "triples": []}, {"id": "a", "triples": []})
        assert numbered.rows == 2
        assert numbered.of(passage_of("0", "", "x"))
        for passage, matches in [
            (passage_of("x", "Nissan", TEXT), True),
            (passage_of("x", "", f"  {TEXT}\n"), True),
            (passage_of("x", "", TEXT.upper()), False),
            (passage_of("x", "", TEXT + " More."), False),
        ]:
            triples = imported(tmp_path, {"text": TEXT, "triples": []})
            assert (triples.of(passage) is not None) == matches, passage


class TestRefused:
    def test_a_file_of_no_known_shape_is_named_with_its_place(self, tmp_path: Path) -> None:
        files: list[tuple[str, str | bytes, str]] = [
            ("t.jsonl", '{"id": "a"}\n{', r"t\.jsonl, line 2: not valid JSON"),
            ("t.jsonl", '{"triples": []}', r"line 1: neither an id nor a passage"),
            ("t.jsonl", '{"id": "a", "triples": {}}', r"line 1: entities and triples are not lists"),
            ("t.json", '{"id": "a"}\n{"id": "b"}', r"t\.json: not valid JSON.*\.jsonl"),
            ("t.json", '{"graph": []}', r"holds no list of passages.*docs"),
            ("t.json", '{"docs": [{"idx": 1}, 5]}', r"item 2: not an object"),
            ("t.json", b"\xff\xff", "not UTF-8"),
        ]
        for name, content, complaint in files:
            path = tmp_path / name
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            with pytest.raises(BadInput, match=complaint):
                read_triples(path)


def file_of(folder: Path, content: str | bytes) -> Path:
    path = folder / "types.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_another_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    cases: list[tuple[str | bytes, str]] = [
        ("", "declares no type"),
        ("[relations.SUPPLIES\n", "no TOML"),
        ("a = " + "[" * 50_000, "no TOML"),
        ("[relations.TEMPORAL]\n", r"types\.toml: \[relations\.TEMPORAL\.name\]: it is the name of a built-in"),
        ('[relations.A]\ncues = ["(a+)+$*x"]\n', "end of a word alone"),
        ("# " + "x" * MAX_TYPES_BYTES, "larger than"),
    ]
    for content, complaint in cases:
        with pytest.raises(BadInput, match=complaint) as refused:
            read_own_types(file_of(tmp_path, content))
        assert refused.value.hint, content
