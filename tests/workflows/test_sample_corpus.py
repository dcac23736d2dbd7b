from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
import regex

from graph.sentences import sentence_spans
from graph.text import title_name

CORPUS, QUESTIONS = "corpus.jsonl", "questions.jsonl"
EAST_ASIAN = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
SCRIPTS = {
    "Arabic": r"\p{Arabic}",
    "Cyrillic": r"\p{Cyrillic}",
    "Devanagari": r"\p{Devanagari}",
    "Greek": r"\p{Greek}",
    "Han": r"\p{Han}",
}


def lines(name: str) -> list[str]:
    return files("workflows.sample").joinpath(name).read_text(encoding="utf-8").split("\n")


@cache
def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(name)[:-1]]


def passages() -> dict[str, dict[str, Any]]:
    return {passage["id"]: passage for passage in records(CORPUS)}


def asked(text: str) -> dict[str, Any]:
    return next(question for question in records(QUESTIONS) if question["question"] == text)


def word_count(text: str) -> int:
    """Words between spaces; two characters of Han or Kana count as one word."""
    return len(regex.sub(EAST_ASIAN, "", text).split()) + len(regex.findall(EAST_ASIAN, text)) // 2


def native_share(text: str) -> float:
    """The share of letters that are not Latin, in [0, 1]."""
    letters = regex.findall(r"\p{L}", text)
    return sum(not regex.match(r"\p{Latin}", letter) for letter in letters) / len(letters)


@pytest.mark.parametrize("name", [CORPUS, QUESTIONS])
def test_every_line_is_one_json_object_and_the_last_line_is_complete(name: str) -> None:
    *body, rest = lines(name)
    assert rest == ""
    assert all(isinstance(json.loads(line), dict) for line in body)


@pytest.mark.parametrize("name", [CORPUS, QUESTIONS])
def test_text_is_written_out_in_composed_unicode(name: str) -> None:
    for line in lines(name):
        assert "\\u" not in line
        assert unicodedata.is_normalized("NFC", line)


