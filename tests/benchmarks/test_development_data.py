from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.development_data import HIPPORAG, HOTPOT, MUSIQUE, TRIPLES, make
from benchmarks.evaluation.sets import rows_of

MUSIQUE_TASK = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"title": "Tin", "paragraph_text": "A metal.", "is_supporting": False},
        {"title": "Anna Berg", "paragraph_text": "Born in Oslo.", "is_supporting": True},
        {"title": "Oslo", "paragraph_text": "A city.", "is_supporting": True},
    ],
    "question": "Where was Anna Berg born?",
    "answer": "Oslo",
    "answer_aliases": ["Kristiania"],
}
BORN = ["Anna Berg", "born in", "Oslo"]
DOCS = [
    {"title": "Oslo", "text": "A city.", "extracted_entities": ["Oslo"], "extracted_triples": [["Oslo", "is"]]},
    {"title": "Tin", "text": "A metal.", "extracted_entities": [], "extracted_triples": []},
    {"title": "Anna Berg", "text": "Born in Oslo.", "extracted_entities": [], "extracted_triples": [BORN]},
]
HOTPOT_TASK = {
    "_id": "q1",
    "question": "Is Alu a demon?",
    "answer": "yes",
    "type": "bridge",
    "supporting_facts": [["Alu", 1], ["Lilu", 0]],
    "context": [["Dice", ["A game.", " Sold."]], ["Lilu", ["A spirit."]], ["Alu", ["A demon.", " Of old."]]],
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with made-up files in the form and the places of the repository."""
    for name, content in ((MUSIQUE, [MUSIQUE_TASK]), (TRIPLES, {"docs": DOCS}), (HOTPOT, [HOTPOT_TASK])):
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = map(json.dumps, content) if path.suffix == ".jsonl" else [json.dumps(content)]
        path.write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "repository"


def made(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(rows_of(folder / f"{name}.jsonl"))


def test_musique_is_the_documents_that_triples_were_extracted_from(repository: Path, tmp_path: Path) -> None:
    list(make(HIPPORAG[0], repository, tmp_path))
    folder = tmp_path / "musique_train100"
    assert [f"{row['id']} {row['title']}" for row in made(folder, "corpus")] == ["mt0 Oslo", "mt1 Tin", "mt2 Anna Berg"]
    (question,) = made(folder, "questions")
    assert (question["answers"], question["gold_ids"]) == (["Oslo", "Kristiania"], ["mt2", "mt0"])
    assert [row["triples"] for row in made(folder, "openie")] == [[], [], [BORN]]


def test_gold_passages_of_hotpot_are_in_the_order_of_the_context(repository: Path, tmp_path: Path) -> None:
    list(make(HIPPORAG[1], repository, tmp_path))
    folder = tmp_path / "hotpot_train100"
    assert [tuple(row.values()) for row in made(folder, "corpus")] == [
        ("ht0", "Dice", "A game. Sold."),
        ("ht1", "Lilu", "A spirit."),
        ("ht2", "Alu", "A demon. Of old."),
    ]
    assert [row["gold_ids"] for row in made(folder, "questions")] == [["ht1", "ht2"]]
