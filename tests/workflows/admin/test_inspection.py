"""The numbers of a workspace: counts that agree with its graph and with the report of its indexing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graph.errors import WorkspaceMissing
from graph.publish.derive import publish
from graph.relationships.record import RELATIONSHIPS_FILE
from graph.schema import Extraction, Passage
from graph.storage.workspace import Workspace
from graph.storage.writer import Writer
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, write_passages
from tests.cases import mostly_slow
from tests.damages import damage_pages
from tests.workflows.workspaces import KARV, ROWS, Indexer, use_embedder
from workflows.admin.inspection import workspace_stats


def test_a_relationship_graph_that_cannot_be_read_leaves_the_numbers_of_the_index(
    index: Indexer, root: Path, embedder: HashEmbedder
) -> None:
    index(ROWS)
    damage_pages(root / RELATIONSHIPS_FILE)
    damaged = workspace_stats(root)
    (root / RELATIONSHIPS_FILE).write_bytes(b"no database at all" * 100)
    for stats in (damaged, workspace_stats(root)):
        assert stats["passages"] == len(ROWS)
        assert stats["relationships"].keys() == {"problem"}
        assert "delete it" in stats["relationships"]["problem"]


def test_a_workspace_that_is_none_or_holds_nothing_is_said(tmp_path: Path, root: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="mara index"):
        workspace_stats(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    Workspace(root).create()
    with pytest.raises(WorkspaceMissing, match="holds no passage"):
        workspace_stats(root)


@pytest.mark.usefixtures("embedder")
def test_model_and_server_are_named_and_neither_asked_nor_needed(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index([KARV])
    other = HashEmbedder("another")
    use_embedder(monkeypatch, other)
    assert (workspace_stats(root)["embedding"], workspace_stats(root)["store"]) == ("hash", "embedded")
    assert not other.asked
    monkeypatch.setenv("MARA_VECTORS", "chroma+http://name:secret@127.0.0.1:9")
    assert workspace_stats(root)["store"] == "http://127.0.0.1:9"


class TestTheRecord:
    """Counts of what the passages came from, and of what went wrong with them."""

    ENTRIES: ClassVar = [
        (passage_of("a", "A", "x " * 600, document="d", chunk=0), {"untyped": 2}, "offline", ""),
        (
            passage_of("b", "A", "text", document="d", chunk=1),
            {"triples without a cue": 3, "overlong_name": 1},
            "m",
            "",
        ),
        (Passage("c", "C", "text", "a.txt"), {}, "m", "no JSON"),
        (Passage("e", "E", "text", "a.txt"), {}, "m", "no JSON"),
        (Passage("f", "F", "text", "f.txt"), {}, "m", "timeout"),
    ]

    @pytest.fixture
    def stats(self, root: Path) -> dict[str, Any]:
        workspace = Workspace(root)
        workspace.create()
        with workspace.writing(), workspace.open_record() as record:
            Writer(record, HashEmbedder()).write(
                [(passage, Extraction((), (), who, notes, why)) for passage, notes, who, why in self.ENTRIES]
            )
            publish(workspace, record)
        return workspace_stats(root)

    def test_sources_documents_and_extraction(self, stats: dict[str, Any]) -> None:
        assert (stats["documents"], stats["sources"]) == (4, 3)
        assert stats["extractors"] == {"m": 4, "offline": 1}
        assert stats["notes"] == {"overlong_name": 1, "triples without a cue": 3, "untyped": 2}
        assert stats["failures"] == {"no JSON": 2, "timeout": 1}


class TestGenerations:
    @pytest.mark.usefixtures("embedder")
    def test_while_another_process_writes_the_published_one_is_told(self, index: Indexer, root: Path) -> None:
        index([KARV])
        workspace = Workspace(root)
        with Child(HOLD_LOCK, root) as writer, workspace.open_record() as record:
            assert writer.hear() == "locked"
            record.mark_complete(False)
            write_passages(record, [passage_of("new", "New", "text")], {}, HashEmbedder())
            stats = workspace_stats(root)
        assert (stats["passages"], stats["complete"]) == (1, False)
        assert stats["record_generation"] == stats["generation"] + 1

    @pytest.mark.usefixtures("embedder")
    @pytest.mark.parametrize("lost", mostly_slow(["index/1/edge_kind.npy", "CURRENT", "index"], 1))
    def test_one_that_cannot_be_read_is_derived_again(self, index: Indexer, root: Path, lost: str) -> None:
        report = index([KARV])
        shutil.rmtree(root / lost) if lost == "index" else (root / lost).unlink()
        stats = workspace_stats(root)
        assert (stats["passages"], stats["edges"]) == (1, report.edges)
        assert stats["generation"] == stats["record_generation"]
