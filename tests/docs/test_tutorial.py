"""The tutorial's own commands, run in one shell in an empty folder, print what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, read

PAGE = ROOT / "docs" / "tutorial.md"
MARK = "@@ end of block"
NOWHERE = "http://127.0.0.1:9"


def steps() -> list[tuple[Block, Block]]:
    """The blocks that are run, each with the block below it that shows what it prints."""
    found = blocks(read(PAGE))
    pairs = [(block, after) for block, after in pairwise(found) if block.kind == "bash"]
    assert {after.kind for _, after in pairs} == {"console"}, "every bash block is followed by what it prints"
    return pairs


def pattern_of(shown: str) -> str:
    """What a shown output stands for: `…` is anything within a line, and alone on one any lines."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + r"[ ]*\n"
        for line in shown.splitlines()
    ]
    return "".join(lines)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block printed; every one of them, and everything that it runs, is offline and configured by nothing."""
    script = "\n".join(f"{block.body}\necho '{MARK}' $?" for block, _ in steps())
    private = ("OPENAI_", "MARA_", "LANGSMITH_", "LANGCHAIN_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith((*private, "COLUMNS"))}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        cwd=tmp_path_factory.mktemp("tutorial"),
        env={
            **environment,
            "PATH": programs,
            "LANGSMITH_TRACING": "false",
            "HTTPS_PROXY": NOWHERE,
            "HTTP_PROXY": NOWHERE,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        timeout=600,
    )
    ended = re.split(rf"{MARK} (\d+)\n", done.stdout)
    outputs, codes = ended[:-1:2], ended[1::2]
    assert codes == ["0"] * len(steps()), done.stdout
    return outputs


@pytest.mark.slow
def test_each_block_prints_what_the_tutorial_shows(printed: list[str]) -> None:
    for (block, shown), output in zip(steps(), printed, strict=True):
        assert re.fullmatch(pattern_of(shown.body), output), f"line {block.line}: {output}"
