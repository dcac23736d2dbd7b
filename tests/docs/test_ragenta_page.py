"""The examples of the page on RAGentA are what the commands print, offline, on the sample workspace."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.docs.pages import ROOT, blocks, read, table
from tests.docs.test_tutorial import pattern_of
from workflows.admin.demo import run_demo
from workflows.cli.app import app
from workflows.indexing import no_progress
from workflows.nodes.follow_up_budget import CALLS_A_PASSAGE, CALLS_AT_THE_END
from workflows.runtime.resources import close_indexes
from workflows.settings.ragenta import RagentaContext

PAGE = read(ROOT / "docs" / "ragenta.md")
SHOWN = [block.body.split("\n", 1) for block in blocks(PAGE) if block.kind == "console"]
DEFAULTS = RagentaContext()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the sample workspace in it; nothing is configured."""
    folder = tmp_path_factory.mktemp("sample")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        patch.chdir(folder)
        run_demo(Path(".mara-demo"), no_progress)
        yield folder
        close_indexes()


@pytest.mark.slow
def test_a_command_prints_what_the_page_shows(sample: Path) -> None:
    for command, shown in SHOWN:
        done = CliRunner().invoke(app, shlex.split(command.removeprefix("$ mara ")), env={"COLUMNS": "2000"})
        assert re.fullmatch(pattern_of(shown), done.stdout), done.stdout


def test_the_calls_of_the_page_are_those_of_the_default_settings() -> None:
    calls = {row[""].replace("`", ""): row["model calls"] for row in table(PAGE, "When to use it")}
    asked = CALLS_A_PASSAGE * DEFAULTS.top_k + CALLS_AT_THE_END
    assert calls["ragenta"] == f"{asked}"
    assert calls["ragenta, mode mara"] == f"{asked + 2}"
    assert calls["follow-ups, at most"] == f"{DEFAULTS.follow_ups.calls} more"


def test_the_figures_of_the_page_are_the_defaults() -> None:
    page = " ".join(PAGE.split())
    for said in (
        f"n = {DEFAULTS.n} and floor = {DEFAULTS.judge_floor:g} (even odds)",
        f"If fewer than {DEFAULTS.min_kept} pass the bar",
        f"at most {DEFAULTS.answer_passages} are kept",
        f"suggests at most {DEFAULTS.follow_ups.questions} questions",
        f"share {DEFAULTS.follow_ups.calls} calls and {DEFAULTS.follow_ups.seconds:g} seconds",
        f"searched like the question itself ({DEFAULTS.follow_ups.passages} passages)",
    ):
        assert said in page
