"""The relationship graph after each run: in step, or left as it is where a run says so, and no run is lost with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import WorkspaceLocked
from graph.relationships.documents import is_in_step
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import NodeType
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder
from tests.damages import damage_pages
from tests.workflows.command_line import Mara
from tests.workflows.workspaces import KARV, SUND, VELM, Indexer, ask, use_embedder
from workflows.admin.removal import remove_passages
from workflows.indexing import reembed_workspace
from workflows.indexing_run import relating
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_indexes()


def documents(root: Path) -> list[str]:
    with RelationshipRecord.of(root) as record:
        return [node.id for node in record.nodes(NodeType.DOCUMENT)]


def in_step(root: Path) -> bool:
    with Workspace(root).open_record() as record, RelationshipRecord.of(root) as relationships:
        return is_in_step(relationships, record)


def test_a_run_counts_its_changes(index: Indexer, root: Path) -> None:
    first = index([VELM, SUND]).relationships
    assert (first["new"], first["changed"], first["gone"], first["chunks"]) == (2, 0, 0, 2)
    assert documents(root) == ["sund", "velm"]
    again = index([VELM, SUND]).relationships
    assert not any(again.values())
    changed = index([{**VELM, "text": "The Velm is a long river."}, KARV], sync=True).relationships
    assert (changed["new"], changed["changed"], changed["gone"]) == (1, 1, 1)
    assert documents(root) == ["karv", "velm"]


def test_a_run_may_leave_it_alone(index: Indexer, root: Path) -> None:
    report = index([VELM], settings=IndexingContext(relationships=False))
    assert report.relationships == {}
    assert not (root / RELATIONSHIPS_FILE).exists()
    index([VELM])
    index([VELM, SUND], settings=IndexingContext(relationships=False))
    assert documents(root) == ["velm"]
    assert index([VELM, SUND]).relationships["new"] == 1


def test_a_failure_is_reported_loses_nothing_and_is_made_good_by_the_next_run(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(workspace: Workspace, record: Record) -> None:
        raise WorkspaceLocked("relationships.sqlite is being written by another process", "Try again later")

    with monkeypatch.context() as patch:
        patch.setattr(relating, "relate", locked)
        report = index([VELM])
    assert report.added == 1
    assert str(report.relationships["problem"]).startswith("relationships.sqlite is being written by another process. ")
    assert [passage["id"] for passage in ask(root, "Velm")["passages"]] == ["velm"]
    assert index([VELM]).relationships["new"] == 1


def test_a_damaged_file_loses_no_run_which_says_how_to_mend_it(index: Indexer, root: Path) -> None:
    index([SUND])
    damage_pages(root / RELATIONSHIPS_FILE)
    report = index([SUND, VELM])
    assert report.passages == 2
    problem = str(report.relationships["problem"])
    assert "cannot be read" in problem
    assert problem.endswith("delete it: conversations and views in it are then lost")
    (root / RELATIONSHIPS_FILE).unlink()
    assert index([SUND, VELM]).relationships["new"] == 2


def test_removing_brings_it_in_step_and_makes_none(index: Indexer, root: Path) -> None:
    index([VELM, SUND, KARV], settings=IndexingContext(relationships=False))
    assert remove_passages(root, ["karv"])["relationships"] == {}
    assert not (root / RELATIONSHIPS_FILE).exists()
    index([VELM, SUND])
    remove_passages(root, ["sund"])
    assert documents(root) == ["velm"]
    remove_passages(root, ["velm"])
    assert documents(root) == []
    assert in_step(root)


def test_a_removed_passage_is_in_no_byte_of_the_file(index: Indexer, root: Path) -> None:
    index([VELM, {**SUND, "title": "A secret lake"}])
    assert any(b"A secret lake" in path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*"))
    remove_passages(root, ["sund"])
    assert not any(b"A secret lake" in path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*"))


def test_embedding_again_names_the_other_store(index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index([VELM])
    use_embedder(monkeypatch, HashEmbedder("other"))
    assert reembed_workspace(root)["relationships"]["chunks"] == 0
    with RelationshipRecord.of(root) as record:
        assert [node.id for node in record.nodes(NodeType.VECTOR_STORE)] == ["other"]
    assert in_step(root)


def test_the_command_line_says_what_went_wrong(mara: Mara, root: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps(VELM) + "\n")
    assert mara("index", corpus, "-w", root, "--no-relationships").code == 0
    (root / RELATIONSHIPS_FILE).write_bytes(b"no database at all" * 100)
    done = mara("index", corpus, "-w", root)
    assert done.code == 0
    assert "the relationship graph is not in step:" in done.out
