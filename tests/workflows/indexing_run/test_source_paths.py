"""The sources of indexing: folders, precomputed triples, corpora without facts, and files that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import BRANDT, KARV, ROWS, SUND, VELM, Indexer, ask, content_of, facts_in
from workflows.indexing import index_sources

pytestmark = pytest.mark.usefixtures("embedder")


def test_triples_are_taken_by_id_else_by_the_exact_text_and_the_rest_is_extracted(
    index: Indexer, root: Path, tmp_path: Path
) -> None:
    triples = tmp_path / "triples.jsonl"
    rows: list[Any] = [
        {"id": "velm", "triples": [["Velm", "ends at", "Lake Sund"]]},
        {"passage": f"{SUND['title']}\n{SUND['text']}", "triples": [["Lake Sund", "dammed by", "Ida Brandt"]]},
        {"passage": BRANDT["text"], "triples": [["Ida Brandt", "came from", "Karv", "SPATIAL", 0.8]]},
        {"id": "nobody", "triples": [["Nobody", "knows", "this"]]},
        {"passage": "A text that no passage has.", "triples": []},
    ]
    write_lines(triples, rows)
    report = index(ROWS, triples=triples)
    assert (report.imported, report.extracted, report.unmatched_triples) == (3, 2, 2)
    facts = facts_in(root)
    assert {("Velm", "ends at", "Lake Sund"), ("Ida Brandt", "came from", "Karv")} <= facts
    assert ("Nobody", "knows", "this") not in facts
    assert any(subject == "Ostra" for subject, _, _ in facts)


def test_a_row_that_two_passages_share_is_matched_once_and_malformed_triples_are_counted(
    index: Indexer, tmp_path: Path
) -> None:
    triples = tmp_path / "triples.jsonl"
    facts = [["Karv", "is", "harbour"], ["Karv", "exports"], ["Karv", "is", "a", "b"]]
    write_lines(triples, [{"passage": KARV["text"], "triples": facts}])
    report = index([KARV, {**KARV, "id": "again"}], triples=triples)
    assert (report.imported, report.unmatched_triples) == (2, 0)
    assert report.notes["malformed triples"] == 4, "two of each passage"


def test_other_triples_replace_the_facts_of_a_passage(index: Indexer, root: Path, tmp_path: Path) -> None:
    index(ROWS)
    triples = tmp_path / "openie.json"
    docs = [{"idx": "karv", "passage": KARV["text"], "extracted_triples": [["Karv", "exports", "eel"]]}]
    triples.write_text(json.dumps({"docs": docs}), encoding="utf-8")
    report = index(ROWS, triples=triples)
    assert (report.replaced, report.unchanged, report.imported) == (1, 4, 1)
    assert [fact for fact in facts_in(root) if fact[0] == "Karv"] == [("Karv", "exports", "eel")]


def test_a_folder_of_plain_text_is_indexed_and_asked_without_triples(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "marn.txt").write_text("Marn\n\nMarn is a town in Ostra. It was founded in 1203.\n", encoding="utf-8")
    (folder / "deep" / "orlo.txt").write_text("Duke Orlo was born in Kesh. He died in 1240.\n", encoding="utf-8")
    report = index_sources([folder], root)
    assert (report.passages, report.extracted) == (2, 2)
    assert report.facts > 0
    assert ("Marn", "1203") in {(subject, object_) for subject, _, object_ in facts_in(root)}
    result = ask(root, "When was Marn founded?", mode="sparse")
    assert result["passages"][0]["title"] == "Marn"
    assert "1203" in result["answer"]


def test_files_of_a_folder_that_cannot_be_read_are_refused_by_name_and_the_rest_is_read(
    root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.txt").write_text("Marn is a town in Ostra.", encoding="utf-8")
    (folder / "latin.txt").write_bytes("Caf\xe9".encode("latin-1"))
    (folder / "broken.jsonl").write_text('{"id": "a", "text": "b"}\n{"id": \n', encoding="utf-8")
    (folder / "paper.pdf").write_bytes(b"%PDF")
    (folder / "one.png").write_bytes(b"x")
    (folder / "two.png").write_bytes(b"x")
    report = index_sources([folder], root)
    assert report.passages == 1
    reasons = {Path(refused.source).name: refused.reason for refused in report.refused}
    assert reasons.keys() == {"latin.txt", "broken.jsonl", "paper.pdf"}
    assert "UTF-8" in reasons["latin.txt"]
    assert "line 2" in reasons["broken.jsonl"]
    assert "cannot be read as PDF" in reasons["paper.pdf"]
    assert [Path(skipped.source).name for skipped in report.skipped] == ["one.png", "two.png"]
    assert report.skipped_counts == {"is of a kind that is not read (.png)": 2}
    assert report.to_json()["refused"][0].keys() == report.to_json()["skipped"][0].keys() == {"source", "reason"}


def test_a_source_that_gives_nothing_is_bad_input_and_leaves_no_workspace(root: Path, tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF")
    (tmp_path / "broken.jsonl").write_text("{\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    for name in ("missing.txt", "paper.pdf", "broken.jsonl", "empty.txt", "empty"):
        with pytest.raises(BadInput, match=name) as failure:
            index_sources([tmp_path / name], root)
        assert failure.value.hint
    assert not root.exists()


def test_triples_that_cannot_be_read_change_nothing(index: Indexer, root: Path, tmp_path: Path) -> None:
    index([VELM])
    before = content_of(root)
    for name, text in {"broken.jsonl": "{", "none.json": "7", "facts.pickle": ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=name):
            index(ROWS, triples=tmp_path / name)
    assert content_of(root) == before


def test_a_folder_that_cannot_hold_a_workspace_is_bad_input(index: Indexer, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(BadInput, match="taken"):
        index(ROWS, tmp_path / "taken")


def test_a_corpus_without_a_single_fact_or_name_still_answers(root: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    write_lines(corpus, [{"id": "a", "text": "very slowly indeed"}, {"id": "b", "text": "and quite softly too"}])
    report = index_sources([corpus], root)
    assert (report.passages, report.facts) == (2, 0)
    for mode in ("mara", "hipporag2", "mara-matrix", "dense", "sparse", "hybrid"):
        result = ask(root, "who goes softly?", mode=mode)
        assert "b" in [hit["id"] for hit in result["passages"]]
        assert result["facts"] == []
        assert result["answer"]
    assert ask(root, "who goes softly?", mode="hipporag2")["ranked_by"] == "dense"
    assert ask(root, "who goes softly?")["fact_outcome"] == "nothing relevant"
