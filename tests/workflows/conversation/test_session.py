"""Conversations in memory: each question comes with the turns before it, and a server keeps a few of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.roles import Turn
from graph.errors import BadInput, MaraError
from tests.builders import HashEmbedder
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER, FOUNDER_OF_MARN, ScriptedRewriter, conversation_of, said
from tests.workflows.hashed_world import hashed_world
from tests.workflows.small_world import QUESTION
from workflows.context import Context
from workflows.conversation.session import Conversation, Conversations, Thread, asks_back
from workflows.results import turn_of, understood_as
from workflows.runtime.resources import close_indexes
from workflows.settings.mara import TURNS_LIMIT

ABOUT_MARN = "When was Marn founded?"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hashed_world(tmp_path_factory.mktemp("conversation"))


@pytest.fixture
def talk(world: Path, embedder: HashEmbedder) -> Iterator[tuple[Conversation, ScriptedRewriter]]:
    yield conversation_of(Context(workspace=str(world), top_k=4))
    close_indexes()


def questions(conversation: Conversation) -> list[str]:
    return [turn.question for turn in conversation.thread.turns]


def test_a_question_comes_with_the_turns_before_it_as_they_were_understood(
    talk: tuple[Conversation, ScriptedRewriter],
) -> None:
    conversation, rewriter = talk
    first = said(conversation.ask(ABOUT_MARN))
    second = said(conversation.ask(FOUNDER))
    assert rewriter.heard == [(FOUNDER, [turn_of(first)])]
    assert (second["question"], understood_as(second)) == (FOUNDER_OF_MARN, FOUNDER_OF_MARN)
    assert understood_as(first) == ""
    assert "Duke Orlo" in second["answer"]
    assert conversation.thread.turns == (turn_of(first), turn_of(second))
    assert questions(conversation) == [ABOUT_MARN, FOUNDER_OF_MARN]
    assert conversation.last == second


def test_a_question_that_failed_or_was_left_is_forgotten_and_the_next_one_answered(
    talk: tuple[Conversation, ScriptedRewriter], chat_server: ScriptedServer
) -> None:
    conversation, _ = talk
    chat_server.script([Reply("no such key", status=401)])
    for typed in (QUESTION, " "):
        with pytest.raises(MaraError):
            said(conversation.ask(typed))
    chat_server.script([Reply("In 1203 [1].")])
    said(conversation.ask(ABOUT_MARN))
    with closing(conversation.ask(FOUNDER)) as events:
        next(events)
    assert questions(conversation) == [ABOUT_MARN]


class TestAskingBack:
    def test_the_number_of_a_choice_asks_it_as_a_whole_question_and_another_leaves_it_open(
        self, talk: tuple[Conversation, ScriptedRewriter]
    ) -> None:
        conversation, rewriter = talk
        said(conversation.ask(ABOUT_MARN))
        assert asks_back(said(conversation.ask(BIRTH)))
        for number in ("0", "3", "99"):
            with pytest.raises(BadInput, match=rf"no choice {number}\. Choose from 1 to 2"):
                said(conversation.ask(number))
            assert conversation.thread.choices == BIRTHS
        picked = said(conversation.ask(" 2 "))
        assert (picked["question"], picked["understood"]) == (BIRTHS[1], None)
        assert "Lisk" in picked["answer"]
        assert [question for question, _ in rewriter.heard] == [BIRTH]
        assert questions(conversation) == [ABOUT_MARN, BIRTHS[1]]

    def test_anything_else_is_a_question_and_what_was_open_counts_for_it_alone(
        self, talk: tuple[Conversation, ScriptedRewriter]
    ) -> None:
        conversation, rewriter = talk
        said(conversation.ask(ABOUT_MARN))
        said(conversation.ask(BIRTH))
        said(conversation.ask(FOUNDER))
        question, turns = rewriter.heard[-1]
        assert (question, [turn.question for turn in turns]) == (FOUNDER, [ABOUT_MARN, BIRTH])
        assert conversation.thread.choices == ()
        assert questions(conversation) == [ABOUT_MARN, FOUNDER_OF_MARN]

    def test_a_choice_may_be_typed_too_and_a_number_is_a_question_where_nothing_is_open_and_so_is_a_year(self) -> None:
        turns = (Turn("When?"),)
        assert Thread(turns, BIRTHS).read(f"{BIRTHS[0]} ") == (BIRTHS[0], ())
        assert Thread(turns).read("1") == ("1", turns)
        assert Thread(turns, BIRTHS).read("1952") == ("1952", turns)


class TestCorrecting:
    def test_what_was_meant_is_asked_alone_and_takes_the_place_of_the_last_turn_unless_it_fails_or_is_left(
        self, talk: tuple[Conversation, ScriptedRewriter]
    ) -> None:
        conversation, rewriter = talk
        with pytest.raises(BadInput, match="No question was asked yet"):
            said(conversation.correct(ABOUT_MARN))
        said(conversation.ask(ABOUT_MARN))
        said(conversation.ask(FOUNDER))
        with pytest.raises(BadInput):
            said(conversation.correct(" "))
        with closing(conversation.correct(BIRTH)) as events:
            next(events)
        assert questions(conversation) == [ABOUT_MARN, FOUNDER_OF_MARN]
        meant = said(conversation.correct(BIRTHS[1]))
        assert meant["understood"] is None
        assert len(rewriter.heard) == 1
        assert questions(conversation) == [ABOUT_MARN, BIRTHS[1]]


@given(st.integers(0, 3 * TURNS_LIMIT))
def test_however_long_a_conversation_no_more_turns_are_given_than_a_question_may_have(n_turns: int) -> None:
    thread = Thread()
    for number in range(n_turns):
        result: dict[str, Any] = {"question": f"{number}?", "answer": "So.", "understood": None, "citations": []}
        thread = thread.after(result)
    assert len(thread.turns) == min(n_turns, TURNS_LIMIT)
    assert [turn.question for turn in thread.turns] == [f"{n}?" for n in range(n_turns)][-TURNS_LIMIT:]


class TestMarkdown:
    def test_it_tells_each_question_with_its_answer_and_its_sources(
        self, talk: tuple[Conversation, ScriptedRewriter]
    ) -> None:
        conversation, _ = talk
        said(conversation.ask(ABOUT_MARN))
        said(conversation.ask(FOUNDER))
        said(conversation.ask(BIRTH))
        page = conversation.to_markdown()
        headings = [line for line in page.splitlines() if line.startswith("#")]
        assert headings == ["# Conversation", f"## {ABOUT_MARN}", f"## {FOUNDER}", f"## {BIRTH}"]
        assert f"\nUnderstood as: {FOUNDER_OF_MARN}\n" in page
        assert "- \\[1\\] Marn · corpus.jsonl\n" in page
        assert f"\n1. {BIRTHS[0]}\n2. {BIRTHS[1]}\n" in page


def thread_of(*questions: str) -> Thread:
    return Thread(tuple(map(Turn, questions)))


def test_a_conversation_stands_as_it_was_kept_last() -> None:
    conversations = Conversations()
    assert conversations.find("a", {}) is None
    conversations.keep("a", {}, thread_of("When?"))
    conversations.keep("a", {}, thread_of("When?", "Where?"))
    assert conversations.find("a", {}) == thread_of("When?", "Where?")


def test_of_too_many_the_one_that_rested_longest_is_forgotten() -> None:
    conversations = Conversations(most=2)
    for key in ("first", "second", "first", "third"):
        conversations.keep(key, {}, thread_of(key))
    threads = {key: conversations.find(key, {}) for key in ("first", "second", "third")}
    assert threads == {"first": thread_of("first"), "second": None, "third": thread_of("third")}


def test_another_filter_does_not_go_on_with_a_conversation() -> None:
    for other in ({}, {"tenant": "b"}, {"tenant": True}, {"tenant": 1, "year": 1}):
        conversations = Conversations()
        conversations.keep("a", {"tenant": 1}, thread_of("When?"))
        assert conversations.find("a", other) is None
        assert conversations.find("a", json.loads('{"tenant": 1}')) == thread_of("When?"), other
