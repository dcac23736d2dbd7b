"""The conversations are what they say they are, and their figures are those that a person would compute."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from agents.offline.extractor import OfflineExtractor
from agents.roles import Turn
from benchmarks.conversations import gate, mtrag, sample
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
from benchmarks.conversations.scoring import difference, holds_words, ids_of, precision_and_recall, same_result
from graph.errors import BadInput
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


def later(turn: LabelledTurn, alone: Any, in_front: Any, thread: Any, kind: str = "why") -> sample.Later:
    conversation = Conversation("c", kind, Part.DEVELOPMENT, (labelled("First?", "p", alone=True), turn))
    return sample.Later(conversation, turn, {Way.ALONE: alone, Way.IN_FRONT: in_front, Way.THREAD: thread})


class TestTheSampleConversations:
    def test_are_at_least_48_of_two_or_three_turns_with_ids_of_their_own(self) -> None:
        assert len({each.id for each in CONVERSATIONS}) == len(CONVERSATIONS) >= 48
        assert {len(each.turns) for each in CONVERSATIONS} == {2, 3}
        assert all(each.turns[0].stands_alone for each in CONVERSATIONS)

    def test_have_as_many_of_every_kind_in_both_parts(self) -> None:
        development, held_out = (
            Counter(each.kind for each in CONVERSATIONS if each.part is part)
            for part in (Part.DEVELOPMENT, Part.HELD_OUT)
        )
        assert development == held_out
        assert len(development) >= 16

    def test_name_passages_that_hold_the_words_of_the_answer(self, corpus: Mapping[str, str]) -> None:
        for conversation, turn in TURNS:
            if turn.ask_back:
                assert (turn.gold_ids, turn.answer, turn.stands_alone) == ((), "", False), conversation
            else:
                assert turn.gold_ids, conversation
                assert turn.answer, conversation
                assert holds_words(" ".join(corpus[id_] for id_ in turn.gold_ids), turn.answer), conversation

    def test_have_questions_that_stand_alone_and_that_are_open_among_the_later_ones_of_both_parts(self) -> None:
        for part in Part:
            turns = [turn for each in read_conversations([part]) for turn in each.turns[1:]]
            assert sum(turn.stands_alone for turn in turns) >= 4
            assert sum(turn.ask_back for turn in turns) >= 2


class TestTheLabels:
    def test_put_no_task_on_both_sides(self) -> None:
        assert not LEANING & ALONE
        assert len(LEANING | ALONE) == 198

    def test_have_to_be_of_the_tasks_that_are_asked(self) -> None:
        with pytest.raises(BadInput, match="labels are not of these tasks"):
            mtrag.labels_of([Task("other", "Why?", (Turn("When?"),), ())])


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

    def test_results_are_the_same_but_for_their_timings(self) -> None:
        assert same_result({"answer": "a", "timings_ms": {"total": 1}}, {"answer": "a", "timings_ms": {"total": 2}})
        assert not same_result({"answer": "a"}, {"answer": "b"})
        assert not same_result({"answer": "a", "understood": None}, {"answer": "a"})

    def test_precision_is_of_what_was_found_and_recall_of_what_is_right(self) -> None:
        assert precision_and_recall({"a", "b", "c", "d"}, {"a", "e"}) == (0.25, 0.5)
        assert precision_and_recall(set(), {"a"}) == (None, 0)
        assert precision_and_recall({"a"}, set()) == (0, None)

    def test_a_difference_is_told_with_its_interval(self) -> None:
        assert difference([1, 1, 1], [0.5, 0.5, 0.5]) == "+0.500 [+0.500, +0.500]"
        assert difference([1], [0]) == "too few"


class TestTheSampleTables:
    def test_tell_recall_and_answers_by_kind_and_of_all_that_lean(self) -> None:
        miss, hit = result("x", "x", "p", answer="no"), result("p", answer="The gold word")
        turns = [
            later(labelled("Why?", "p", answer="gold"), miss, hit, hit),
            later(labelled("Why so?", "p", "q", answer="gold"), result(), miss, hit),
            later(labelled("Who was Nero?", "p", answer="gold", alone=True), hit, hit, hit, kind="switch"),
            later(labelled("When did he die?", back=True), hit, hit, result(kind="clarification"), kind="open"),
        ]
        table = sample.recall_table(turns)
        assert "| why | 2 | 0.000 / 0.500 / 0.000 | 0.500 / 0.750 / 0.500 | 0.750 / 0.750 / 1.000 |" in table
        assert "| switch | 1 | 1.000 / 1.000 / 1.000 |" in table
        assert "| **all that lean** | 2 | 0.000 / 0.500 / 0.000 |" in table
        assert "| **all later turns** | 3 | 0.333 / 0.667 / 0.333 |" in table
        assert "| open |" not in table
        assert "above last turn alone: recall@2 +0.750 [+0.500, +1.000]; recall@5 +0.250 [+0.000, +0.500]" in table

    def test_count_what_was_left_as_it_is_and_what_was_asked_back(self) -> None:
        one, other, back = result("p"), result("q"), result(kind="clarification")
        turns = [
            later(labelled("Who was Nero?", "p", alone=True), one, one, one),
            later(labelled("Who was Nero and when did he die?", "p", alone=True), one, one, other),
            later(labelled("When did he die?", back=True), one, one, back),
            later(labelled("Where did he die?", back=True), one, one, one),
            later(labelled("Why?", "p"), one, one, back),
        ]
        assert sample.behaviour_table(turns, [True, True, False]).splitlines()[2:] == [
            "| first turns in another's thread: result unchanged | 3 | 2 |",
            "| later turns that stand alone: result unchanged | 2 | 1 |",
            "| questions that could mean several things: asked back | 2 | 1 |",
            "| other later turns: asked back needlessly | 3 | 1 |",
        ]
        assert [sample.went_wrong(turn) for turn in turns] == [False, True, False, True, True]

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

    def test_tell_recall_by_depth_and_what_the_thread_gains(self) -> None:
        miss, hit = result(), result("x", "p", "x", "q")
        results: mtrag.Results = {Way.ALONE: [miss, hit], Way.IN_FRONT: [hit, hit], Way.THREAD: [hit, hit]}
        lines = mtrag.recall_table("dense", results, self.TASKS).splitlines()
        assert lines[2] == "| last turn alone | 0.250 | 0.500 | 0.500 |"
        assert lines[4] == "| with the thread | 0.750 | 1.000 | 1.000 |"
        assert lines[5].startswith("| with the thread above last turn alone | +0.500 [+0.000, +1.000] |")
        assert lines[6].startswith("| with the thread above previous question in front | +0.000 [+0.000, +0.000] |")

    def test_compare_the_whole_result_of_tasks_that_stand_alone(self) -> None:
        one, other = result("p"), result("q")
        results: mtrag.Results = {Way.ALONE: [one, one], Way.IN_FRONT: [one, one], Way.THREAD: [other, one]}
        assert mtrag.unchanged(self.TASKS, results, {"b"}) == [True]
        assert mtrag.unchanged(self.TASKS, results, {"a", "b"}) == [False, True]

    def test_ask_alone_with_the_previous_question_in_front_and_with_the_thread(self, context: Context) -> None:
        task = Task("a", "And who founded it?", (Turn("When was Nissan founded?", "In 1933."),), ("cars-aikawa",))
        asked = {way: mtrag.ask(task, way, context) for way in Way}
        assert asked[Way.ALONE]["question"] == "And who founded it?"
        assert asked[Way.IN_FRONT]["question"] == "When was Nissan founded? And who founded it?"
        assert asked[Way.THREAD]["understood"]["asked"] == "And who founded it?"


def test_the_questions_that_the_gate_gets_wrong_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "leaning_of", lambda question: "a why" if "Nero" in question else "")
    assert gate.wrong({"1": "Why?"}, {"2": "Who was Nero?", "3": "Who is Pu Yi?"}) == (
        "Leans, and the gate lets it stand alone:\n  Why?\n\n"
        "Stands alone, and the gate takes it to lean:\n  Who was Nero? (a why)"
    )


def test_the_gate_is_told_by_what_it_found_right_and_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "leans", lambda question: question in {"Why?", "Who was Nero?", "And?"})
    table = gate.table("some", {"1": "Why?", "2": "How so?", "3": "And?"}, {"4": "Who was Nero?", "5": "Who is Pu Yi?"})
    assert table.splitlines()[-1] == "| some | 3 | 2 | 2 | 1 | 0.667 | 0.667 |"
