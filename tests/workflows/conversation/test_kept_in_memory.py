"""What a server keeps of conversations: few, short, each under an id of its own and with a filter of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput
from workflows.conversation.session import MOST_TURNS, Conversations, Thread


def result_of(question: str, *choices: str) -> dict[str, Any]:
    understood = {"asked": question, "choices": list(choices), "names": []} if choices else None
    return {"question": question, "understood": understood, "answer": "So.", "citations": []}


def kept(conversations: Conversations, question: str, key: str = "", **where: Any) -> str:
    return conversations.keep(key, where, Thread(), result_of(question))


def test_a_conversation_grows_under_the_id_that_it_was_given() -> None:
    conversations = Conversations()
    key = kept(conversations, "When?")
    assert kept(conversations, "Where?", key) == key
    assert [turn.question for turn in conversations.find(key, {}).turns] == ["When?", "Where?"]
    assert conversations.find("", {}) == Thread()


def test_ids_are_long_and_never_the_same() -> None:
    conversations = Conversations()
    keys = {kept(conversations, "When?") for _ in range(100)}
    assert len(keys) == 100
    assert min(map(len, keys)) >= 22


def test_of_too_many_the_one_that_rested_longest_is_forgotten() -> None:
    conversations = Conversations(most=2)
    first, second = kept(conversations, "1?"), kept(conversations, "2?")
    kept(conversations, "1, again?", first)
    third = kept(conversations, "3?")
    assert conversations.find(first, {}).turns[0].question == "1?"
    assert conversations.find(third, {}).turns
    with pytest.raises(BadInput, match="knows no such conversation"):
        conversations.find(second, {})


def test_one_that_was_forgotten_while_it_was_answered_goes_on_from_what_was_asked_with() -> None:
    conversations = Conversations(most=1)
    key = kept(conversations, "When?")
    before = conversations.find(key, {})
    kept(conversations, "Another?")
    conversations.keep(key, {}, before, result_of("Where?"))
    assert [turn.question for turn in conversations.find(key, {}).turns] == ["When?", "Where?"]


@pytest.mark.parametrize("other", [{}, {"tenant": "b"}, {"tenant": True}, {"tenant": 1, "year": 1}])
def test_another_filter_does_not_go_on_with_a_conversation(other: dict[str, Any]) -> None:
    conversations = Conversations()
    key = kept(conversations, "When?", tenant=1)
    with pytest.raises(BadInput, match="another `where`"):
        conversations.find(key, other)
    assert conversations.find(key, json.loads('{"tenant": 1}')).turns


def test_servers_do_not_know_each_others_conversations() -> None:
    key = kept(Conversations(), "When?")
    with pytest.raises(BadInput, match="knows no such conversation"):
        Conversations().find(key, {})


@given(st.integers(0, 40))
def test_the_first_turns_of_a_long_conversation_are_forgotten(n_turns: int) -> None:
    conversations = Conversations()
    key = ""
    for number in range(n_turns):
        key = kept(conversations, f"{number}?", key)
    turns = conversations.find(key, {}).turns
    assert [turn.question for turn in turns] == [f"{number}?" for number in range(n_turns)][-MOST_TURNS:]


def test_what_is_open_is_kept_until_it_is_settled() -> None:
    conversations = Conversations()
    key = kept(conversations, "When?")
    conversations.keep(key, {}, Thread(), result_of("Where was he born?", "A?", "B?"))
    thread = conversations.find(key, {})
    assert ([turn.question for turn in thread.turns], thread.choices) == (["When?", "Where was he born?"], ("A?", "B?"))
    kept(conversations, "A?", key)
    thread = conversations.find(key, {})
    assert ([turn.question for turn in thread.turns], thread.choices) == (["When?", "A?"], ())
