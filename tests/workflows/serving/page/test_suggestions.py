"""Questions made from facts: only those whose words are sure to read well, and that a passage answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder
from workflows.indexing import index_sources
from workflows.serving.page import welcome
from workflows.serving.page.welcome import suggested

CASES = (
    ("Marn (town)", "Marn was founded in 1203.", ("Marn", "founded in", "1203"), "When was Marn founded?"),
    (
        "Velm Bridge",
        "The Velm Bridge opened in 1874.",
        ("Velm Bridge", "opened", "1874"),
        "When did the Velm Bridge open?",
    ),
    (
        "The Mill",
        "The Mill, written by Ada Brandt, is long.",
        ("The Mill", "written by", "Ada Brandt"),
        "Who wrote The Mill?",
    ),
    ("Sava", "The Sava flows into Lake Sund.", ("Sava", "flows into", "Lake Sund"), "What does the Sava flow into?"),
)
UNFIT = (
    ("Towns of Ostra", "It is the capital of Ostra.", ("Towns of Ostra", "capital of", "Ostra")),
    ("Orlo", "Orlo founded a bank in 1871.", ("Orlo", "founded", "1871")),
    ("iron & steel: a list", "It was founded in 1872.", ("iron & steel: a list", "founded in", "1872")),
    ("Glass organ", "The glass organ sings.", ("glass organ", "built in", "a long time")),
)


@pytest.mark.usefixtures("embedder")
def test_each_kind_of_fact_makes_one_question_and_what_reads_badly_makes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(welcome, "SUGGESTED", 99)
    corpus, triples = tmp_path / "corpus.jsonl", tmp_path / "triples.jsonl"
    rows = [(*case[:3],) for case in (*CASES, *UNFIT)]
    corpus.write_text(
        "\n".join(json.dumps({"id": f"p{n}", "title": title, "text": text}) for n, (title, text, _) in enumerate(rows)),
        encoding="utf-8",
    )
    triples.write_text(
        "\n".join(json.dumps({"id": f"p{n}", "triples": [fact]}) for n, (_, _, fact) in enumerate(rows)),
        encoding="utf-8",
    )
    index_sources([corpus], tmp_path / "workspace", triples)
    index = open_index(tmp_path / "workspace", HashEmbedder())
    try:
        assert sorted(suggested(index.graph, None)) == sorted(question for *_, question in CASES)
    finally:
        index.close()
