"""The doctor and the relationship graph: in step, behind, broken in what is derived, and broken for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.checks.doctor import RELATIONSHIPS, examine_workspace, repair_workspace
from graph.checks.findings import Finding
from graph.relationships.documents import relate
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import NodeType
from graph.storage.workspace import Workspace
from tests.builders import publish_workspace
from tests.damages import PASSAGES, TRIPLES, damage_pages
from tests.relationship_graphs import sample_node

pytestmark = pytest.mark.usefixtures("no_embedder")


@pytest.fixture
def related(workspace: Workspace) -> Workspace:
    """A workspace whose relationship graph is in step."""
    with workspace.open_record() as record:
        relate(workspace, record)
    return workspace


def finding_of(workspace: Workspace) -> Finding:
    (found,) = [finding for finding in examine_workspace(workspace.root).findings if finding.check == RELATIONSHIPS]
    return found


def files_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*")}


def test_a_workspace_may_have_none(workspace: Workspace) -> None:
    assert finding_of(workspace).ok
    assert not (workspace.root / RELATIONSHIPS_FILE).exists()


def test_one_in_step_is_told_in_numbers_and_not_written(related: Workspace) -> None:
    before = files_of(related.root)
    found = finding_of(related)
    assert found.ok
    assert found.message.startswith(f"In step with the passages: {len(PASSAGES)} documents, ")
    assert files_of(related.root) == before


def test_one_behind_is_brought_in_step(workspace: Workspace) -> None:
    RelationshipRecord.of(workspace.root, create=True).close()
    found = finding_of(workspace)
    assert (found.ok, found.repairable) == (True, True)
    _, done, after = repair_workspace(workspace.root)
    assert done == ["Brought the relationship graph in step with the passages"]
    assert after.ok
    assert finding_of(workspace).message.startswith("In step")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM document_chunk WHERE id = (SELECT min(id) FROM document_chunk)",
        "DELETE FROM chunk_of WHERE source = (SELECT min(key) FROM document_chunk)",
        "UPDATE document_chunk SET fingerprint = 'another'",
    ],
)
def test_what_was_derived_is_derived_again(related: Workspace, damage: str) -> None:
    with RelationshipRecord.of(related.root) as record:
        record.put_node(sample_node(NodeType.MESSAGE, "m"))
        record.execute(damage)
    found = finding_of(related)
    assert (found.ok, found.repairable) == (False, True)
    assert found.examples
    repair_workspace(related.root)
    assert finding_of(related).ok
    with RelationshipRecord.of(related.root) as record:
        assert record.node(NodeType.MESSAGE, "m") is not None, "what people said is kept"


def test_a_file_that_cannot_be_read_is_named_and_keeps_nothing_else_from_repair(related: Workspace) -> None:
    (related.root / RELATIONSHIPS_FILE).write_bytes(b"no database at all" * 100)
    found = finding_of(related)
    assert (found.ok, found.repairable) == (False, False)
    assert "backup" in found.advice
    (related.root / "manifest.json").unlink()
    _, done, _ = repair_workspace(related.root)
    assert done == ["Wrote manifest.json again"]


def test_a_file_of_which_pages_are_damaged_is_told_and_not_repaired(related: Workspace) -> None:
    damage_pages(related.root / RELATIONSHIPS_FILE)
    found = finding_of(related)
    assert (found.ok, found.repairable) == (False, False)
    assert "backup" in found.advice
    _, done, after = repair_workspace(related.root)
    assert (done, after.ok) == ([], False)


def test_deriving_the_index_again_keeps_it_in_step(related: Workspace) -> None:
    folder = related.index_folder(related.current() or 0)
    (folder / "edge_kind.npy").write_bytes(b"broken")
    _, done, after = repair_workspace(related.root)
    assert done[-1] == "Brought the relationship graph in step with the passages" or done[-2].startswith("Brought")
    assert after.ok
    assert finding_of(related).message.startswith("In step")


def test_another_workspace_of_the_same_name_is_not_in_step(related: Workspace, tmp_path: Path) -> None:
    other = publish_workspace(tmp_path / "other", PASSAGES, TRIPLES)
    (other.root / RELATIONSHIPS_FILE).write_bytes((related.root / RELATIONSHIPS_FILE).read_bytes())
    assert finding_of(other).repairable
