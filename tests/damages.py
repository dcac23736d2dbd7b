"""Workspaces to damage, and what an examination of them says."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from graph.checks import search_files
from graph.checks.doctor import Examination
from graph.embedding import embeddings
from graph.publish.search_indexes import open_store
from graph.publish.vector_store import VectorStore
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
    monkeypatch.setattr(search_files, "why_unreadable", lambda *asked: "")


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


def rename_passage(record: Path, old: str, new: str) -> None:
    """Give a passage another id, with what refers to it, as versions did that took any."""
    with closing(sqlite3.connect(record)) as db, db:
        for table, column in (("passages", "id"), ("passage_names", "passage_id"), ("passage_facts", "passage_id")):
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, old))


def published(workspace: Workspace) -> Path:
    """Return the folder of the published generation."""
    return workspace.index_folder(workspace.current() or 0)


def with_store(workspace: Workspace, change: Callable[[VectorStore], object]) -> None:
    """Do something to the search index of the published generation."""
    with workspace.open_record() as record:
        store = open_store(workspace, record.workspace_id, workspace.current() or 0)
    assert isinstance(store, VectorStore), "in layers"
    try:
        change(store)
    finally:
        store.close()


def garbage(path: str) -> Damage:
    """Write rubbish over a file."""
    return lambda workspace: (workspace.root / path).write_bytes(b"garbage" * 100)


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
