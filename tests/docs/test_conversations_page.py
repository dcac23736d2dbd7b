"""The page on conversations tells every command as `/help` does, and its script runs."""

from __future__ import annotations

import io
import json
import os
import sys
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, inline_code, read, table
from tests.workflows.command_line import command_line
from workflows.cli.chat_commands import COMMANDS
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE, close_indexes
from workflows.settings.indexing import IndexingContext

PAGE = read(ROOT / "docs" / "chat.md")


def test_the_page_tells_every_command_as_the_help_does() -> None:
    told = {
        next(iter(inline_code(row["command"]))).split()[0]: row["what it does"]
        for row in table(PAGE, "In the terminal")
    }
    assert list(told) == list(COMMANDS)
    for name, (_, meaning) in COMMANDS.items():
        beginning = meaning.partition(";")[0]
        assert told[name].startswith(beginning)


@pytest.mark.slow
def test_the_conversation_of_the_page_is_the_one_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
        monkeypatch.delenv(name)
    with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
        index_sources([corpus], tmp_path / ".mara-demo", settings=IndexingContext(model=OFFLINE))
    shown = PAGE.partition("$ mara chat")[2].partition("```")[0].splitlines()
    asked = [line.removeprefix("> ") for line in shown if line.startswith("> ")]
    (understood,) = [line.removeprefix("Understood as: ") for line in shown if line.startswith("Understood as: ")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(asked).encode())))
    done = command_line(monkeypatch, capsys)("chat", "-w", tmp_path / ".mara-demo", "--json")
    *_, last = map(json.loads, done.out.splitlines())
    assert last["question"] == understood
    close_indexes()