@pytest.mark.parametrize("name", [CORPUS, QUESTIONS])
def test_ids_are_unique_and_readable(name: str) -> None:
    counts = Counter(record["id"] for record in records(name))
    assert counts.most_common(1)[0][1] == 1
    assert all(regex.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", identifier) for identifier in counts)


def test_a_passage_has_an_id_a_title_and_a_text() -> None:
    for passage in records(CORPUS):
        assert set(passage) == {"id", "title", "text"}
        assert all(isinstance(value, str) and value == value.strip() != "" for value in passage.values())


def test_there_are_64_to_76_passages_with_distinct_titles_and_texts() -> None:
    assert 64 <= len(records(CORPUS)) <= 76
    for key in ("title", "text"):
        assert len({passage[key] for passage in records(CORPUS)}) == len(records(CORPUS))


def test_passages_are_short_paragraphs() -> None:
    for passage in records(CORPUS):
        assert 40 <= word_count(passage["text"]) <= 90, passage["id"]
        assert 3 <= len(sentence_spans(passage["text"])) <= 5, passage["id"]


def test_the_corpus_covers_at_least_five_subjects_told_by_the_prefix_of_the_id() -> None:
    subjects = Counter(passage["id"].split("-")[0] for passage in records(CORPUS))
    assert len(subjects) >= 5
    assert min(subjects.values()) >= 5


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_of_each_script_stand_in_running_text(script: str) -> None:
    assert any(regex.search(SCRIPTS[script] + "{2,}", passage["text"]) for passage in records(CORPUS))


def test_at_least_three_passages_in_different_scripts_are_written_in_their_own_language() -> None:
    native = [passage["text"] for passage in records(CORPUS) if native_share(passage["text"]) > 0.9]
    assert len(native) >= 3
    assert len({script for script, letter in SCRIPTS.items() for text in native if regex.search(letter, text)}) >= 3


def test_homonyms_are_told_apart_by_a_parenthesis_alone() -> None:
    titles = defaultdict(list)
    for passage in records(CORPUS):
        titles[title_name(passage["title"])].append(passage["title"])
    assert sum(len(group) > 1 for group in titles.values()) >= 3
    assert len(titles["Mercury"]) == 2


def test_a_question_has_answers_a_type_and_gold_passages() -> None:
    for question in records(QUESTIONS):
        assert set(question) == {"id", "question", "answers", "type", "gold_ids"}
        assert question["type"] in {"1hop", "2hop", "3hop", "comparison"}
        assert question["answers"]
        assert len(set(question["gold_ids"])) == len(question["gold_ids"])


def test_there_are_20_different_questions_of_every_type() -> None:
    assert len({question["question"] for question in records(QUESTIONS)}) == len(records(QUESTIONS)) == 20
    assert {question["type"] for question in records(QUESTIONS)} == {"1hop", "2hop", "3hop", "comparison"}


def test_gold_passages_exist() -> None:
    for question in records(QUESTIONS):
        assert set(question["gold_ids"]) <= set(passages()), question["id"]


def test_the_type_says_how_many_passages_a_question_needs() -> None:
    needed = {"1hop": 1, "2hop": 2, "3hop": 3, "comparison": 2}
    for question in records(QUESTIONS):
        assert len(question["gold_ids"]) == needed[question["type"]], question["id"]


def test_at_least_14_questions_need_two_or_three_passages() -> None:
    assert sum(len(question["gold_ids"]) in (2, 3) for question in records(QUESTIONS)) >= 14


def test_every_answer_stands_in_a_gold_passage() -> None:
    for question in records(QUESTIONS):
        if question["type"] == "comparison":
            continue
        gold = [passages()[identifier]["text"].casefold() for identifier in question["gold_ids"]]
        for answer in question["answers"]:
            assert any(answer.casefold() in text for text in gold), (question["id"], answer)


def test_a_comparison_is_answered_by_one_of_the_names_it_compares() -> None:
    for question in records(QUESTIONS):
        if question["type"] == "comparison":
            assert question["answers"][0].casefold() in question["question"].casefold()


def test_a_multi_hop_question_does_not_name_the_passage_that_holds_its_answer() -> None:
    """Gold ids stand in the order of the hops: the last one holds the answer."""
    for question in records(QUESTIONS):
        if question["type"] in {"2hop", "3hop"}:
            last = passages()[question["gold_ids"][-1]]
            assert question["answers"][0].casefold() in last["text"].casefold(), question["id"]
            assert title_name(last["title"]).casefold() not in question["question"].casefold(), question["id"]


def test_no_single_passage_joins_the_first_hop_of_a_three_hop_question_to_its_answer() -> None:
    for question in records(QUESTIONS):
        if question["type"] == "3hop":
            first, middle = (passages()[identifier]["text"].casefold() for identifier in question["gold_ids"][:2])
            assert question["answers"][0].casefold() not in first + middle, question["id"]


def test_questions_use_names_in_other_scripts_and_some_use_nothing_else() -> None:
    shares = [native_share(question["question"]) for question in records(QUESTIONS)]
    assert sum(share > 0 for share in shares) >= 3
    assert 1.0 in shares


def test_most_passages_are_distractors_and_every_subject_is_asked_about() -> None:
    gold = {identifier for question in records(QUESTIONS) for identifier in question["gold_ids"]}
    assert len(gold) < len(passages()) / 2
    assert {identifier.split("-")[0] for identifier in gold} == {identifier.split("-")[0] for identifier in passages()}


def test_the_walkthrough_of_nissan_can_be_followed() -> None:
    walkthrough = asked("When was Nissan founded?")
    assert walkthrough["answers"][0] == "1933"
    nissan = passages()[walkthrough["gold_ids"][0]]
    assert nissan["title"] == "Nissan"
    assert {"1933", "Yokohama", "Japan"} <= set(regex.findall(r"\w+", nissan["text"]))


def test_the_cause_of_the_first_world_war_is_asked_for() -> None:
    assert asked("What caused World War I?")["answers"][0] == "the assassination of Archduke Franz Ferdinand"
