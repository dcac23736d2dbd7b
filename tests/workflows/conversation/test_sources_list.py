"""The list of sources below an answer: what it names, and that it is no part of the answer in the next turn."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agents.roles import Turn
from workflows.conversation.messages import next_question, sources_list, without_sources

TEXT = "## Dam\n\nIt was built in 1874. It is open."


def hit(number: int, **given: Any) -> dict[str, Any]:
    return {"number": number, "id": f"p{number}", "title": "", "source": "", "text": TEXT, "metadata": {}, **given}


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


def test_is_empty_where_nothing_is_cited() -> None:
    assert sources_list(result_of()) == ""


def test_makes_no_image_link_or_heading_of_the_words_of_a_document() -> None:
    hostile = hit(1, title="# ![x](https://evil.example/a.png)\n<img src=//evil.example>", source="`a`![](b)")
    listed = sources_list(result_of(hostile)).splitlines()
    assert listed[2:] == [
        r"- [1] \# !\[x\](https://evil.example/a.png) \<img src=//evil.example\> · `` `a`![](b) `` · Dam"
    ]


@pytest.mark.parametrize("answer", ["It is open [1].", "One.\n\n**Sources**\n\n- none", ""])
def test_is_no_part_of_the_answer_in_the_next_turn(answer: str) -> None:
    shown = f"{answer}\n\n{sources_list(result_of(hit(1, title='Tarn'), hit(2)))}"
    assert without_sources(shown) == answer
    asked = next_question([HumanMessage("Is it?"), AIMessage(shown), HumanMessage("And now?")])
    assert asked.turns == (Turn("Is it?", answer),)


@pytest.mark.parametrize("text", ["**Sources**", "A.\n\n**Sources**\n\n- [1] a\n\nmore", "A.\n\n**Sources**\n- [1] a"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_sources(text) == text
