"""The page on chat tells of every key of an answer's metadata, and its examples are what the code makes and takes."""

from __future__ import annotations

import json
from typing import Any

from agents.leaning import chosen_reading
from tests.docs.pages import ROOT, blocks, inline_code, plain, read, table
from workflows.conversation.messages import EXCERPT_LIMIT, AnswerMetadata, SourceRecord
from workflows.conversation.nodes import CHOOSE, _words_of
from workflows.runtime.human_review import review_of
from workflows.settings.mara import QUESTION_LIMIT

PAGE = read(ROOT / "docs" / "chat.md")
READINGS = ("Where was Yoshisuke Aikawa born?", "Where was Carlos Ghosn born?")


def test_every_key_of_the_metadata_and_of_a_source_is_told() -> None:
    assert {*AnswerMetadata.__annotations__, *SourceRecord.__annotations__} <= set(inline_code(PAGE))


def test_the_limits_are_those_of_the_code() -> None:
    assert f"At most {QUESTION_LIMIT:,} characters" in PAGE
    assert f"{EXCERPT_LIMIT} characters at most" in PAGE


def test_the_interrupt_is_of_the_shape_that_the_code_gives() -> None:
    (shown,) = [json.loads(block.body) for block in blocks(PAGE) if block.kind == "json"]
    made = review_of(CHOOSE, {"question": READINGS[0]}, "What do you mean? ...", "approve", "edit", "respond")
    assert shown == made


def test_each_way_to_resume_chooses_what_the_page_says() -> None:
    for row in table(PAGE, "When it asks back"):
        reply: Any = json.loads(plain(row["resume with"]).partition(", or the plain text")[0])
        words = _words_of(reply, READINGS)
        wanted = READINGS["second" in row["asks"]]
        assert (chosen_reading(words, READINGS) or words) == wanted
