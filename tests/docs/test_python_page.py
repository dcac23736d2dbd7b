"""The examples of the page on Python run, one after the other, as they stand there."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks, read
from workflows.admin.demo import run_demo
from workflows.indexing import no_progress
from workflows.runtime.resources import close_indexes

PAGE = ROOT / "docs" / "python.md"


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the sample workspace in it."""
    monkeypatch.chdir(tmp_path)
    run_demo(Path(".mara-demo"), no_progress)
    yield tmp_path
    close_indexes()


@pytest.mark.slow
def test_the_examples_run(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = sample / "examples.py"
    script.write_text("\n".join(b.body for b in blocks(read(PAGE)) if b.kind == "python"), encoding="utf-8")
    capsys.readouterr()
    made: dict[str, Any] = runpy.run_path(str(script))
    assert "1933" in made["result"]["answer"]
    assert [type(result) for result in made["results"]] == [dict, dict]
    assert made["without_beta"]["relation_factors"] is None
    assert "1933" in made["chain"].invoke("When was Nissan founded?").to_string()
    assert made["result"]["answer"] in capsys.readouterr().out
