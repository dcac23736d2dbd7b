"""The sample corpus and its questions: well-formed, in several scripts, and hard enough to show what a walk does."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any

import regex

from graph.sentences import sentence_spans
from graph.text import title_name

CORPUS, QUESTIONS = "corpus.jsonl", "questions.jsonl"
SCRIPTS = (r"\p{Arabic}", r"\p{Cyrillic}", r"\p{Devanagari}", r"\p{Greek}", r"\p{Han}")
HOPS = {"1hop": 1, "2hop": 2, "3hop": 3, "comparison": 2}


@cache
def records(name: str) -> list[dict[str, Any]]:
    text = files("workflows.sample").joinpath(name).read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert unicodedata.is_normalized("NFC", text)
    return [json.loads(line) for line in text.splitlines()]


def texts_of(question: dict[str, Any]) -> list[str]:
    """Return the texts of a question's gold passages, in the order of the hops."""
    passages = {passage["id"]: passage["text"].casefold() for passage in records(CORPUS)}
    return [passages[key] for key in question["gold_ids"]]


def test_ids_titles_and_texts_are_there_once() -> None:
    for name, keys in (
        (CORPUS, {"id", "title", "text"}),
        (QUESTIONS, {"id", "question", "answers", "type", "gold_ids"}),
    ):
        assert all(set(record) == keys for record in records(name))
    for name, key in ((CORPUS, "id"), (CORPUS, "title"), (CORPUS, "text"), (QUESTIONS, "id"), (QUESTIONS, "question")):
        values = [record[key] for record in records(name)]
        assert len(set(values)) == len(values), key
        assert all(value == value.strip() != "" for value in values), key


def test_passages_are_short_paragraphs_of_several_subjects_and_scripts() -> None:
    assert 64 <= len(records(CORPUS)) <= 76
    for passage in records(CORPUS):
        assert 3 <= len(sentence_spans(passage["text"])) <= 5, passage["id"]
    assert len({passage["id"].split("-")[0] for passage in records(CORPUS)}) >= 5
    for script in SCRIPTS:
        assert any(regex.search(script + "{2,}", passage["text"]) for passage in records(CORPUS)), script


def test_questions_need_as_many_passages_as_their_type_says_and_the_last_one_holds_the_answer() -> None:
    assert len(records(QUESTIONS)) == 20
    assert {question["type"] for question in records(QUESTIONS)} == HOPS.keys()
    for question in records(QUESTIONS):
        answer, asked = question["answers"][0].casefold(), question["question"].casefold()
        assert len(question["gold_ids"]) == len(set(question["gold_ids"])) == HOPS[question["type"]], asked
        assert answer in (asked if question["type"] == "comparison" else texts_of(question)[-1]), asked
        assert question["type"] != "3hop" or answer not in "".join(texts_of(question)[:2]), asked


def test_homonyms_are_told_apart_by_a_parenthesis_alone() -> None:
    names = [title_name(passage["title"]) for passage in records(CORPUS)]
    assert sum(names.count(name) > 1 for name in set(names)) >= 3
    assert names.count("Mercury") == 2
