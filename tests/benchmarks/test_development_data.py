from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.development_data import HIPPORAG, HOTPOT, MT_RAG_BENCHMARK, MTRAG, MUSIQUE, SHA256, TRIPLES, make
from benchmarks.evaluation.sets import rows_of

DATA = Path(os.environ.get("MARA_DEVELOPMENT_DATA") or "unset")

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


def turn(speaker: str, text: str, **more: object) -> dict[str, object]:
    return {"speaker": speaker, "text": text, **more}


def mtrag_task(id_: str, collection: str, passages: Mapping[str, str], *turns: object, **more: object) -> Any:
    """A task in the public form."""
    contexts = [{"document_id": name, "text": text, "score": 1.0} for name, text in passages.items()]
    answer = [turn("agent", "So it is.")]
    return {"task_id": id_, "Collection": collection, "contexts": contexts, "input": turns, "targets": answer, **more}


def enriched(answerability: str, kind: str) -> dict[str, object]:
    return {"Multi-Turn": [kind], "Answerability": [answerability]}


MTRAG_TASKS = [
    mtrag_task(
        "a<::>1", "mt-rag-govt-1", {"g": "Law."}, turn("user", "Why?"), turn="1", **enriched("ANSWERABLE", "N/A")
    ),
    mtrag_task(
        "b<::>2",
        "mt-rag-fiqa-beir-1",
        {"f1": " Cars. ", "f2": "Banks."},
        turn("user", "What?"),
        turn("agent", "That."),
        turn("user", "How?"),
        **enriched("ANSWERABLE", "Follow-up"),
    ),
    mtrag_task(
        "c<::>1",
        "ibmcloud",
        {"f1": "Cars.", "i1": "A cloud."},
        turn("user", "Where?", enrichments={"Multi-Turn": ["N/A"]}),
        answerability=["PARTIAL"],
    ),
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with made-up files in the forms and the places of both repositories."""
    folder = tmp_path / "repository"
    put(folder, {MUSIQUE: [MUSIQUE_TASK], TRIPLES: OPENIE, HOTPOT: HOTPOT_TASKS, MTRAG: MTRAG_TASKS})
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


def test_mtrag_has_the_passages_and_the_last_turns_of_two_collections(repository: Path, tmp_path: Path) -> None:
    list(make(MT_RAG_BENCHMARK[0], repository, tmp_path))
    folder = tmp_path / "mtrag_dev"
    assert [(row["id"], row["text"]) for row in made(folder, "corpus")] == [
        ("f1", "Cars."),
        ("f2", "Banks."),
        ("i1", "A cloud."),
    ]
    first, second = made(folder, "questions")
    assert first == {
        "id": "b-2",
        "question": "How?",
        "messages": [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "That."}],
        "gold_ids": ["f1", "f2"],
        "answers": ["So it is."],
        "answerability": "ANSWERABLE",
        "turn": 2,
        "type": "Follow-up",
    }
    assert (second["answerability"], second["type"], second["messages"]) == ("PARTIAL", "N/A", [])


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="MARA_DEVELOPMENT_DATA names no folder")
def test_the_sets_in_the_public_forms_give_the_files_of_the_figures_to_the_byte(tmp_path: Path) -> None:
    """The made files are written back into the public forms, as far as these hold what the sets do."""
    musique, hotpot, mtrag = (DATA / each.name for each in (*HIPPORAG, *MT_RAG_BENCHMARK))
    texts = {row["id"]: row for folder in (musique, hotpot, mtrag) for row in made(folder, "corpus")}
    docs = [
        {**texts[row["id"]], "extracted_entities": row["entities"], "extracted_triples": row["triples"]}
        for row in made(musique, "openie")
    ]
    tasks = [
        {
            "id": row["id"],
            "question": row["question"],
            "answer": row["answers"][0],
            "answer_aliases": row["answers"][1:],
            "paragraphs": [
                {"title": texts[gold]["title"], "paragraph_text": texts[gold]["text"], "is_supporting": True}
                for gold in row["gold_ids"]
            ],
        }
        for row in made(musique, "questions")
    ]
    put(tmp_path, {MUSIQUE: tasks, TRIPLES: {"docs": docs}})
    put(tmp_path, {HOTPOT: hotpot_tasks(made(hotpot, "corpus"), made(hotpot, "questions"))})
    put(tmp_path, {MTRAG: [mtrag_public(row, texts) for row in made(mtrag, "questions")]})
    told = [line for each in (*HIPPORAG, *MT_RAG_BENCHMARK) for line in make(each, tmp_path, tmp_path)]
    assert sum(line.endswith(", that of the figures") for line in told) == len(SHA256), told


def hotpot_tasks(corpus: list[dict[str, Any]], questions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tasks of which the first has the whole corpus as its context, each other one its gold passages."""
    titles = {row["id"]: row["title"] for row in corpus}
    tasks = [
        {
            "_id": row["id"],
            "question": row["question"],
            "answer": row["answers"][0],
            "type": row["type"],
            "supporting_facts": [[titles[gold], 0] for gold in row["gold_ids"]],
            "context": [[titles[gold], []] for gold in row["gold_ids"]],
        }
        for row in questions
    ]
    tasks[0]["context"] = [[row["title"], [row["text"]]] for row in corpus]
    return tasks


def mtrag_public(row: Mapping[str, Any], texts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A question as a task."""
    before = [turn("user" if each["role"] == "user" else "agent", each["content"]) for each in row["messages"]]
    return {
        "task_id": row["id"],
        "Collection": "mt-rag-fiqa",
        "contexts": [{"document_id": gold, "text": texts[gold]["text"]} for gold in row["gold_ids"]],
        "input": [*before, turn("user", row["question"])],
        "targets": [turn("agent", answer) for answer in row["answers"]],
        **enriched(row["answerability"], row["type"]),
    }
