from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import extraction
from benchmarks.extraction import (
    Extracted,
    GoldAnswer,
    cover_answers,
    extract_offline,
    extraction_figures,
    imported,
    names_of,
    read_questions,
)
from graph.schema import Extraction, Passage, RelationType, Triple

BERG = Passage("berg", "Anna Berg (poet)", "Anna Berg was born in Oslo in 1933. She liked tea.")
TIN = Passage("tin", "Blue Tin", "Blue Tin is a film.")
FOUND = {
    "berg": Extraction(
        ("Anna Berg", "1933"),
        (
            Triple("Anna Berg", "born in", "Oslo", RelationType.SPATIAL, 0.9),
            Triple("Anna Berg", "with", "1933", RelationType.TEMPORAL, 0.5),
        ),
        "test",
    ),
    "tin": Extraction((), (), "test"),
}


def gold(*spellings: str, at: str = "berg") -> GoldAnswer:
    return GoldAnswer("?", spellings, (at,))


def write_lines(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_entities_ends_of_triples_and_the_titles_name_are_nodes() -> None:
    assert names_of(BERG, FOUND["berg"]) == {"anna berg", "1933", "oslo"}
    assert names_of(TIN, FOUND["tin"]) == {"blue tin"}


def test_an_answer_is_covered_by_a_whole_name() -> None:
    for answer, as_node, in_place, standing in [
        (gold("OSLO"), 1, 1, 1),
        (gold("Christiania", "Oslo"), 1, 1, 1),
        (gold("Anna"), 0, 0, 1),
        (gold("tea"), 0, 0, 1),
        (gold("Blue Tin"), 1, 0, 0),
        (gold("Oslo", at="unknown"), 1, 0, 0),
        (gold("Rome"), 0, 0, 0),
        (gold("osl"), 0, 0, 0),
    ]:
        coverage = cover_answers([BERG, TIN], [answer], FOUND)
        assert (coverage.as_node, coverage.in_place, coverage.standing) == (as_node, in_place, standing), answer
        assert coverage.missed == ((answer,) if standing and not in_place else ()), answer


def test_answers_of_yes_or_no_are_left_out_and_counted(tmp_path: Path) -> None:
    rows: list[object] = [
        {"question": "Where?", "answers": ["Oslo"], "gold_ids": ["berg"]},
        {"question": "Both?", "answers": ["Yes"], "gold_ids": ["berg"]},
        {"question": "Either?", "answers": ["no"], "gold_ids": ["tin"]},
    ]
    questions = read_questions(write_lines(tmp_path / "questions.jsonl", rows))
    assert questions.yes_or_no == 2
    assert questions.answers == (GoldAnswer("Where?", ("Oslo",), ("berg",)),)


def test_figures_count_triples_types_bands_and_what_has_no_cue() -> None:
    figures = extraction_figures(Extracted("test", FOUND, (0.001, 0.003)))
    assert figures["triples"] == "2"
    assert figures["triples a passage, mean / median"] == "1.00 / 1"
    assert figures["passages without triples"] == "50.0 % (1)"
    assert figures["entities a passage, mean"] == "1.00"
    assert figures["SPATIAL"] == figures["TEMPORAL"] == "50.0 % (1)"
    assert figures["ATTRIBUTION"] == figures["untyped (no cue)"] == "0.0 % (0)"
    assert [figures[f"confidence {band}"] for band in extraction.BANDS] == ["50.0 % (1)", "0.0 % (0)", "50.0 % (1)"]
    assert figures["processor ms a passage, mean / median"] == "2.00 / 2.00"


def test_every_confidence_falls_into_one_band() -> None:
    for confidence in (0.0, 0.3, 0.5, 0.69, 0.7, 0.89, 0.9, 1.0):
        assert sum(low <= confidence < high for low, high in extraction.BANDS.values()) == 1


def test_a_passage_without_imported_triples_has_none(tmp_path: Path) -> None:
    row = {"id": "berg", "entities": ["Oslo"], "triples": [["Anna Berg", "born in", "Oslo"]]}
    column = imported([BERG, TIN], write_lines(tmp_path / "openie.jsonl", [row]))
    assert len(column.extractions["berg"].triples) == 1
    assert column.extractions["tin"].triples == ()
    assert extraction_figures(column)["processor ms a passage, mean / median"] == "-"


def test_the_offline_extractor_is_timed_for_every_passage() -> None:
    column = extract_offline([BERG, TIN])
    assert set(column.extractions) == {"berg", "tin"}
    assert len(column.seconds) == 2
    assert ("Anna Berg", "born in", "Oslo") in {
        (triple.subject, triple.predicate, triple.object) for triple in column.extractions["berg"].triples
    }


def test_the_report_stands_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passages: list[object] = [{"id": p.id, "title": p.title, "text": p.text} for p in (BERG, TIN)]
    questions: list[object] = [
        {"question": "Where was she born?", "answers": ["Oslo"], "gold_ids": ["berg"]},
        {"question": "What did she like?", "answers": ["tea"], "gold_ids": ["berg"]},
    ]
    triples: list[object] = [{"id": "berg", "entities": [], "triples": [["Anna Berg", "liked", "tea"]]}]
    files = {"corpus": passages, "questions": questions, "triples": triples}
    arguments = [
        part
        for name, rows in files.items()
        for part in (f"--{name}", str(write_lines(tmp_path / f"{name}.jsonl", rows)))
    ]
    monkeypatch.setattr(sys, "argv", ["extraction", *arguments, "--misses"])
    extraction.main()
    printed = capsys.readouterr().out
    assert "2 passages of 10 words (mean); 2 questions" in printed
    assert "| gold answers that are nodes of a gold passage | 50.0 % (1) | 50.0 % (1) |" in printed
    assert "| gold answers that stand in a gold passage (ceiling) | 100.0 % (2) | 100.0 % (2) |" in printed
    assert "- tea | What did she like?" in printed
    assert "- Oslo | Where was she born?" in printed
