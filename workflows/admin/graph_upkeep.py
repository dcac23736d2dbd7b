"""Evaluating and pruning the relationship graph of a workspace, told as plain values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph.relationships.record import RelationshipRecord
from graph.relationships.upkeep import evaluate, prune, restore
from graph.storage.workspace import Workspace
from workflows.indexing_run.relating import related


def evaluate_graph(root: Path) -> dict[str, Any]:
    """Return how many nodes and edges there are, and what the derived edges are worth.

    Raises:
        BadInput: the workspace has no relationship graph.
    """
    with RelationshipRecord.of(root) as record:
        values = [asdict(each) for each in evaluate(record)]
        return {"workspace": str(root), "counts": record.counts(), "values": values}


def prune_graph(root: Path, below: float, *, dry_run: bool) -> dict[str, Any]:
    """Remove the derived edges that are worth less than ``below``, or tell which would go.

    Raises:
        BadInput: ``below`` is not within [0, 1], or the workspace has no relationship graph.
        WorkspaceLocked: another process is writing.
    """
    with RelationshipRecord.of(root) as record:
        done = prune(record, below, dry_run=dry_run)
    return {"workspace": str(root), "below": below, "dry_run": dry_run, "types": [asdict(each) for each in done]}


def restore_graph(root: Path) -> dict[str, Any]:
    """Bring all pruned edges back.

    Raises:
        BadInput: the workspace has no relationship graph.
        WorkspaceLocked: another process is writing.
    """
    workspace = Workspace(root)
    with workspace.writing() as lease, workspace.open_record(lease) as passages:
        with RelationshipRecord.of(root) as record:
            restored = restore(record)
        changes = related(workspace, passages) if restored else {}
    return {"workspace": str(root), "restored": restored, "relationships": changes}
