"""Tuning: multipliers on the strength of relation types, learned from marks; versioned and reversible.

One multiplier stands for a relation type, whichever side its edges are left from. Version 0 is the walk untuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass as checked_dataclass

from graph.construction.edges import EDGE_KINDS
from graph.errors import BadInput, WorkspaceDamaged, WorkspaceLocked
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationType
from graph.storage.lock import alone
from graph.storage.workspace import write_atomically
from graph.walk.factors import EdgeFactors

TUNING_FILE = "tuning.json"
"""The history's file in a workspace."""

TUNED_RELATIONS: tuple[RelationType, ...] = (*ENTITY_RELATIONS, RelationType.SYNONYMY, *PASSAGE_RELATIONS)
"""The built-in relation types that have a strength, in order; a graph's own types follow them."""


def tuned_relations(among: Iterable[RelationType]) -> tuple[RelationType, ...]:
    """Return the relation types that have a strength, where these are among them: own ones last, by name."""
    return (*TUNED_RELATIONS, *sorted(relation for relation in among if relation.is_own))


WEAKEST, STRONGEST = 0.25, 4.0
"""No strength lies beyond these."""

Setting = str | int | float | bool

_LOCK_FILE = "tuning.lock"
_LOCK_TIMEOUT_S = 10.0
_KEPT = 16


def _of_each_type(strengths: dict[RelationType, float]) -> dict[RelationType, float]:
    """Return strengths in the order of `tuned_relations`. Raises ValueError where a built-in type has none."""
    relations = tuned_relations(strengths)
    if strengths.keys() != set(relations):
        raise ValueError("a version gives a strength for each relation type")
    return {relation: strengths[relation] for relation in relations}


