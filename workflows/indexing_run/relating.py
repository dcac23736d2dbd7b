"""Bringing the relationship graph in step after documents were written: a failure is told, and loses nothing else."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from graph.errors import MaraError, WorkspaceDamaged
from graph.relationships.documents import relate
from graph.relationships.record import has_relationships
from graph.server_clients import told
from graph.storage.record import Record
from graph.storage.workspace import Workspace

MENDING = "The next run brings it in step, and so does `mara doctor --repair`"


def related(workspace: Workspace, record: Record) -> dict[str, Any]:
    """Bring the relationship graph in step with what was published, and return what changed as plain values.

    Where that fails, ``problem`` says why: the passages are written and can be asked all the same. The caller holds
    the writer's lock.
    """
    try:
        return asdict(relate(workspace, record))
    except WorkspaceDamaged as fault:
        return {"problem": told(f"{fault.message}. {fault.hint}")}
    except MaraError as fault:
        return {"problem": told(f"{fault.message}. {MENDING}")}


def related_if_there(workspace: Workspace, record: Record) -> dict[str, Any]:
    """Do as `related` where the workspace has a relationship graph; nothing where it has none."""
    return related(workspace, record) if has_relationships(workspace.root) else {}
