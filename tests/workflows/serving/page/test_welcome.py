"""The first screen: what a workspace holds of what its visitor sees, and questions made from that alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from agents.offline.extractor import OfflineExtractor
from tests.workflows.serving.page.site import KeyRack, Visitor, site_of, visitor
from tests.workflows.workspaces import BRANDT, KARV, SUND, VELM
from workflows.access.identity import Identity, Keyring
from workflows.indexing import index_sources

DAM = {"id": "dam", "title": "Tarn Dam", "text": "The Tarn Dam was designed by Ida Brandt in 1911."}
BANK = {"id": "bank", "title": "Marn (town)", "text": "Marn was founded in 1203. It is the capital of Ostra."}
TRIPLES = {
    "velm": [["Velm", "flows into", "Lake Sund"]],
    "dam": [["Tarn Dam", "designed by", "Ida Brandt"], ["Tarn Dam", "opened", "1911"]],
    "brandt": [["Ida Brandt", "born in", "Karv"]],
    "bank": [["Marn", "founded in", "1203"], ["Marn", "capital of", "Ostra"], ["Marn", "went", "well"]],
    "karv": [["Karv", "founded in", "1203"]],
}


@pytest.fixture
def site_with(hashing: None, tmp_path: Path) -> Any:
    """Indexes rows with their triples; returns a visitor's way to the page of them, by who they are."""

    def made(*rows: dict[str, str], identity: Identity | None = None) -> Visitor:
        corpus, triples = tmp_path / "corpus.jsonl", tmp_path / "triples.jsonl"
        corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        of_rows = [{"id": row["id"], "triples": TRIPLES.get(row["id"], [])} for row in rows]
        triples.write_text("\n".join(map(json.dumps, of_rows)), encoding="utf-8")
        index_sources([corpus], tmp_path / "workspace", triples)
        if identity is None:
            return visitor(site_of(tmp_path / "workspace", tmp_path))
        rack = cast(Keyring, KeyRack(key=identity))
        asking = visitor(site_of(tmp_path / "workspace", tmp_path, keyring=lambda: rack))
        asking.headers["Authorization"] = "Bearer key"
        return asking

    return made


def test_it_counts_passages_and_documents_and_asks_four_questions(site_with: Any) -> None:
    me = site_with(VELM, SUND, DAM, BRANDT, KARV, BANK)
    told = me.get("welcome")
    assert site_with(VELM, SUND, DAM, BRANDT, KARV, BANK).get("welcome") == told
    assert (told["passages"], told["documents"], told["unread"]) == (6, 6, 0)
    assert len(told["questions"]) == 4
    single = {
        "Who designed the Tarn Dam?",
        "Where was Ida Brandt born?",
        "When was Marn founded?",
        "What is Marn the capital of?",
        "What does the Velm flow into?",
    }
    assert set(told["questions"]) <= single


def test_whoever_sees_a_part_is_told_of_that_part_alone(site_with: Any) -> None:
    rows = [{**row, "tenant": "a" if row in (DAM, BANK) else "b"} for row in (VELM, DAM, BRANDT, BANK)]
    told = site_with(*rows, identity=Identity("anna", where={"tenant": "a"})).get("welcome")
    assert (told["passages"], told["documents"]) == (2, 2)
    assert told["questions"]
    assert not [each for each in told["questions"] if "Velm" in each or "born" in each or "Brandt" in each]


def test_files_that_could_not_be_read_are_counted(hashing: None, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "mill.md").write_text("# Mill\n\nThe mill was built by Ida Brandt in 1874.", encoding="utf-8")
    (folder / "lease.pdf").write_bytes(b"no PDF")
    index_sources([folder], tmp_path / "workspace", extractor=OfflineExtractor())
    told = visitor(site_of(tmp_path / "workspace", tmp_path)).get("welcome")
    assert (told["passages"], told["documents"], told["unread"]) == (1, 1, 1)
