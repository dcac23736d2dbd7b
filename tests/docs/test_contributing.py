"""The page for contributors names files, commands and benchmarks that exist."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks, inline_code, read

PAGE = read(ROOT / "docs" / "contributing.md")
IN_PROSE = set(inline_code(PAGE))
IN_SHELL = {word for block in blocks(PAGE) for word in block.body.split()}
PATH = re.compile(r"\.?\w[\w.-]*(?:/[\w.-]*)+|[\w-]+\.(?:md|toml|json|lock|cff)")
"""Of a function, a constant or a class."""
MADE = {"build/site", "dist/", "results.jsonl"}
"""What commands write."""


def named_paths() -> set[str]:
    return {code for code in IN_PROSE if PATH.fullmatch(code)} - MADE | {w for w in IN_SHELL if w.startswith("tests/")}


def test_every_path_exists() -> None:
    assert len(named_paths()) > 50
    assert [name for name in named_paths() if not (ROOT / name).exists()] == []


def test_every_target_of_make_and_every_benchmark_exists() -> None:
    given = {target for line in re.findall(r"\bmake ((?:[\w-]+ ?)+)[`\n]", PAGE) for target in line.split()}
    assert {"test", "test-slow", "lint"} <= given
    assert given <= set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    benchmarks = set(re.findall(r"`benchmarks\.(\w+)`", PAGE))
    assert len(benchmarks) > 20
    runs = [ROOT / "benchmarks" / name / "__main__.py" for name in benchmarks]
    runs = [run if run.exists() else run.parent.with_suffix(".py") for run in runs]
    assert [run.name for run in runs if "__main__" not in read(run)] == []
