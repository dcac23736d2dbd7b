"""The lines of relation types, which every reader can tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graph.relations import ENTITY_RELATIONS, PASSAGE_RELATIONS, RELATIONS, RelationType
from tests.workflows.explanation.page_colours import page_colours
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


def alike(colours: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the pairs of names whose colours look alike to a reader who sees colours in one of the ways."""
    return [
        (name, one, other)
        for name, sight in SIGHTS.items()
        for one, other in combinations(colours, 2)
        if np.linalg.norm(seen(colours[one], sight) - seen(colours[other], sight)) <= 15
    ]


def test_relations_between_entities_differ_on_a_page_in_colour_and_within_a_family_in_dash() -> None:
    for ground in ("light", "dark"):
        colours = page_colours()[ground]
        assert alike({relation: colours[relation] for relation in BETWEEN_ENTITIES}) == [], ground
    for family in (BETWEEN_ENTITIES, PASSAGE_RELATIONS):
        assert len({RELATIONS[relation].dash for relation in family}) == len(family)


def test_the_first_own_types_differ_from_all_others_by_colour_and_by_dash_and_the_rest_by_both() -> None:
    own = [f"OWN_{number:02}" for number in range(20)]
    first = [*BETWEEN_ENTITIES, *own[: len(OWN_LOOKS)]]
    looks = looks_of(own)
    assert alike({name: looks[name].colour for name in first}) == []
    assert alike({name: looks[name].on_dark for name in first}) == []
    assert len({looks[name].dash for name in first}) == len(first)
    assert len({(looks[name].colour, looks[name].dash) for name in [*BETWEEN_ENTITIES, *own]}) == 6 + len(own)
    assert looks == looks_of(own[::-1]), "the order of a file does not matter"
    assert "--OWN_00: #b320f7;" in palette_css(own[:1])
