"""docs/walk.md: the factors of its formula are those that the walk takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graph.construction.edges import EDGE_KINDS
from graph.retrieve.modes import MARA
from graph.retrieve.search import factors_for
from graph.schema import RelationFactors, RelationType

PAGE = (Path(__file__).parents[2] / "docs" / "walk.md").read_text(encoding="utf-8")
BETA = RelationFactors(
    {"HIERARCHICAL": 0.1, "TEMPORAL": 0.6, "SPATIAL": 0.1, "CAUSALITY": 0.15, "ATTRIBUTION": 0.05},
    {"PRIMARY": 0.5, "SECONDARY": 0.3, "PERIPHERAL": 0.2},
)


def test_the_factors_of_mode_mara_are_those_of_its_formula() -> None:
    rows = re.findall(
        r"^\| (own title|title of another passage|mention) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE
    )
    sides = {link: (float(entity), float(passage)) for link, entity, passage in rows}
    factors = factors_for(BETA, MARA)
    for place, kind in enumerate(EDGE_KINDS):
        if kind.link is not None:
            expected = tuple(side * 3 * BETA.entity_passage[kind.relation] for side in sides[kind.link])
        elif kind.relation is RelationType.SYNONYMY:
            expected = (0.3, 0.3)
        else:
            expected = (0.3 * 5 * BETA.entity_entity[kind.relation],) * 2
        assert (factors.from_entity[place], factors.from_passage[place]) == pytest.approx(expected)
