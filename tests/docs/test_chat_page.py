"""The page on chat tells every key of an answer's metadata, and each command of the terminal."""

from __future__ import annotations

from tests.docs.pages import ROOT, inline_code, read, table
from workflows.cli.chat_commands import COMMANDS
from workflows.conversation.messages import AnswerMetadata, SourceRecord

PAGE = read(ROOT / "docs" / "chat.md")


def test_every_key_of_the_metadata_and_of_a_source_is_told() -> None:
    assert {*AnswerMetadata.__annotations__, *SourceRecord.__annotations__} <= set(inline_code(PAGE))


def test_the_page_tells_every_command_as_the_help_does() -> None:
    told = {
        next(iter(inline_code(row["command"]))).split()[0]: row["what it does"]
        for row in table(PAGE, "In the terminal")
    }
    assert list(told) == list(COMMANDS)
    for name, (_, meaning) in COMMANDS.items():
        assert told[name].startswith(meaning.partition(";")[0])
