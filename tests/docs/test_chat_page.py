"""The page on chat tells every key of an answer's metadata, each way to resume, and each command of the terminal."""

from __future__ import annotations

import json
from typing import Any

from agents.leaning import chosen_reading
from tests.docs.pages import ROOT, inline_code, plain, read, table
from workflows.cli.chat_commands import COMMANDS
from workflows.conversation.messages import AnswerMetadata, SourceRecord
from workflows.conversation.nodes import _words_of

PAGE = read(ROOT / "docs" / "chat.md")
READINGS = ("Where was Yoshisuke Aikawa born?", "Where was Carlos Ghosn born?")


def test_every_key_of_the_metadata_and_of_a_source_is_told() -> None:
    assert {*AnswerMetadata.__annotations__, *SourceRecord.__annotations__} <= set(inline_code(PAGE))


def test_each_way_to_resume_chooses_what_the_page_says() -> None:
    for row in table(PAGE, "When it asks back"):
        reply: Any = json.loads(plain(row["resume with"]).partition(", or the plain text")[0])
        words = _words_of(reply, READINGS)
        wanted = READINGS["second" in row["asks"]]
        assert (chosen_reading(words, READINGS) or words) == wanted


def test_the_page_tells_every_command_as_the_help_does() -> None:
    told = {
        next(iter(inline_code(row["command"]))).split()[0]: row["what it does"]
        for row in table(PAGE, "In the terminal")
    }
    assert list(told) == list(COMMANDS)
    for name, (_, meaning) in COMMANDS.items():
        assert told[name].startswith(meaning.partition(";")[0])
