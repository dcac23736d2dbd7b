from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.development_data import HIPPORAG, HOTPOT, MUSIQUE, TRIPLES, make
from benchmarks.evaluation.sets import rows_of

MUSIQUE_TASK = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Tin", "paragraph_text": "A metal.", "is_supporting": False},
        {"idx": 1, "title": "Anna Berg", "paragraph_text": "Born in Oslo.", "is_supporting": True},
        {"idx": 2, "title": "Oslo", "paragraph_text": "A city.", "is_supporting": True},
    ],
    "question": "Where was Anna Berg born?",
    "question_decomposition": [],
    "answer": "Oslo",
    "answer_aliases": ["Kristiania"],
    "answerable": True,
}
OPENIE = {
    "docs": [
        {"title": "Oslo", "text": "A city.", "extracted_entities": ["Oslo"], "extracted_triples": [["Oslo", "is"]]},
        {"title": "Tin", "text": "A metal.", "extracted_entities": [], "extracted_triples": []},
        {
            "title": "Anna Berg",
            "text": "Born in Oslo.",
            "extracted_entities": ["Anna Berg", "Oslo"],
            "extracted_triples": [["Anna Berg", "born in", "Oslo"], ["Anna Berg", "poet", ["tea"]]],
        },
    ],
    "avg_ent_chars": float("nan"),
}
HOTPOT_TASKS = [
    {
        "_id": "q1",
        "question": "Is Alu a demon?",
        "answer": "yes",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["Alu", 1], ["Lilu", 0]],
        "context": [["Dice", ["A game.", " Sold."]], ["Lilu", ["A spirit."]], ["Alu", ["A demon.", " Of old."]]],
    },
    {
        "_id": "q2",
        "question": "Which is older?",
        "answer": "Alu",
        "type": "comparison",
        "supporting_facts": [["Alu", 0], ["Mara", 0]],
        "context": [["Mara", ["A demon."]], ["Alu", ["A demon.", " Of old."]]],
    },
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with made-up files in the form and the places of the repository."""
    folder = tmp_path / "repository"
    put(folder, {MUSIQUE: [MUSIQUE_TASK], TRIPLES: OPENIE, HOTPOT: HOTPOT_TASKS})
    return folder


def put(folder: Path, files: Mapping[str, Any]) -> None:
    for name, held in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(map(json.dumps, held)) if path.suffix == ".jsonl" else json.dumps(held)
        path.write_text(lines, encoding="utf-8")


def made(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(rows_of(folder / f"{name}.jsonl"))


def test_musique_is_the_documents_that_triples_were_extracted_from(repository: Path, tmp_path: Path) -> None:
    list(make(HIPPORAG[0], repository, tmp_path))
    folder = tmp_path / "musique_train100"
    assert [(row["id"], row["title"]) for row in made(folder, "corpus")] == [
        ("mt0", "Oslo"),
        ("mt1", "Tin"),
        ("mt2", "Anna Berg"),
    ]
    assert made(folder, "questions") == [
        {
            "id": "2hop__1_2",
            "question": "Where was Anna Berg born?",
            "answers": ["Oslo", "Kristiania"],
            "type": "2hop",
            "gold_ids": ["mt2", "mt0"],
        }
    ]
    assert [row["triples"] for row in made(folder, "openie")] == [[], [], [["Anna Berg", "born in", "Oslo"]]]


def test_hotpot_has_each_title_once_and_the_supporting_ones_in_the_order_of_the_context(
    repository: Path, tmp_path: Path
) -> None:
    list(make(HIPPORAG[1], repository, tmp_path))
    folder = tmp_path / "hotpot_train100"
    assert [tuple(row.values()) for row in made(folder, "corpus")] == [
        ("ht0", "Dice", "A game. Sold."),
        ("ht1", "Lilu", "A spirit."),
        ("ht2", "Alu", "A demon. Of old."),
        ("ht3", "Mara", "A demon."),
    ]
    assert [row["gold_ids"] for row in made(folder, "questions")] == [["ht1", "ht2"], ["ht3", "ht2"]]
