"""``mara correct`` and ``mara correct review``: their grammar, what they print, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.command_line import Mara
from workflows.indexing import index_sources

ROWS = (
    '{"id": "p1", "title": "Velm", "text": "Velm is a river in Ostra. It flows into Lake Sund."}\n'
    '{"id": "p2", "title": "Lake-Sund", "text": "Lake-Sund is a lake in Ostra. It was dammed in 1911 by Ida Brandt."}\n'
)


@pytest.fixture
def sund(embedder: HashEmbedder, tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(ROWS, encoding="utf-8")
    index_sources([tmp_path / "corpus.jsonl"], tmp_path / "workspace")
    return tmp_path / "workspace"


def test_corrections_are_made_listed_and_undone(mara: Mara, sund: Path, tmp_path: Path) -> None:
    at = ("-w", sund)
    merged = mara("correct", "merge", "Lake Sund", "Lake-Sund", "--note", "one lake", *at)
    assert "merge  Lake Sund, Lake-Sund → Lake Sund (one lake)" in merged.out
    assert "1 passage changed" in merged.out
    mara("correct", "split", "Ostra", "--in", "p1", "--as", "Ostra (county)", *at)
    mara("correct", "split", "Velm", "Velma", *at)
    mara("correct", "fact", "Velm | flows into | Lake Sund", "--to", "Velm | leaves | Lake Sund", *at)
    mara("correct", "fact", "--drop", "Velm | is | river", "--in", "corpus.jsonl", *at)
    pinned = mara("correct", "fact", "Ida Brandt | dammed | Lake Sund", "--pin", "p2", "--relation", "temporal", *at)
    assert "Ida Brandt | dammed | Lake Sund (TEMPORAL) in p2" in pinned.out
    listed = mara("correct", "list", *at)
    kinds = [line.split()[1] for line in listed.out.splitlines()]
    assert kinds == ["merge", "split", "apart", "change", "drop", "pin"]
    assert mara("correct", "undo", "6", "4", *at).code == 0
    corrections = mara("correct", "list", "--json", *at).json["corrections"]
    assert [bool(each["undone_at"]) for each in corrections] == [False, False, False, True, False, True]
    assert "undone" in mara("correct", "list", *at).out
    assert "4 corrections and 2 that were undone" in mara("correct", "list", "--out", tmp_path / "c.jsonl", *at).out
    imported = mara("correct", "import", tmp_path / "c.jsonl", *at)
    assert imported.out.count("stands already") == 4
    assert "left out, as they were undone: 2" in imported.out


def test_one_that_is_about_nothing_says_so(mara: Mara, sund: Path) -> None:
    done = mara("correct", "merge", "Lake-Sund", "Lake Snud", "-w", sund)
    assert done.code == 0
    assert "no passage holds what it is about: it waits for one that does" in done.out
    assert "what answers quote of them, stay as they are" in done.out


def test_a_dry_run_shows_and_writes_nothing(mara: Mara, sund: Path) -> None:
    out = mara("correct", "merge", "Lake Sund", "Lake-Sund", "--dry-run", "-w", sund).out
    assert all(words in out for words in ("- Lake-Sund", "+ Lake Sund", "nothing was written"))
    assert "No correction" in mara("correct", "list", "-w", sund).out


def test_a_review_proposes_with_evidence_and_a_command(mara: Mara, sund: Path) -> None:
    out = mara("correct", "review", "-w", sund).out
    assert all(words in out for words in ("same letters", "mara correct merge '", "1 of 1 pairs that may be one"))
    proposals = mara("correct", "review", "--json", "-w", sund).json
    assert {*proposals["merges"][0]["names"]} == {"Lake Sund", "Lake-Sund"}


def test_a_file_that_cannot_be_read_is_bad_input(mara: Mara, sund: Path) -> None:
    refused = mara("correct", "import", "/nowhere.jsonl", "--json", "-w", sund).json["error"]
    assert (refused["kind"], refused["message"]) == ("BadInput", "/nowhere.jsonl: No such file or directory")
