"""The conversations that a server keeps in memory: few, each under an id of its own and with a filter of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.roles import Turn
from workflows.conversation.session import MOST_TURNS, Conversations, Thread, new_key


def thread_of(*questions: str) -> Thread:
    return Thread(tuple(map(Turn, questions)))


def test_a_conversation_stands_as_it_was_kept_last() -> None:
    conversations = Conversations()
    assert conversations.find("a", {}) is None
    conversations.keep("a", {}, thread_of("When?"))
    conversations.keep("a", {}, thread_of("When?", "Where?"))
    assert conversations.find("a", {}) == thread_of("When?", "Where?")


def test_ids_are_long_and_never_the_same() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert min(map(len, keys)) >= 22


def test_of_too_many_the_one_that_rested_longest_is_forgotten() -> None:
    conversations = Conversations(most=2)
    for key in ("first", "second", "first", "third"):
        conversations.keep(key, {}, thread_of(key))
    kept = {key: conversations.find(key, {}) for key in ("first", "second", "third")}
    assert kept == {"first": thread_of("first"), "second": None, "third": thread_of("third")}


@pytest.mark.parametrize("other", [{}, {"tenant": "b"}, {"tenant": True}, {"tenant": 1, "year": 1}])
def test_another_filter_does_not_go_on_with_a_conversation(other: dict[str, Any]) -> None:
    conversations = Conversations()
    conversations.keep("a", {"tenant": 1}, thread_of("When?"))
    assert conversations.find("a", other) is None
    assert conversations.find("a", json.loads('{"tenant": 1}')) == thread_of("When?")


@given(st.integers(0, 40))
def test_the_first_turns_of_a_long_conversation_are_forgotten(n_turns: int) -> None:
    conversations = Conversations()
    questions = [f"{number}?" for number in range(n_turns)]
    conversations.keep("a", {}, thread_of(*questions))
    assert conversations.find("a", {}) == thread_of(*questions[-MOST_TURNS:])


def test_servers_do_not_know_each_others_conversations() -> None:
    Conversations().keep("a", {}, thread_of("When?"))
    assert Conversations().find("a", {}) is None


def test_what_is_open_is_kept_until_it_is_settled() -> None:
    understood = {"asked": "Where was he born?", "choices": ["A?", "B?"], "names": []}
    result: dict[str, Any] = {"question": "Where was he born?", "understood": understood, "answer": "", "citations": []}
    thread = thread_of("When?").after(result)
    assert ([turn.question for turn in thread.turns], thread.choices) == (["When?", "Where was he born?"], ("A?", "B?"))
    thread = thread.after({**result, "question": "A?", "understood": None})
    assert ([turn.question for turn in thread.turns], thread.choices) == (["When?", "A?"], ())
