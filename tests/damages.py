"""Workspaces to damage, and what an examination of them says."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from graph.checks import doctor
from graph.checks.doctor import Examination
from graph.construction.knowledge_graph import load
from graph.embedding import embeddings
from graph.publish.chroma_store import ChromaSet
from graph.publish.generation_vectors import open_vectors
from graph.storage.workspace import Workspace
from tests.builders import TripleParts, passage_of

PASSAGES = [passage_of(key, f"Title {key}", f"{key} is text", year=1900) for key in ("ab", "cd", "ef", "gh")]
TRIPLES: dict[str, list[TripleParts]] = {passage.id: [(f"{passage.id} thing", "is", "text")] for passage in PASSAGES}

Damage = Callable[[Workspace], object]
"""Something bad that happens to a workspace."""


def refuse_to_embed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be embedded but by the tests' own builders."""

    def refuse(*configured: object) -> NoReturn:
        raise AssertionError("an embedding model was asked for")

    monkeypatch.setattr(embeddings, "_embedder", refuse)


def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the process that tries a search index before it is read: it takes a second to start."""
    monkeypatch.setattr(doctor, "why_unreadable", lambda *asked: "")


def problems(found: Examination) -> dict[str, bool]:
    """Return {check: whether it can be repaired} of what is not in order."""
    return {finding.check: finding.repairable for finding in found.findings if not finding.ok}


def said(found: Examination, check: str) -> str:
    """Return what a check says, with its advice and examples."""
    finding = next(finding for finding in found.findings if finding.check == check)
    return " ".join([finding.message, finding.advice, *finding.examples])


def tidyings(found: Examination) -> set[str]:
    """Return the checks that found something that nobody needs."""
    return {finding.check for finding in found.findings if finding.ok and finding.repairable}


def everything_in(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return time of change and content of everything in a folder, and of the folder."""
    paths = [root, *root.rglob("*")]
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


def damage_record(workspace: Workspace, sql: str, *parameters: object) -> None:
    """Write to the record as no writer would."""
    with closing(sqlite3.connect(workspace.record_path)) as db, db:
        assert db.execute(sql, parameters).rowcount > 0


def published(workspace: Workspace) -> Path:
    """Return the folder of the published generation."""
    return workspace.index_folder(workspace.current() or 0)


def with_store(workspace: Workspace, change: Callable[[ChromaSet], object]) -> None:
    """Do something to the vectors of the published generation, which lie in Chroma."""
    with workspace.open_record() as record:
        vectors = open_vectors(workspace, record.workspace_id, load(published(workspace)))
    own = vectors._own
    assert vectors._base is None, "in layers"
    assert isinstance(own, ChromaSet)
    try:
        change(own)
    finally:
        vectors.close()


def garbage(path: str) -> Damage:
    """Write rubbish over a file, or over those that a pattern names."""

    def overwrite(workspace: Workspace) -> None:
        found = [*workspace.root.glob(path)]
        assert found
        for each in found:
            each.write_bytes(b"garbage" * 100)

    return overwrite


def gone(path: str) -> Damage:
    """Delete a file or a folder."""

    def remove(workspace: Workspace) -> None:
        found = workspace.root / path
        shutil.rmtree(found) if found.is_dir() else found.unlink()

    return remove


def truncated(path: str) -> Damage:
    """Cut a file in the middle."""

    def cut(workspace: Workspace) -> None:
        content = (workspace.root / path).read_bytes()
        (workspace.root / path).write_bytes(content[: len(content) // 2])

    return cut


def damage_pages(path: Path, table: str = "document_chunk") -> None:
    """Overwrite the first pages of a table and its indexes in a SQLite file, which can still be opened."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = db.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = ?", (table,)).fetchall()
        ((size,),) = db.execute("PRAGMA page_size")
    with path.open("r+b") as file:
        for (page,) in pages:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
