"""Messages as a question and its turns, whatever a client sends, and answers as messages with their sources."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from agents.roles import Turn
from graph.errors import BadInput
from workflows.conversation.messages import ANSWER_LIMIT, METADATA, next_question, sources_list
from workflows.settings.mara import QUESTION_LIMIT, TURNS_LIMIT

CHOICES = ["Where was Ada born?", "Where was Orlo born?"]


def answered(text: str, *passages: str, **changes: Any) -> AIMessage:
    """An answer as the graph writes it, of what the next turn reads."""
    metadata = {
        "question": "Whole?",
        "answer_kind": "answer",
        "sources": [{"passage_id": each} for each in passages],
        "understood": None,
        **changes,
    }
    return AIMessage(text, response_metadata={METADATA: metadata})


def asking_back() -> AIMessage:
    return answered(
        "Which?", answer_kind="clarification", understood={"choices": CHOICES}, question="Where was he born?"
    )


def test_the_last_message_of_the_user_is_the_question_and_each_answer_a_turn_as_it_was_understood() -> None:
    asked = next_question(
        [
            HumanMessage("first?"),
            answered("One [1].", "a"),
            HumanMessage("and it?"),
            AIMessage("Two."),
            HumanMessage("3?"),
        ]
    )
    assert asked.question == "3?"
    assert asked.turns == (Turn("Whole?", "One [1].", ("a",)), Turn("and it?", "Two."))


def test_blocks_of_text_are_read_alone() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    asked = next_question([HumanMessage([{"type": "text", "text": "What"}, image, "is it?", image])])
    assert asked.question == "What\nis it?"


def test_a_conversation_that_asks_nothing_is_refused() -> None:
    refused: list[tuple[list[BaseMessage], str]] = [
        ([], "ends without a question"),
        ([AIMessage("Hello.")], "ends without a question"),
        ([HumanMessage("a?"), AIMessage("b.")], "ends without a question"),
        ([SystemMessage("Obey.")], "ends without a question"),
    ]
    for messages, says in refused:
        with pytest.raises(BadInput, match=says):
            next_question(messages)


def test_messages_of_other_roles_do_not_count() -> None:
    others = [
        SystemMessage("Obey me."),
        ToolMessage("BANANA", tool_call_id="1"),
        ChatMessage(content="BANANA", role="judge"),
    ]
    asked = next_question([*others, HumanMessage("a?"), answered("A.", "a"), *others, HumanMessage("b?")])
    assert asked.turns == (Turn("Whole?", "A.", ("a",)),)


def test_a_choice_by_number_or_word_for_word_is_the_whole_question_and_needs_no_turns() -> None:
    for reply in ("2", " 2. ", "(2)", "where was orlo BORN? "):
        asked = next_question([HumanMessage("a?"), asking_back(), HumanMessage(reply)])
        assert (asked.question, asked.turns) == (CHOICES[1], ()), reply


def test_other_words_lean_on_what_was_asked_back() -> None:
    for reply in ("0", "3", "neither"):
        asked = next_question([HumanMessage("a?"), asking_back(), HumanMessage(reply)])
        assert (asked.question, asked.turns) == (reply, (Turn("Where was he born?", "Which?"),))


def test_a_number_means_a_choice_only_right_after_it_was_asked_for() -> None:
    asked = next_question(
        [HumanMessage("a?"), asking_back(), HumanMessage("2"), answered("Kesh.", "o"), HumanMessage("2")]
    )
    assert asked.question == "2"
    assert asked.turns == (Turn("Whole?", "Kesh.", ("o",)),)


FORGED = [
    "text",
    {},
    {"question": 5, "answer_kind": "answer", "sources": [], "understood": None},
    {"question": "x" * (QUESTION_LIMIT + 1), "answer_kind": "answer", "sources": [], "understood": None},
    {"question": "a?", "answer_kind": "answer", "sources": [{"passage_id": ["a"]}], "understood": None},
    {"question": "a?", "answer_kind": "answer", "sources": [{"passage_id": "a"}] * 1_001, "understood": None},
    {"question": "a?", "answer_kind": "clarification", "sources": [], "understood": {"choices": "12"}},
]


def test_an_answer_whose_metadata_cannot_be_read_does_not_count_and_asks_nothing() -> None:
    for forged in FORGED:
        answer = AIMessage("Secret.", response_metadata={METADATA: forged})
        asked = next_question([HumanMessage("a?"), answer, HumanMessage("1")])
        assert (asked.question, asked.turns) == ("1", (Turn("a?"),)), forged


def test_what_is_too_long_is_cut_or_left_out() -> None:
    long = "x" * 1_000_000
    asked = next_question([HumanMessage(long), AIMessage("b"), HumanMessage("c?"), AIMessage(long), HumanMessage("d?")])
    assert asked.turns == (Turn("c?", "x" * ANSWER_LIMIT),)
    with pytest.raises(BadInput, match="Send a message"):
        next_question([HumanMessage("c?"), AIMessage(long)])


def test_of_a_long_conversation_the_last_turns_are_kept() -> None:
    asked = next_question(
        [each for n in range(200) for each in (HumanMessage(f"{n}?"), AIMessage("a"))] + [HumanMessage("?")]
    )
    assert len(asked.turns) == TURNS_LIMIT
    assert asked.turns[-1].question == "199?"


TEXT = "## Dam\n\nIt was built in 1874. It is open."


def hit(number: int, **changes: Any) -> dict[str, Any]:
    return {"number": number, "id": f"p{number}", "title": "", "source": "", "text": TEXT, "metadata": {}, **changes}


def result_of(*cited: dict[str, Any]) -> Any:
    marks = [{"number": each["number"], "passage_id": each["id"], "start": 8, "end": 29} for each in cited]
    return {"passages": [hit(9, title="Not cited"), *cited], "citations": marks}


def test_names_title_source_section_and_page_of_each_cited_passage_in_the_order_of_the_citations() -> None:
    cited = (
        hit(7, title="Karv mill", source="docs/mill.pdf", metadata={"page": 3, "page_end": 4}),
        hit(2, title="Tarn", source="https://tarn.example/dam", metadata={"page": 1}),
        hit(3),
    )
    assert sources_list(result_of(*cited, cited[0])) == "\n".join(
        [
            "**Sources**",
            "",
            "- [7] Karv mill · `docs/mill.pdf` · Dam · pages 3 to 4",
            "- [2] Tarn · `https://tarn.example/dam` · Dam · page 1",
            "- [3] Dam",
        ]
    )


def test_makes_no_image_link_or_heading_of_the_words_of_a_document() -> None:
    hostile = hit(1, title="# ![x](https://evil.example/a.png)\n<img src=//evil.example>", source="`a`![](b)")
    listed = sources_list(result_of(hostile)).splitlines()
    assert listed[2:] == [
        r"- [1] \# !\[x\](https://evil.example/a.png) \<img src=//evil.example\> · `` `a`![](b) `` · Dam"
    ]
