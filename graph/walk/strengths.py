"""Tuning: multipliers on the strength of relation types, learned from marks; versioned and reversible.

One multiplier stands for a relation type, whichever side its edges are left from. Version 0 is the walk untuned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

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

_FORMAT = 1
_LOCK_FILE = "tuning.lock"
_LOCK_TIMEOUT_S = 10.0
_KEPT = 16


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True, slots=True)
class Tuning:
    """One version of the strengths.

    Attributes:
        version: counts from 1; 0 is untuned.
        strengths: one multiplier in [`WEAKEST`, `STRONGEST`] for each of `TUNED_RELATIONS`, and for own types that
            the graph had when it was learned; others have 1.
        parent: the version that was current when it was learned; None for version 0.
        made_from: how many questions, passages and marks it was learned from, by name.
        recall_before: held-out recall of the parent's strengths, in [0, 1].
        recall_after: held-out recall of strengths learned without the questions that they are measured on.
        settings: how it was learned.

    Raises:
        ValueError: a strength is missing, unknown, out of bounds or no number.
    """

    version: int
    strengths: Mapping[RelationType, float]
    parent: int | None = None
    made_from: Mapping[str, int] = field(default_factory=dict)
    recall_before: float | None = None
    recall_after: float | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.strengths.keys() != set(tuned_relations(self.strengths)):
            raise ValueError(f"version {self.version} does not give a strength for each relation type")
        for relation, strength in self.strengths.items():
            if not (_is_number(strength) and WEAKEST <= strength <= STRONGEST):
                raise ValueError(f"the strength of {relation} in version {self.version} is {strength!r}")

    @property
    def changes_nothing(self) -> bool:
        """Whether every strength is 1."""
        return set(self.strengths.values()) == {1}


UNTUNED = Tuning(0, dict.fromkeys(TUNED_RELATIONS, 1.0))
"""Version 0 of every workspace."""


@dataclass(frozen=True, slots=True)
class History:
    """All versions of a workspace's strengths.

    Attributes:
        versions: each at the place of its number; the first is `UNTUNED`.
        current: the version that questions are answered with.
    """

    versions: tuple[Tuning, ...] = (UNTUNED,)
    current: int = 0

    def get(self, version: int | None = None) -> Tuning:
        """Return a version, the current one for None. Raises BadInput where there is no such."""
        number = self.current if version is None else version
        if not 0 <= number < len(self.versions):
            raise BadInput(
                f"There is no version {number} of the tuning", f"Choose one from 0 to {len(self.versions) - 1}"
            )
        return self.versions[number]


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
        return History()
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
    with _writing(root) as (history, write):
        if history.current != proposal.parent:
            raise WorkspaceLocked(
                f"The tuning of {root} went from version {proposal.parent} to {history.current} meanwhile",
                "Tune it again",
            )
        made = replace(proposal, version=len(history.versions))
        write(History((*history.versions, made), made.version))
    return made


def revert(root: Path, version: int) -> Tuning:
    """Make a version the current one again; no version is lost by it.

    Raises:
        BadInput: there is no such version.
        WorkspaceLocked: another process tunes the workspace.
        WorkspaceDamaged: the history cannot be read.
    """
    with _writing(root) as (history, write):
        chosen = history.get(version)
        if version != history.current:
            write(replace(history, current=version))
    return chosen


def to_json(tuning: Tuning) -> dict[str, Any]:
    """Return a version as it stands in the file and in JSON output."""
    return {
        "version": tuning.version,
        "parent": tuning.parent,
        "strengths": {relation.value: tuning.strengths[relation] for relation in tuned_relations(tuning.strengths)},
        "made_from": dict(tuning.made_from),
        "recall_before": tuning.recall_before,
        "recall_after": tuning.recall_after,
        "settings": dict(tuning.settings),
    }


@contextmanager
def _writing(root: Path) -> Iterator[tuple[History, Callable[[History], None]]]:
    """Yield the history as it is, and what writes another, while no other process does so."""

    def write(history: History) -> None:
        versions = [to_json(tuning) for tuning in history.versions[1:]]
        body = {"format_version": _FORMAT, "current": history.current, "versions": versions}
        write_atomically(root / TUNING_FILE, json.dumps(body, indent=2) + "\n")

    told = f"Another process is tuning {root}"
    with alone(root / _LOCK_FILE, _LOCK_TIMEOUT_S, told, "Try again when it is done"):
        yield load_history(root), write


@lru_cache(maxsize=_KEPT)
def _read(path: Path, mtime_ns: int, size: int, inode: int) -> History:
    try:
        return _history_of(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return History()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise WorkspaceDamaged(
            f"{path} cannot be read ({fault or type(fault).__name__})",
            "Restore it from a backup, or delete it: the walk is then untuned",
        ) from fault


def _history_of(body: Any) -> History:
    """Return the history that a file holds. Raises ValueError, KeyError or TypeError where it is none."""
    _check_keys(body, {"format_version", "current", "versions"}, "the history")
    if body["format_version"] != _FORMAT:
        raise ValueError(f"it is of format {body['format_version']}, this version reads {_FORMAT}")
    if not isinstance(body["versions"], list):
        raise TypeError("its versions are no list")
    versions = (UNTUNED, *(_version_of(each, number) for number, each in enumerate(body["versions"], start=1)))
    current = body["current"]
    if not _is_count(current) or current >= len(versions):
        raise ValueError(f"its current version is {current!r}")
    return History(versions, current)


def _version_of(body: Any, number: int) -> Tuning:
    _check_keys(body, set(to_json(UNTUNED)), f"version {number}")
    parent = body["parent"]
    if body["version"] != number or not _is_count(parent) or parent >= number:
        raise ValueError(f"version {number} is called {body['version']!r}, with {parent!r} as its parent")
    recall = (body["recall_before"], body["recall_after"])
    if not all(_is_number(share) and 0 <= share <= 1 for share in recall):
        raise ValueError(f"the recalls of version {number} are {recall}")
    if not isinstance(body["made_from"], dict) or not all(map(_is_count, body["made_from"].values())):
        raise ValueError(f"version {number} does not count what it was made from")
    if not isinstance(body["settings"], dict) or not all(
        isinstance(value, Setting) for value in body["settings"].values()
    ):
        raise ValueError(f"version {number} does not name its settings")
    strengths = {RelationType(name): strength for name, strength in body["strengths"].items()}
    return Tuning(number, strengths, parent, body["made_from"], *recall, body["settings"])


def _check_keys(body: Any, keys: set[str], what: str) -> None:
    if not isinstance(body, dict) or body.keys() != keys:
        raise ValueError(f"{what} does not hold exactly {', '.join(sorted(keys))}")
