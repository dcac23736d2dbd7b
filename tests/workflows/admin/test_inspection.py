"""The numbers of a workspace: counts that agree with its graph and with the report of its indexing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pytest

from graph.construction.knowledge_graph import SNAPSHOT_VERSION
from graph.embedding import embeddings
from graph.errors import DependencyMissing, WorkspaceMissing
from graph.publish.derive import publish
from graph.relationships.record import RELATIONSHIPS_FILE
from graph.schema import Extraction, Passage
from graph.storage.record import FORMAT_VERSION
from graph.storage.workspace import Workspace
from graph.storage.writer import Writer
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, write_passages
from tests.cases import mostly_slow
from tests.damages import damage_pages
from tests.workflows.workspaces import KARV, ROWS, Indexer, content_of, use_embedder
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


@pytest.mark.usefixtures("embedder")
def test_degrees_and_components_are_those_of_the_edges(index: Indexer, root: Path) -> None:
    index([*ROWS, {"id": "a", "text": "very slowly indeed"}])
    stats = workspace_stats(root)
    source, target = content_of(root)["edges"][:2]
    n_nodes = stats["entities"] + stats["passages"]
    degree = sorted(filter(None, ([*source, *target].count(node) for node in range(n_nodes))))
    assert stats["degree"]["min"] == degree[0]
    assert stats["degree"]["max"] == degree[-1]
    assert stats["degree"]["mean"] == pytest.approx(sum(degree) / len(degree), abs=0.01)
    assert degree[len(degree) // 2] >= stats["degree"]["median"] >= degree[(len(degree) - 1) // 2]
    assert stats["degree"]["median"] <= stats["degree"]["p95"] <= stats["degree"]["max"]
    assert stats["isolated"] == {"entities": n_nodes - 1 - len(degree), "passages": 1}
    parts = [{a, b} for a, b in zip(source, target, strict=True)]
    components: list[set[int]] = []
    for part in parts:
        touching = [each for each in components if each & part]
        components = [each for each in components if not each & part] + [part.union(*touching)]
    assert stats["components"]["count"] == len(components)
    assert stats["components"]["largest_share"] == pytest.approx(max(map(len, components)) / n_nodes, abs=1e-4)


def test_a_workspace_that_is_none_or_holds_nothing_is_said(tmp_path: Path, root: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="mara index"):
        workspace_stats(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    Workspace(root).create()
    with pytest.raises(WorkspaceMissing, match="holds no passage"):
        workspace_stats(root)


@pytest.mark.usefixtures("embedder")
def test_models_and_servers_are_named_and_neither_asked_nor_needed(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*configured: object) -> NoReturn:
        raise DependencyMissing("The weights are not installed")

    index([KARV])
    assert workspace_stats(root)["formats"] == {"record": FORMAT_VERSION, "snapshot": SNAPSHOT_VERSION}
    other = HashEmbedder("another")
    use_embedder(monkeypatch, other)
    assert workspace_stats(root)["models"] == {"embedding": "hash", "configured": "another", "store": "embedded"}
    assert not other.asked
    monkeypatch.setenv("MARA_VECTORS", "chroma+http://name:secret@127.0.0.1:9")
    assert workspace_stats(root)["models"]["store"] == "http://127.0.0.1:9"
    monkeypatch.setattr(embeddings, "_embedder", missing)
    assert workspace_stats(root)["models"]["configured"] == "none (The weights are not installed)"


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
        assert list(stats["largest_sources"].items()) == [("a.txt", 3), ("b.txt", 1), ("f.txt", 1)]
        assert stats["extractors"] == {"m": 4, "offline": 1}
        assert stats["untyped_facts"] == 5
        assert stats["notes"] == {"overlong_name": 1, "triples without a cue": 3, "untyped": 2}
        assert stats["failed_passages"] == 3
        assert stats["failures"] == {"no JSON": 2, "timeout": 1}
        assert stats["long_passages"] == 1


class TestTheDisk:
    @pytest.mark.usefixtures("embedder")
    def test_what_takes_up_how_much(self, index: Indexer, root: Path) -> None:
        index([KARV])
        shutil.copytree(root / "index" / "1", root / "index" / "0")
        (root / "replies.sqlite-wal").write_bytes(b"x" * 1234)
        sizes = workspace_stats(root)["bytes"]
        assert sizes["record"] >= (root / "record.sqlite").stat().st_size
        assert sizes["replies"] == 1234
        assert 0 < sizes["words"] < sizes["older generations"]
        assert sizes["vectors"] > sizes["snapshot"] > 0
        assert sizes.pop("all") == sum(sizes.values())
        assert sum(sizes.values()) == sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


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
