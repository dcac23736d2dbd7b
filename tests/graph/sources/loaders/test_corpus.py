from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.schema import Passage
from graph.sources.documents import read_documents
from tests.graph.sources.loaders.files import lines, passage_of_file, passages_of, write


class TestCorpusFiles:
    def test_json_lines_give_passages_whole_with_scalars_as_metadata(self, tmp_path: Path) -> None:
        for key in ["text", "passage", "contents", "content", "paragraph_text"]:
            row = {"id": 7, "title": " Nissan ", key: "In 1933.\n", "year": 1933, "old": True, "none": None}
            passage = passage_of_file(write(tmp_path / "c.jsonl", lines(row)))
            assert passage == Passage("7", "Nissan", "In 1933.\n", "c.jsonl", {"year": 1933, "old": True}), key

    def test_json_is_a_list_of_objects_or_titles_with_texts(self, tmp_path: Path) -> None:
        for value in [
            [{"title": "Nissan", "text": "In 1933. It grew."}, {"idx": 1, "title": "Leaf", "text": "A car."}],
            {"Nissan": "In 1933. It grew.", "Leaf": "A car."},
            {"Nissan": ["In 1933.", " It grew."], "Leaf": ["A car."]},
        ]:
            passages = passages_of(write(tmp_path / "c.json", json.dumps(value)))
            assert [(p.title, p.text) for p in passages] == [("Nissan", "In 1933. It grew."), ("Leaf", "A car.")], value

    def test_blank_lines_are_no_rows_and_no_line_end_but_the_newline_ends_one(self, tmp_path: Path) -> None:
        content = "\n" + lines({"id": "a", "text": "x\u2028y\x85z"}) + "  \n" + lines({"id": "b", "text": "y"})
        assert [p.id for p in passages_of(write(tmp_path / "c.jsonl", content))] == ["a", "b"]

    def test_a_malformed_line_is_named_by_file_and_line(self, tmp_path: Path) -> None:
        for line, complaint in [
            ('{"id": "b", "text": "x"', "not valid JSON"),
            ('["b", "x"]', "not an object"),
            ('{"id": "b"}', "no text"),
            ('{"id": "b", "title": ["x"], "text": "x"}', "title is no text"),
            ('{"id": "b", "title": " ", "text": " "}', "empty"),
            ('{"id": "b", "text": "\\ud800"}', "broken Unicode"),
        ]:
            path = write(tmp_path / "c.jsonl", '{"id": "a", "text": "x"}\n\n' + line + "\n")
            with pytest.raises(BadInput, match=rf"c\.jsonl, line 3: .*{complaint}"):
                read_documents([path])


ROWS: list[dict[str, Any]] = [
    {"name": "Ada Holm", "role": "CTO", "office": "Oslo", "since": 2019, "remote": True},
    {"name": "Bo Lind", "role": "CFO", "office": None},
]


class TestExports:
    """Objects without a text, as programs export them."""

    def test_each_becomes_the_passage_that_the_row_of_a_table_becomes(self, tmp_path: Path) -> None:
        for name, content in [
            ("staff.json", json.dumps(ROWS)),
            ("staff.jsonl", lines(*ROWS)),
            ("staff.json", json.dumps({"count": 2, "rows": ROWS, "next": None})),
        ]:
            table = "name,role,office,since,remote\nAda Holm,CTO,Oslo,2019,true\nBo Lind,CFO,,,\n"
            wanted = passages_of(write(tmp_path / "staff.csv", table))
            passages = passages_of(write(tmp_path / name, content))
            assert [(p.title, p.text, p.metadata) for p in passages] == [
                (p.title, p.text, p.metadata) for p in wanted
            ], name


MUSIQUE = {
    "id": "2hop__1",
    "question": "Who?",
    "paragraphs": [
        {"idx": 0, "title": "Nissan", "paragraph_text": "In 1933.", "is_supporting": True},
        {"idx": 1, "title": "Leaf", "paragraph_text": "A car.", "is_supporting": False},
    ],
}
HOTPOT = {
    "_id": "5a7",
    "question": "Who?",
    "answer": "Nissan",
    "supporting_facts": [["Nissan", 0]],
    "context": [["Nissan", ["In", " 1933."]], ["Leaf", ["A car."]]],
}
HIPPORAG = {
    "id": "1",
    "question": "Who?",
    "answer": ["x"],
    "paragraphs": [{"title": "Nissan", "text": "In 1933.", "idx": 0}, {"title": "Leaf", "text": "A car."}],
}


class TestQuestionFiles:
    def test_they_give_the_distinct_paragraphs_of_all_their_contexts(self, tmp_path: Path) -> None:
        files: list[dict[str, Any]] = [MUSIQUE, HOTPOT, HIPPORAG]
        for row in files:
            for suffix in [".json", ".jsonl"]:
                rows = [row, {**row, "question": "What?"}]
                path = write(tmp_path / f"q{suffix}", json.dumps(rows) if suffix == ".json" else lines(*rows))
                documents = read_documents([path])
                found = [(p.title, p.text) for p in documents.passages.values()]
                assert found == [("Nissan", "In 1933."), ("Leaf", "A car.")], row
                assert documents.identical == 2, row
                assert all(passage.id.startswith("passage-") for passage in documents.passages.values()), row
                assert not any(passage.metadata for passage in documents.passages.values()), row
        assert len(passages_of(write(tmp_path / "q.json", json.dumps(HOTPOT)))) == 2
        other = {"question": "?", "context": [["Nissan", ["In 1934."]]]}
        assert len(passages_of(write(tmp_path / "q.jsonl", lines(HOTPOT, other)))) == 3

    def test_a_malformed_context_is_named(self, tmp_path: Path) -> None:
        for row, complaint in [
            ({"question": "?", "context": [["Nissan"]]}, "context 1: malformed"),
            ({"question": "?", "context": {"title": ["a"], "sentences": []}}, "its context is malformed"),
            ({"question": "?", "paragraphs": [{"title": "a", "paragraph_text": "x"}, 5]}, "paragraph 2: malformed"),
            ({"question": "?", "context": [["Nissan", ["\ud800"]]]}, "broken Unicode"),
            ({"question": "?", "answers": ["x"], "gold_ids": ["a"]}, "a question or triples, and no document"),
        ]:
            path = write(tmp_path / "q.jsonl", json.dumps(row))
            with pytest.raises(BadInput, match=rf"q\.jsonl, line 1.*{complaint}"):
                read_documents([path])
