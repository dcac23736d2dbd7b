"""Strengths of relation types: bounded, kept until they are taken back, and nothing at all while untuned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graph.construction.edges import EDGE_KINDS
from graph.errors import WorkspaceDamaged
from graph.schema import RelationFactors, RelationType
from graph.walk.factors import edge_factors
from graph.walk.settings import DIRECTED
from graph.walk.strengths import (
    STRONGEST,
    TUNED_RELATIONS,
    TUNING_FILE,
    UNTUNED,
    WEAKEST,
    adopt,
    revert,
    tuned,
    workspace_tuning,
)

FACTORS = edge_factors(RelationFactors.uniform(), directions=DIRECTED)
TEMPORAL, SPATIAL = RelationType.TEMPORAL, RelationType.SPATIAL


class TestFactors:
    def test_untuned_gives_the_same_factors(self) -> None:
        same = tuned(FACTORS, UNTUNED.strengths)
        assert np.array_equal(same.from_entity, FACTORS.from_entity)
        assert np.array_equal(same.from_passage, FACTORS.from_passage)
        vague = edge_factors(RelationFactors({"TEMPORAL": 1.0}, {}))
        assert tuned(vague, {TEMPORAL: 2.0}).unknown == vague.unknown != ()

    def test_a_strength_multiplies_its_type_alone_on_both_sides(self) -> None:
        assert {kind.relation for kind in EDGE_KINDS} == set(TUNED_RELATIONS) == set(RelationType)
        for relation in TUNED_RELATIONS:
            factors = tuned(FACTORS, {relation: 2.0})
            expected = [2.0 if kind.relation is relation else 1.0 for kind in EDGE_KINDS]
            assert (factors.from_entity / FACTORS.from_entity).tolist() == expected
            assert (factors.from_passage / FACTORS.from_passage).tolist() == expected


class TestKeeping:
    def test_what_is_adopted_is_current_until_it_is_taken_back(self, tmp_path: Path) -> None:
        assert workspace_tuning(tmp_path) is UNTUNED
        revert(tmp_path)
        assert list(tmp_path.iterdir()) == []
        first, second = (adopt(tmp_path, {TEMPORAL: strength}, 0.5, 0.75) for strength in (2.0, 4.0))
        assert (first.version, second.version) == (1, 2)
        assert workspace_tuning(tmp_path) == second
        revert(tmp_path)
        assert workspace_tuning(tmp_path) is UNTUNED
        assert adopt(tmp_path, {TEMPORAL: 2.0}, 0.5, 0.75).version == 3, "no two tunings have one number"

    def test_the_current_one_of_a_list_of_versions_is_read(self, tmp_path: Path) -> None:
        about = {"made_from": {"questions": 20}, "recall_before": 0.5, "recall_after": 0.75}
        versions = [
            {"version": version, "parent": version - 1, "strengths": {"TEMPORAL": float(version)}, **about}
            for version in (1, 2, 3)
        ]
        for current, strength in ((2, 2.0), (0, None)):
            stored = {"format_version": 1, "current": current, "versions": versions}
            (tmp_path / TUNING_FILE).write_text(json.dumps(stored))
            assert workspace_tuning(tmp_path).strengths.get(TEMPORAL) == strength
        assert adopt(tmp_path, {TEMPORAL: 2.0}, 0.5, 0.75).version == 4

    def test_nonsense_is_damage_and_told_with_what_to_do(self, tmp_path: Path) -> None:
        path = tmp_path / TUNING_FILE
        adopt(tmp_path, {SPATIAL: 2.0}, 0.5, 0.75)
        whole = path.read_text()
        texts = [whole.replace("2.0", value) for value in ("5", "NaN", '"magical"')]
        for text in (
            *texts,
            whole.replace('version": 1', 'version": 2'),
            whole.replace("SPATIAL", "magical"),
            "",
            "{}",
        ):
            path.write_text(text)
            with pytest.raises(WorkspaceDamaged, match=r"tuning\.json cannot be read") as refused:
                workspace_tuning(tmp_path)
            assert "untuned" in refused.value.hint

    def test_a_strength_is_within_the_bounds(self, tmp_path: Path) -> None:
        for strength in (WEAKEST, STRONGEST):
            assert adopt(tmp_path, {SPATIAL: strength}, 0.5, 0.75).strengths[SPATIAL] == strength
        for strength in (0.2, 4.01, float("nan")):
            with pytest.raises(ValueError, match="SPATIAL"):
                adopt(tmp_path, {SPATIAL: strength}, 0.5, 0.75)
