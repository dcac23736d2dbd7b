"""``mara ask --explain``: the answer first, and beside it a file that explains it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripted_server import ScriptedServer
from tests.workflows.command_line import Mara
from tests.workflows.small_world import well_behaved

QUESTION = "Where was the engineer born who dammed Lake Sund?"


def test_a_page_is_written_beside_the_answer(mara: Mara, workspace: Path, tmp_path: Path) -> None:
    shown = mara("ask", QUESTION, "-w", workspace, "--explain", tmp_path / "why.html")
    assert shown.code == 0
    assert "Karv" in shown.out
    assert shown.err.splitlines()[1:] == [f"explained in {tmp_path / 'why.html'}"]
    assert (tmp_path / "why.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_what_cannot_be_written_is_refused_before_anything_is_asked(
    mara: Mara, workspace: Path, tmp_path: Path, chat_server: ScriptedServer
) -> None:
    (tmp_path / "folder.html").mkdir()
    chat_server.script(well_behaved())
    for name in ("why.txt", "why", "nowhere/why.html", "folder.html"):
        shown = mara("ask", QUESTION, "-w", workspace, "--explain", tmp_path / name)
        assert (shown.code, shown.out) == (2, ""), name
        assert shown.err.startswith("Error: "), name
        assert chat_server.requests == [], name
        assert [path.name for path in tmp_path.iterdir()] == ["folder.html"], name


def test_an_answer_is_shown_although_it_cannot_be_explained(
    mara: Mara, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workflows.explaining.write_atomically", full)
    asked = mara("ask", QUESTION, "-w", workspace, "--json", "--explain", tmp_path / "why.html")
    assert asked.code == 2
    assert "Karv" in asked.json["answer"]
    assert "No space left on device" in asked.err


def test_nodes_without_an_explanation_are_bad_input(mara: Mara, workspace: Path) -> None:
    shown = mara("ask", QUESTION, "-w", workspace, "--explain-nodes", "5")
    assert shown.code == 2
    assert "--explain" in shown.err
