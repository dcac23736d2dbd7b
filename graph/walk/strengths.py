"""Tuning: multipliers on the strength of relation types, learned from marks, which can be taken back.

One multiplier stands for a relation type, whichever side its edges are left from. Version 0 is the walk untuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from graph.construction.edges import EDGE_KINDS
from graph.errors import WorkspaceDamaged
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationType
from graph.storage.workspace import write_atomically
from graph.walk.factors import EdgeFactors

TUNING_FILE = "tuning.json"
"""The tuning's file in a workspace."""

TUNED_RELATIONS: tuple[RelationType, ...] = (*ENTITY_RELATIONS, RelationType.SYNONYMY, *PASSAGE_RELATIONS)
"""The built-in relation types that have a strength, in order; a graph's own types follow them."""


def tuned_relations(among: Iterable[RelationType]) -> tuple[RelationType, ...]:
    """Return the relation types that have a strength, where these are among them: own ones last, by name."""
    return (*TUNED_RELATIONS, *sorted(relation for relation in among if relation.is_own))


WEAKEST, STRONGEST = 0.25, 4.0
"""No strength lies beyond these."""


class Tuning(BaseModel):
    """Strengths of relation types.

    Attributes:
        version: counts the tunings of a workspace from 1; 0 is untuned.
        strengths: one multiplier in [`WEAKEST`, `STRONGEST`] a relation type; others have 1.
        recall_before: held-out recall of the strengths before.
        recall_after: held-out recall of these strengths.
    """

    model_config = ConfigDict(frozen=True)

    version: int
    strengths: dict[RelationType, Annotated[float, Field(ge=WEAKEST, le=STRONGEST, allow_inf_nan=False)]]
    recall_before: float | None = None
    recall_after: float | None = None


UNTUNED = Tuning(version=0, strengths={})
"""Version 0 of every workspace."""


class _Stored(BaseModel):
    """The file: the number of the current version, and the versions that it may be beside 0."""

    format_version: Literal[1] = 1
    current: int
    versions: tuple[Tuning, ...]


def tuned(
    factors: EdgeFactors, strengths: Mapping[RelationType, float], own: Sequence[RelationType] = ()
) -> EdgeFactors:
    """Return factors with each kind's multiplied by its relation type's strength, on both sides.

    Args:
        factors: of the kinds of edges that a graph with these own types has.
        strengths: by relation type; one that is not there is 1.
        own: the graph's own relation types.
    """
    relations = (*(kind.relation for kind in EDGE_KINDS), *own)
    by_kind = np.array([strengths.get(relation, 1.0) for relation in relations])
    return replace(factors, from_entity=factors.from_entity * by_kind, from_passage=factors.from_passage * by_kind)


def workspace_tuning(root: Path) -> Tuning:
    """Return a workspace's current tuning. Raises WorkspaceDamaged where it cannot be read."""
    stored = _read(root)
    return next((each for each in stored.versions if each.version == stored.current), UNTUNED)


def adopt(root: Path, strengths: Mapping[RelationType, float], recall_before: float, recall_after: float) -> Tuning:
    """Make strengths the current ones of a workspace. Raises WorkspaceDamaged where the file cannot be read."""
    number = max((each.version for each in _read(root).versions), default=0) + 1
    made = Tuning(version=number, strengths=dict(strengths), recall_before=recall_before, recall_after=recall_after)
    _write(root, _Stored(current=number, versions=(made,)))
    return made


def revert(root: Path) -> None:
    """Let a workspace be untuned again. Raises WorkspaceDamaged where the file cannot be read."""
    if (stored := _read(root)).current:
        _write(root, stored.model_copy(update={"current": 0}))


def _read(root: Path) -> _Stored:
    path = root / TUNING_FILE
    try:
        return _Stored.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return _Stored(current=0, versions=())
    except (OSError, ValueError) as fault:
        raise WorkspaceDamaged(
            f"{path} cannot be read ({fault})", "Restore it from a backup, or delete it: the walk is then untuned"
        ) from fault


def _write(root: Path, stored: _Stored) -> None:
    write_atomically(root / TUNING_FILE, stored.model_dump_json(indent=2) + "\n")
