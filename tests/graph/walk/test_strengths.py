"""Strengths of relation types: bounded, versioned, reversible, and nothing at all while untuned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from graph.construction.edges import EDGE_KINDS
from graph.errors import BadInput, WorkspaceDamaged, WorkspaceLocked
from graph.schema import RelationFactors, RelationType
from graph.walk import strengths
from graph.walk.factors import edge_factors
from graph.walk.settings import DIRECTED
from graph.walk.strengths import (
    NEVER_TUNED,
    STRONGEST,
    TUNED_RELATIONS,
    TUNING_FILE,
    UNTUNED,
    WEAKEST,
    History,
    Tuning,
    adopt,
    load_history,
    revert,
    strengthened,
    tuned,
    workspace_tuning,
)

FACTORS = edge_factors(RelationFactors.uniform(), directions=DIRECTED)


def strengths_of(**changed: float) -> dict[RelationType, float]:
    return {relation: changed.get(relation.value, 1.0) for relation in TUNED_RELATIONS}


def proposal(parent: int = 0, **changed: float) -> Tuning:
    return Tuning(0, strengths_of(**changed), parent, {"questions": 20}, 0.5, 0.75, {"seed": 0, "chat": "offline"})


class TestFactors:
    def test_untuned_gives_the_very_same_factors(self) -> None:
        assert tuned(FACTORS, UNTUNED) is FACTORS
        same = strengthened(FACTORS, UNTUNED.strengths)
        assert np.array_equal(same.from_entity, FACTORS.from_entity)
        assert np.array_equal(same.from_passage, FACTORS.from_passage)
        vague = edge_factors(RelationFactors({"TEMPORAL": 1.0}, {}))
        assert tuned(vague, proposal(TEMPORAL=2.0)).unknown == vague.unknown != ()

    def test_a_strength_multiplies_its_type_alone_on_both_sides(self) -> None:
        assert {kind.relation for kind in EDGE_KINDS} == set(TUNED_RELATIONS) == set(RelationType)
        for relation in TUNED_RELATIONS:
            factors = strengthened(FACTORS, strengths_of(**{relation.value: 2.0}))
            expected = [2.0 if kind.relation is relation else 1.0 for kind in EDGE_KINDS]
            assert (factors.from_entity / FACTORS.from_entity).tolist() == expected
            assert (factors.from_passage / FACTORS.from_passage).tolist() == expected


class TestHistory:
    def test_what_is_adopted_is_the_next_version_and_current(self, tmp_path: Path) -> None:
        assert load_history(tmp_path) == NEVER_TUNED
        assert workspace_tuning(tmp_path) is UNTUNED
        assert list(tmp_path.iterdir()) == []
        first, second = adopt(tmp_path, proposal(TEMPORAL=2.0)), adopt(tmp_path, proposal(parent=1, PRIMARY=0.5))
        assert (first.version, second.version, second.parent) == (1, 2, 1)
        assert workspace_tuning(tmp_path) == second
        assert workspace_tuning(tmp_path, 1) == first
        strengths._read.cache_clear()
        assert load_history(tmp_path) == History(current=2, versions=(first, second))

    def test_going_back_restores_an_earlier_version_and_loses_none(self, tmp_path: Path) -> None:
        first, second = adopt(tmp_path, proposal(TEMPORAL=2.0)), adopt(tmp_path, proposal(parent=1, PRIMARY=0.5))
        for version, expected in ((1, first), (2, second), (0, UNTUNED)):
            assert revert(tmp_path, version) == workspace_tuning(tmp_path) == expected
        assert len(load_history(tmp_path).versions) == 2
        third = adopt(tmp_path, proposal(SPATIAL=2.0))
        assert (third.version, third.parent) == (3, 0), "it follows all versions"

    def test_a_version_that_is_none_is_refused(self, tmp_path: Path) -> None:
        adopt(tmp_path, proposal(TEMPORAL=2.0))
        for version in (-1, 2):
            for choose in (revert, workspace_tuning):
                with pytest.raises(BadInput, match="from 0 to 1"):
                    choose(tmp_path, version)

    def test_a_refusal_leaves_the_history_as_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = adopt(tmp_path, proposal(TEMPORAL=2.0))
        with pytest.raises(WorkspaceLocked, match="from version 0 to 1 meanwhile"):
            adopt(tmp_path, proposal(PRIMARY=2.0))

        def refuse(path: Path, target: Path) -> Path:
            raise OSError("full")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", refuse)
            with pytest.raises(OSError, match="full"):
                adopt(tmp_path, proposal(parent=1, PRIMARY=2.0))
        monkeypatch.setattr(strengths, "_LOCK_TIMEOUT_S", 0.01)
        with FileLock(tmp_path / "tuning.lock"), pytest.raises(WorkspaceLocked, match="Another process"):
            adopt(tmp_path, proposal(parent=1, PRIMARY=2.0))
        assert load_history(tmp_path).versions == (first,)

    def test_the_file_is_read_again_when_it_changed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        adopt(tmp_path, proposal(TEMPORAL=2.0))
        tuning = workspace_tuning(tmp_path)
        assert all(workspace_tuning(tmp_path) is tuning for _ in range(3))
        path = tmp_path / TUNING_FILE
        body = json.loads(path.read_text())
        body["versions"][0]["strengths"]["TEMPORAL"] = 0.5
        path.write_text(json.dumps(body))
        assert workspace_tuning(tmp_path).strengths[RelationType.TEMPORAL] == 0.5
        path.unlink()
        assert workspace_tuning(tmp_path) is UNTUNED


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that sets one value of the file."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    return change


FIRST = ("versions", 0)
NONSENSE = [
    put("format_version", value=2),
    put("current", value=2),
    put(*FIRST, "version", value=2),
    put(*FIRST, "parent", value=1),
    put(*FIRST, "strengths", value={}),
    put(*FIRST, "strengths", "SPATIAL", value=5),
    put(*FIRST, "strengths", "SPATIAL", value=float("nan")),
    put(*FIRST, "strengths", "magical", value=1.0),
    put(*FIRST, "recall_before", value=1.5),
    put(*FIRST, "made_from", value={"questions": -1}),
]


class TestReading:
    def test_nonsense_is_damage_and_told_with_what_to_do(self, tmp_path: Path) -> None:
        adopt(tmp_path, proposal(TEMPORAL=2.0))
        path = tmp_path / TUNING_FILE
        whole = path.read_text()
        for damage in NONSENSE:
            body = json.loads(whole)
            damage(body)
            path.write_text(json.dumps(body))
            with pytest.raises(WorkspaceDamaged, match=r"tuning\.json cannot be read") as refused:
                workspace_tuning(tmp_path)
            assert "untuned" in refused.value.hint
        for data in (b"", b"[]", b"[" * 100_000):
            path.write_bytes(data)
            with pytest.raises(WorkspaceDamaged):
                revert(tmp_path, 0)

    def test_a_strength_is_a_number_within_the_bounds(self) -> None:
        for strength in (WEAKEST, STRONGEST):
            assert proposal(SPATIAL=strength).strengths[RelationType.SPATIAL] == strength
        wrong: list[Any] = [0.2, 4.01, float("nan"), True, "1"]
        for strength in wrong:
            with pytest.raises(ValueError, match="SPATIAL"):
                proposal(SPATIAL=strength)
        with pytest.raises(ValueError, match="each relation type"):
            Tuning(1, {RelationType.SPATIAL: 1.0})
