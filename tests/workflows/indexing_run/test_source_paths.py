"""The sources of indexing: folders, precomputed triples, corpora without facts, and files that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import BRANDT, ROWS, SUND, Indexer, ask, facts_in
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
