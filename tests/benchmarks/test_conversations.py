"""The conversations are what they say they are, and their figures are those that a person would compute."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from agents.offline.extractor import OfflineExtractor
from agents.roles import Turn
from benchmarks.conversations import mtrag, sample
from benchmarks.conversations.data import (
    Conversation,
    LabelledTurn,
    Part,
    Task,
    Way,
    read_conversations,
    read_labels,
    read_tasks,
    turns_of,
)
from benchmarks.conversations.scoring import holds_words, ids_of, precision_and_recall
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes

CONVERSATIONS = read_conversations(list(Part))
TURNS = [(each.id, turn) for each in CONVERSATIONS for turn in each.turns]
LEANING, ALONE = read_labels("mtrag_leaning.txt"), read_labels("mtrag_alone.txt")


@pytest.fixture(scope="module")
def corpus() -> dict[str, str]:
    lines = (files("workflows.sample") / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: f"{row['title']} {row['text']}" for row in map(json.loads, lines)}


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    with tempfile.TemporaryDirectory() as folder, as_file(files("workflows.sample")) as sources:
        index_sources([sources / "corpus.jsonl"], Path(folder), extractor=OfflineExtractor())
        yield Context(workspace=folder, model="offline")
        close_indexes()


def labelled(question: str, *gold: str, answer: str = "", alone: bool = False, back: bool = False) -> LabelledTurn:
    return LabelledTurn(question, gold, answer, stands_alone=alone, ask_back=back)


def result(*ids: str, answer: str = "", kind: str = "answer", **more: Any) -> dict[str, Any]:
    passages = [{"id": id_} for id_ in ids]
    return {"passages": passages, "plain_answer": answer, "answer_kind": kind, "timings_ms": {}, **more}


class TestTheSampleConversations:
    def test_name_passages_that_hold_the_words_of_the_answer(self, corpus: Mapping[str, str]) -> None:
        for conversation, turn in TURNS:
            if turn.ask_back:
                assert (turn.gold_ids, turn.answer, turn.stands_alone) == ((), "", False), conversation
            else:
                assert turn.gold_ids, conversation
                assert turn.answer, conversation
                assert holds_words(" ".join(corpus[id_] for id_ in turn.gold_ids), turn.answer), conversation


class TestReadingATaskOfMtrag:
    def test_pairs_each_question_with_the_reply_behind_it(self) -> None:
        messages = [
            {"role": "user", "content": "When?"},
            {"role": "assistant", "content": "In 1933."},
            {"role": "user", "content": "Where?"},
        ]
        assert turns_of(messages) == (Turn("When?", "In 1933."), Turn("Where?"))

    def test_a_task_of_a_first_turn_has_no_turns(self, tmp_path: Path) -> None:
        row = {"id": "a-1", "question": "When?", "messages": [], "gold_ids": ["p"]}
        (tmp_path / "questions.jsonl").write_text(json.dumps(row), encoding="utf-8")
        assert read_tasks(tmp_path) == [Task("a-1", "When?", (), ("p",))]


class TestScoring:
    def test_an_answer_is_right_with_all_words_of_the_gold_one(self) -> None:
        for answer, gold, expected in [
            ("It was founded by Louis Renault.", "louis renault", True),
            ("Renault, whose name was Louis", "Louis Renault", True),
            ("It is 2,850 kilometres long", "2,850", True),
            ("It is 12,850 kilometres long", "2,850", False),
            ("Between 223/71 and 22/7.", "22/7", True),
            ("Nissans", "Nissan", False),
            ("", "1933", False),
        ]:
            assert holds_words(answer, gold) is expected, answer

    def test_precision_is_of_what_was_found_and_recall_of_what_is_right(self) -> None:
        assert precision_and_recall({"a", "b", "c", "d"}, {"a", "e"}) == (0.25, 0.5)
        assert precision_and_recall(set(), {"a"}) == (None, 0)
        assert precision_and_recall({"a"}, set()) == (0, None)


class TestTheSampleTables:
    def test_are_of_threads_that_were_really_asked(self, context: Context) -> None:
        (nissan,) = [each for each in read_conversations([Part.DEVELOPMENT]) if each.id == "nissan-founder"]
        founder, birth = sample.ask_conversation(nissan, context)
        assert founder.results[Way.ALONE]["question"] == "And who founded it?"
        assert founder.results[Way.ALONE]["understood"] is None
        assert founder.results[Way.IN_FRONT]["question"] == "When was Nissan founded? And who founded it?"
        assert founder.results[Way.THREAD]["understood"]["asked"] == "And who founded it?"
        assert birth.results[Way.IN_FRONT]["question"] == "And who founded it? Where was he born?"
        assert set(ids_of(founder.results[Way.THREAD])) != set(ids_of(founder.results[Way.ALONE]))

    def test_compare_first_turns_with_those_in_the_thread_of_another_conversation(self, context: Context) -> None:
        first = labelled("When was Nissan founded?", "cars-nissan", answer="1933", alone=True)
        pronoun = labelled("And who founded it?", "cars-aikawa", answer="Aikawa", alone=True)
        conversations = [Conversation(t.question, "x", Part.DEVELOPMENT, (t,)) for t in (first, pronoun)]
        assert sample.unchanged_first_turns(conversations, context) == {first.question: True, pronoun.question: False}


class TestTheMtragTables:
    TASKS = (Task("a", "Why?", (Turn("When?"),), ("p",)), Task("b", "Who was Nero?", (Turn("When?"),), ("p", "q")))

    def test_ask_alone_with_the_previous_question_in_front_and_with_the_thread(self, context: Context) -> None:
        task = Task("a", "And who founded it?", (Turn("When was Nissan founded?", "In 1933."),), ("cars-aikawa",))
        asked = {way: mtrag.ask(task, way, context) for way in Way}
        assert asked[Way.ALONE]["question"] == "And who founded it?"
        assert asked[Way.IN_FRONT]["question"] == "When was Nissan founded? And who founded it?"
        assert asked[Way.THREAD]["understood"]["asked"] == "And who founded it?"
