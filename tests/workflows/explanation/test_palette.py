"""The lines of relation types: told apart by everybody."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.relations import ENTITY_RELATIONS, PASSAGE_RELATIONS, RELATIONS, RelationType
from tests.workflows.explanation.page_colours import declarations, page_colours
from workflows.explanation.page import OWN_LOOKS, looks_of, palette_css

BETWEEN_ENTITIES = (*ENTITY_RELATIONS, RelationType.SYNONYMY)
SIGHTS = {
    "all colours": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritanopia": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
"""Linear RGB as it is seen, after Machado, Oliveira and Fernandes 2009, severity 1."""


def seen(colour: str, sight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how a colour looks, in CIE L*a*b* (D65)."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    x, y, z = np.cbrt(to_xyz @ np.clip(sight @ linear, 1e-6, 1) / np.array([0.9505, 1.0, 1.0888]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS.keys())
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_relations_between_entities_are_told_apart_on_a_page_by_colour_whatever_colours_one_sees(
    sight: NDArray[np.float64], ground: str
) -> None:
    colours = page_colours()[ground]
    alike = [
        (one, other)
        for one, other in combinations(BETWEEN_ENTITIES, 2)
        if np.linalg.norm(seen(colours[one], sight) - seen(colours[other], sight)) <= 15
    ]
    assert alike == []


def test_a_page_has_the_colours_of_the_palette_and_says_each_once_for_light_and_once_for_dark() -> None:
    colours = page_colours()
    for relation, look in RELATIONS.items():
        assert (colours["light"][relation], colours["dark"][relation]) == (look.colour, look.on_dark)
        assert declarations(relation) == 2


@pytest.mark.parametrize("family", [BETWEEN_ENTITIES, PASSAGE_RELATIONS])
def test_relations_are_told_apart_by_dash_alone(family: tuple[RelationType, ...]) -> None:
    assert len({RELATIONS[relation].dash for relation in family}) == len(family)


def test_every_relation_type_has_its_own_look() -> None:
    assert list(RELATIONS) == list(RelationType)
    assert len({look.colour for look in RELATIONS.values()}) == len(RELATIONS)
    assert len({look.on_dark for look in RELATIONS.values()}) == len(RELATIONS)


OWN = [f"OWN_{number:02}" for number in range(20)]


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS.keys())
@pytest.mark.parametrize("ground", ["colour", "on_dark"])
def test_the_first_own_types_are_told_apart_by_colour_from_all_others_whatever_colours_one_sees(
    sight: NDArray[np.float64], ground: str
) -> None:
    first = OWN[: len(OWN_LOOKS)]
    looks = looks_of(first)
    alike = [
        (one, other)
        for one, other in combinations([*BETWEEN_ENTITIES, *first], 2)
        if np.linalg.norm(seen(getattr(looks[one], ground), sight) - seen(getattr(looks[other], ground), sight)) <= 15
    ]
    assert alike == []


def test_the_first_own_types_are_told_apart_by_dash_alone_and_all_of_them_by_colour_and_dash() -> None:
    looks = looks_of(OWN)
    assert len({looks[name].dash for name in [*BETWEEN_ENTITIES, *OWN[: len(OWN_LOOKS)]]}) == 6 + len(OWN_LOOKS)
    assert len({(looks[name].colour, looks[name].dash) for name in [*BETWEEN_ENTITIES, *OWN]}) == 6 + len(OWN)


def test_the_look_of_an_own_type_does_not_depend_on_the_order_that_a_file_has() -> None:
    assert looks_of(OWN) == looks_of(OWN[::-1])
    assert "--OWN_00: #b320f7;" in palette_css(OWN[:1])
