"""The doctor and the relationship graph: in step, behind, broken in what is derived, and broken for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.checks.doctor import RELATIONSHIPS, Finding, examine_workspace, repair_workspace
from graph.relationships.documents import relate
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import NodeType
from graph.storage.workspace import Workspace
from tests.damages import PASSAGES, damage_pages
from tests.relationship_graphs import sample_node

pytestmark = pytest.mark.usefixtures("no_embedder")


@pytest.fixture
def related(workspace: Workspace) -> Workspace:
    """A workspace whose relationship graph is in step."""
    with workspace.open_record() as record:
        relate(workspace, record)
    return workspace


def finding_of(workspace: Workspace) -> Finding:
    (finding,) = [finding for finding in examine_workspace(workspace.root).findings if finding.check == RELATIONSHIPS]
    return finding


def files_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*")}


def test_one_behind_is_brought_in_step(workspace: Workspace) -> None:
    assert finding_of(workspace).ok
    assert not files_of(workspace.root), "a workspace may have none"
    RelationshipRecord.of(workspace.root, create=True).close()
    behind = finding_of(workspace)
    assert (behind.ok, behind.repairable) == (True, True)
    _, done, after = repair_workspace(workspace.root)
    assert done == ["Brought the relationship graph in step with the passages"]
    assert after.ok
    before = files_of(workspace.root)
    in_step = finding_of(workspace)
    assert in_step.ok
    assert in_step.message.startswith(f"In step with the passages: {len(PASSAGES)} documents, ")
    assert files_of(workspace.root) == before


def test_what_was_derived_is_derived_again(related: Workspace) -> None:
    with RelationshipRecord.of(related.root) as record:
        record.put_node(sample_node(NodeType.MESSAGE, "m"))
    for damage in (
        "DELETE FROM document_chunk WHERE id = (SELECT min(id) FROM document_chunk)",
        "UPDATE document_chunk SET fingerprint = 'another'",
    ):
        with RelationshipRecord.of(related.root) as record:
            record.execute(damage)
        finding = finding_of(related)
        assert (finding.ok, finding.repairable) == (False, True)
        assert finding.examples
        repair_workspace(related.root)
        assert finding_of(related).ok
    with RelationshipRecord.of(related.root) as record:
        assert record.node(NodeType.MESSAGE, "m") is not None, "what people said is kept"


def test_a_damaged_file_is_named_and_keeps_nothing_else_from_repair(related: Workspace) -> None:
    path = related.root / RELATIONSHIPS_FILE
    for damage in (damage_pages, lambda path: path.write_bytes(b"no database at all" * 100)):
        damage(path)
        finding = finding_of(related)
        assert (finding.ok, finding.repairable) == (False, False)
        assert "backup" in finding.advice
        (related.root / "manifest.json").unlink()
        _, done, after = repair_workspace(related.root)
        assert (len(done), after.ok) == (1, False)
