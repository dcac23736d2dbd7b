"""A workspace's own types, kept in its record: what extraction and asking go by while no other file is given."""

from __future__ import annotations

from graph.errors import WorkspaceDamaged
from graph.own_types import OWN_TYPES, OwnTypes
from graph.storage.record import Record


def declared_types(record: Record) -> OwnTypes:
    """Return the own types of a workspace. Raises WorkspaceDamaged where its record holds something else."""
    try:
        return OwnTypes.from_json(record.note(OWN_TYPES))
    except ValueError as fault:
        raise WorkspaceDamaged(
            f"The own types in the record cannot be read ({fault})", "Index again with --types FILE"
        ) from fault


def declare_types(record: Record, types: OwnTypes) -> None:
    """Keep other own types, in a commit of its own; what is derived is then derived again."""
    record.change_setting(OWN_TYPES, types.to_json())
