"""Question files in every shape that is read: answers, gold, ids and hops, and a refusal that names the line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from workflows.runs.question_files import AskedQuestion, Gold, draw, read_questions

CONTEXT = [["Nissan", ["Founded in 1933.", "It grew."]], ["Leaf", ["A car."]], ["Renault", ["In France."]]]
PARAGRAPHS = [
    {"idx": 0, "title": "Nissan", "paragraph_text": "Founded in 1933.", "is_supporting": True},
    {"idx": 1, "title": "Leaf", "paragraph_text": "A car.", "is_supporting": False},
    {"idx": 2, "title": "Renault", "paragraph_text": "In France.", "is_supporting": True},
]
NISSAN, LEAF = Gold("", "Nissan", "Founded in 1933. It grew."), Gold("", "Leaf", "A car.")
RENAULT = Gold("", "Renault", "In France.")


def read(folder: Path, content: str | bytes, name: str = "q.jsonl") -> list[AskedQuestion]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_questions(path)


def read_rows(folder: Path, *rows: Any) -> list[AskedQuestion]:
    return read(folder, "".join(json.dumps(row) + "\n" for row in rows))


def read_row(folder: Path, **fields: Any) -> AskedQuestion:
    [question] = read_rows(folder, {"question": "Who?", **fields})
    return question


def test_a_question_may_stand_alone_and_null_says_that_nothing_is_known(tmp_path: Path) -> None:
    question = read_row(tmp_path)
    assert (question.answers, question.gold, question.type, question.hops) == ((), (), "", None)
    keys = ["id", "answer", "answers", "type", "hops", "gold_ids", "context", "supporting_facts", "paragraphs"]
    assert read_row(tmp_path, **dict.fromkeys(keys)) == question
    assert read_row(tmp_path, level=float("nan"), evidences={"x": [None]}, answer_start=-1) == question


def test_hotpotqa_and_2wiki_give_a_list_of_pairs(tmp_path: Path) -> None:
    facts = [["Nissan", 0], ["Leaf", 0], ["Nissan", 1]]
    entry = {"_id": "5a7", "question": "Who?", "answer": "yes", "type": "comparison", "level": "hard"}
    listed = [entry | {"supporting_facts": facts, "context": CONTEXT}]
    [question] = read(tmp_path, json.dumps(listed), "dev.json")
    assert question == AskedQuestion("5a7", "Who?", ("yes",), (NISSAN, LEAF), "comparison", 2)


def test_musique_is_read_from_a_list_from_one_object_and_from_lines(tmp_path: Path) -> None:
    entry = {
        "id": "3hop1__1_2_3",
        "question": "Who?",
        "answer": "G. Hall",
        "answer_aliases": ["Hall", "G. Hall"],
        "answerable": True,
        "paragraphs": PARAGRAPHS,
        "question_decomposition": [{"id": 1}, {"id": 2}, {"id": 3}],
    }
    gold = (Gold("", "Nissan", "Founded in 1933."), RENAULT)
    for name, content in (("m.json", [entry]), ("m.json", entry), ("m.jsonl", entry)):
        [question] = read(tmp_path, json.dumps(content), name)
        assert question == AskedQuestion("3hop1__1_2_3", "Who?", ("G. Hall", "Hall"), gold, "3hop1", 3), name


def test_gold_is_the_passages_that_an_entry_marks_or_else_all_that_it_brings(tmp_path: Path) -> None:
    facts = [["Honda", 0], ["Leaf", 0]]
    contexts = [{"title": "Nissan", "text": "In 1933.", "is_supporting": True}, {"title": "Leaf", "text": "A car."}]
    unmarked = [{key: value for key, value in each.items() if key != "is_supporting"} for each in PARAGRAPHS]
    opposed = [each | {"is_supporting": False} for each in PARAGRAPHS]
    nissan = Gold("", "Nissan", "Founded in 1933.")
    cases: list[tuple[dict[str, Any], tuple[Gold, ...], int | None]] = [
        ({"gold_ids": ["p1", 2]}, (Gold(id="p1"), Gold(id="2")), 2),
        ({"gold_ids": ["p1"], "context": CONTEXT, "paragraphs": PARAGRAPHS}, (Gold(id="p1"),), None),
        ({"context": CONTEXT}, (NISSAN, LEAF, RENAULT), None),
        ({"context": CONTEXT, "supporting_facts": facts}, (Gold(title="Honda"), LEAF), 2),
        ({"supporting_facts": facts}, (Gold(title="Honda"), Gold(title="Leaf")), 2),
        ({"contexts": contexts}, (Gold("", "Nissan", "In 1933."),), None),
        ({"paragraphs": unmarked}, (nissan, LEAF, RENAULT), None),
        ({"paragraphs": opposed}, (), None),
    ]
    for fields, gold, hops in cases:
        question = read_row(tmp_path, **fields)
        assert (question.gold, question.hops) == (gold, hops), fields


def test_a_question_is_known_by_its_id_or_else_by_its_text(tmp_path: Path) -> None:
    first, second = read_rows(tmp_path, {"question": "Who?"}, {"question": "Where?"})
    assert read_rows(tmp_path, {"question": "Where?"}, {"question": "Who?"}) == [second, first]
    assert first.id != second.id
    for key in ("id", "_id", "qid", "question_id"):
        assert read_row(tmp_path, **{key: 0}).id == "0", key
    with pytest.raises(BadInput, match=r"q\.jsonl, line 3: its id '7' is that of .*q\.jsonl, line 1 too"):
        read_rows(tmp_path, {"id": 7, "question": "A?"}, {"question": "B?"}, {"id": "7", "question": "C?"})
    with pytest.raises(BadInput, match="without ids, each question once"):
        read_rows(tmp_path, {"question": "A?"}, {"question": "A?"})


def test_hops_and_type_are_what_the_file_says_in_whatever_way(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], int | None, str]] = [
        ({"hops": 4, "id": "2hop__1"}, 4, "2hop"),
        ({"type": "3hop2", "gold_ids": ["a"]}, 3, "3hop2"),
        ({"id": "4hop1__1_2_3_4", "gold_ids": ["a", "b"]}, 4, "4hop1"),
        ({"id": "3hop1__5_6_7", "type": "composed"}, 3, "composed"),
        ({"id": "2hopeful"}, None, ""),
        ({"type": "bridge", "gold_ids": ["a", "b"]}, 2, "bridge"),
        ({"gold_ids": ["a", "a"]}, None, ""),
    ]
    for fields, hops, kind in cases:
        question = read_row(tmp_path, **fields)
        assert (question.hops, question.type) == (hops, kind), fields


def test_a_line_that_is_no_question_is_refused_with_its_number(tmp_path: Path) -> None:
    cases = [
        ("not json", "not valid JSON"),
        ("NaN", "valid dictionary"),
        ('{"answer": "x"}', "question: Field required"),
        ('{"question": "  "}', "question is empty"),
        (json.dumps({"question": "w" * 10_001}), "10,001 characters"),
        (r'{"question": "Who \ud83d?"}', "broken Unicode"),
    ]
    for line, reason in cases:
        with pytest.raises(BadInput, match=rf"q\.jsonl, line 3: .*{reason}"):
            read(tmp_path, f'{{"question": "First?"}}\n\n{line}\n')


def test_a_field_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"answers": ["\ud800"]}, "holds broken Unicode"),
        ({"id": True}, "id: "),
        ({"type": [3]}, "type: "),
        *(({"hops": hops}, "hops: ") for hops in ("two", 0, 100, float("nan"))),
        ({"gold_ids": "p1"}, "gold_ids: "),
        *(({"gold_ids": [key]}, "gold_ids: 0: ") for key in (None, True)),
        ({"supporting_facts": [["Nissan", 0], [[3], 0]]}, "supporting_facts: 1: "),
        ({"supporting_facts": [["Nissan", 0]], "context": 5}, "context: "),
        ({"context": [["Nissan"]]}, "context: 0: "),
        ({"context": [["Nissan", [[1]]]]}, "context: 0: "),
        ({"paragraphs": {}}, "paragraphs: "),
        ({"contexts": [{"title": "x", "text": "x", "is_supporting": "perhaps"}]}, "contexts: 0: is_supporting: "),
    ]
    for fields, reason in cases:
        with pytest.raises(BadInput) as refused:
            read_rows(tmp_path, {"question": "First?"}, {"question": "Who?", **fields})
        assert f"q.jsonl, line 2: {reason}" in str(refused.value), fields
        assert refused.value.hint


def test_a_file_that_holds_no_questions_is_refused(tmp_path: Path) -> None:
    cases = [
        *((name, content, "holds no question") for name in ("q.json", "q.jsonl") for content in ("", " \n", "\ufeff")),
        ("q.json", "[]", "holds no question"),
        ("q.json", "[{]", "not valid JSON"),
        ("q.json", '{"question": "A?"}\n{"question": "B?"}', "JSON lines need the suffix .jsonl"),
        ("q.json", '{"data": []}', "entry 1: question: Field required"),
        ("q.json", '[{"question": "A?"}, []]', "entry 2: Input should be a valid dictionary"),
        ("q.csv", "question\nWho?\n", "is no question file"),
        ("q.jsonl", b'{"question": "Caf\xe9?"}\n', "line 1 is not UTF-8 text"),
        ("q.jsonl", b'{"question": "A?"}\n\x00\n', "NUL"),
        ("q.jsonl", '{"question": "' + "w" * (8 * 2**20), "line 1 is longer than 8 MiB"),
    ]
    for name, content, reason in cases:
        with pytest.raises(BadInput) as refused:
            read(tmp_path, content, name)
        assert reason in str(refused.value), (name, content[:40])
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(BadInput, match="is not a plain file"):
        read_questions(tmp_path / "folder.jsonl")
    with pytest.raises(BadInput, match="cannot be read"):
        read_questions(tmp_path / "missing.jsonl")


def test_a_sample_is_the_same_of_any_order_and_holds_every_smaller_one() -> None:
    questions = [AskedQuestion(f"q{number}", "?") for number in range(40)]
    assert draw(questions, None, 1) == draw(questions, 99, 1) == questions
    drawn = draw(questions, 10, 0)
    assert len(drawn) == 10
    assert drawn == [question for question in questions if question in drawn] != questions[:10]
    assert draw(questions, 10, 3) != drawn
    shuffled = random.Random(1).sample(questions, 40)
    assert {question.id for question in draw(shuffled, 10, 0)} == {question.id for question in drawn}
    assert set(draw(questions, 5, 0)) < set(draw(questions, 6, 0))
    assert len(draw(questions, 1, 0)) == 1
    for limit in (0, -3):
        with pytest.raises(BadInput, match=f"limit is {limit}"):
            draw(questions, limit, 0)