_Strength = Annotated[float, Field(ge=WEAKEST, le=STRONGEST, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]
_STRICT = ConfigDict(extra="forbid", strict=True)


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Tuning:
    """One version of the strengths, as it stands in the file, too.

    Attributes:
        version: counts from 1; 0 is untuned.
        strengths: one multiplier in [`WEAKEST`, `STRONGEST`] for each of `TUNED_RELATIONS`, and for own types that
            the graph had when it was learned; others have 1.
        parent: the version that was current when it was learned; None for version 0.
        made_from: how many questions, passages and marks it was learned from, by name.
        recall_before: held-out recall of the parent's strengths, in [0, 1].
        recall_after: held-out recall of these strengths.
        settings: how it was learned.

    Raises:
        ValueError: a strength is missing, unknown, out of bounds or no number.
    """

    version: _Count
    strengths: Annotated[dict[RelationType, _Strength], AfterValidator(_of_each_type)]
    parent: _Count | None = None
    made_from: dict[str, _Count] = field(default_factory=dict)
    recall_before: _Share | None = None
    recall_after: _Share | None = None
    settings: dict[str, Setting] = field(default_factory=dict)

    @property
    def changes_nothing(self) -> bool:
        """Whether every strength is 1."""
        return set(self.strengths.values()) == {1}


UNTUNED = Tuning(0, dict.fromkeys(TUNED_RELATIONS, 1.0))
"""Version 0 of every workspace."""


class History(BaseModel):
    """All versions of a workspace's strengths, as they stand in the file.

    Attributes:
        current: the version that questions are answered with.
        versions: the learned ones, by number from 1; version 0 is `UNTUNED`.
    """

    model_config = ConfigDict(**_STRICT, frozen=True)

    format_version: Literal[1] = 1
    current: _Count
    versions: tuple[Tuning, ...]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for number, each in enumerate(self.versions, start=1):
            if each.version != number or each.parent is None or each.parent >= number:
                raise ValueError(f"version {number} is called {each.version}, with {each.parent} as its parent")
            if each.recall_before is None or each.recall_after is None:
                raise ValueError(f"version {number} does not tell its recall")
        if self.current > len(self.versions):
            raise ValueError(f"its current version is {self.current}")
        return self

    def get(self, version: int | None = None) -> Tuning:
        """Return a version, the current one for None. Raises BadInput where there is no such."""
        number = self.current if version is None else version
        if not 0 <= number <= len(self.versions):
            raise BadInput(f"There is no version {number} of the tuning", f"Choose one from 0 to {len(self.versions)}")
        return (UNTUNED, *self.versions)[number]


NEVER_TUNED = History(current=0, versions=())
"""The history of a workspace without a file."""


def tuned(factors: EdgeFactors, tuning: Tuning, own: Sequence[RelationType] = ()) -> EdgeFactors:
    """Return a question's factors times the strengths; the very same where every strength is 1.

    Args:
        factors: of the kinds of edges that a graph with these own types has.
        tuning: the strengths.
        own: the graph's own relation types.
    """
    return factors if tuning.changes_nothing else strengthened(factors, tuning.strengths, own)


def strengthened(
    factors: EdgeFactors, strengths: Mapping[RelationType, float], own: Sequence[RelationType] = ()
) -> EdgeFactors:
    """Return factors with each kind's multiplied by its relation type's strength, on both sides."""
    of_own = [strengths.get(relation, 1.0) for relation in own]
    by_kind = np.array([strengths[kind.relation] for kind in EDGE_KINDS] + of_own)
    return replace(factors, from_entity=factors.from_entity * by_kind, from_passage=factors.from_passage * by_kind)


def workspace_tuning(root: Path, version: int | None = None) -> Tuning:
    """Return a version of a workspace's tuning, the current one for None; cheap enough for every question.

    Raises:
        BadInput: there is no such version.
        WorkspaceDamaged: the history cannot be read.
    """
    return load_history(root).get(version)


def load_history(root: Path) -> History:
    """Return a workspace's history; version 0 alone where it was never tuned. Kept until the file is another one.

    Raises:
        WorkspaceDamaged: it cannot be read, or holds what no tuning may.
    """
    path = root.absolute() / TUNING_FILE
    try:
        file = path.stat()
    except FileNotFoundError:
        return NEVER_TUNED
    return _read(path, file.st_mtime_ns, file.st_size, file.st_ino)


def adopt(root: Path, proposal: Tuning) -> Tuning:
    """Append a proposed version to a workspace's history and make it the current one.

    Args:
        root: the workspace.
        proposal: what was learned; its number is given here. Its parent is still to be the current version.

    Raises:
        ValueError: it does not say what held-out recall was before and after.
        WorkspaceLocked: another process tunes the workspace, or did so meanwhile.
        WorkspaceDamaged: the history cannot be read.
    """
    if proposal.recall_before is None or proposal.recall_after is None:
        raise ValueError("a proposal says what held-out recall was before and after")
    with _writing(root) as history:
        if history.current != proposal.parent:
            raise WorkspaceLocked(
                f"The tuning of {root} went from version {proposal.parent} to {history.current} meanwhile",
                "Tune it again",
            )
        made = replace(proposal, version=len(history.versions) + 1)
        _write(root, History(current=made.version, versions=(*history.versions, made)))
    return made


def revert(root: Path, version: int) -> Tuning:
    """Make a version the current one again; no version is lost by it.

    Raises:
        BadInput: there is no such version.
        WorkspaceLocked: another process tunes the workspace.
        WorkspaceDamaged: the history cannot be read.
    """
    with _writing(root) as history:
        chosen = history.get(version)
        if version != history.current:
            _write(root, history.model_copy(update={"current": version}))
    return chosen


def to_json(tuning: Tuning) -> dict[str, Any]:
    """Return a version as it stands in the file and in JSON output."""
    plain: dict[str, Any] = TypeAdapter(Tuning).dump_python(tuning, mode="json")
    return plain


@contextmanager
def _writing(root: Path) -> Iterator[History]:
    """Yield the history as it is, which no other process changes meanwhile."""
    message = f"Another process is tuning {root}"
    with alone(root / _LOCK_FILE, _LOCK_TIMEOUT_S, message, "Try again when it is done"):
        yield load_history(root)


def _write(root: Path, history: History) -> None:
    write_atomically(root / TUNING_FILE, history.model_dump_json(indent=2) + "\n")


@lru_cache(maxsize=_KEPT)
def _read(path: Path, mtime_ns: int, size: int, inode: int) -> History:
    try:
        return History.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return NEVER_TUNED
    except (OSError, ValueError) as fault:
        raise WorkspaceDamaged(
            f"{path} cannot be read ({fault or type(fault).__name__})",
            "Restore it from a backup, or delete it: the walk is then untuned",
        ) from fault
