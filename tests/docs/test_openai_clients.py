"""The examples for clients of OpenAI's API run."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, read
from tests.workflows.serving.page.site import on_a_port, site_of
from workflows.admin.demo import run_demo
from workflows.indexing import no_progress
from workflows.runtime.resources import close_indexes

PAGE = read(ROOT / "docs" / "chat.md")
ADDRESS = "http://127.0.0.1:8700"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the sample workspace."""
    run_demo(tmp_path / "workspace", no_progress)
    with on_a_port(site_of(tmp_path / "workspace", tmp_path)) as served:
        yield served
    close_indexes()


@pytest.mark.slow
def test_the_examples_run(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = [block.body for block in blocks(PAGE) if block.kind == "python" and ADDRESS in block.body]
    assert len(examples) == 2
    for example in examples:
        assert f'"{ADDRESS}/v1"' in example
        (tmp_path / "example.py").write_text(example.replace(ADDRESS, address), encoding="utf-8")
        capsys.readouterr()
        runpy.run_path(str(tmp_path / "example.py"))
        told = capsys.readouterr().out
        assert "1933" in told
        assert "**Sources**\n\n- [1] Nissan · `corpus.jsonl`" in told
