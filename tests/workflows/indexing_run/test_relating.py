"""The relationship graph after each run: in step, or left as it is where a run says so, and no run is lost with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships.documents import is_in_step
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import NodeType
from graph.storage.workspace import Workspace
from tests.damages import damage_pages
from tests.workflows.workspaces import KARV, SUND, VELM, Indexer
from workflows.admin.removal import remove_passages
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
