from __future__ import annotations

import numpy as np
import pytest

from benchmarks.walk_timing import compare

N_ENTITIES = 2
REFERENCE = np.array([0.3, 0.2, *np.arange(8, 0, -1) / 72])
"""Two entities, and eight passages of which the first is the best."""


def test_a_walk_agrees_with_itself() -> None:
    found = compare(REFERENCE, REFERENCE, N_ENTITIES, 0.0)
    assert found.equal == {5: True, 20: True, 100: True}
    assert found.overlap == {5: 1.0, 20: 1.0, 100: 1.0}
    assert found.distance == 0
    assert found.holds


def test_an_order_that_differs_deeper_down_is_equal_above() -> None:
    swapped = REFERENCE.copy()
    swapped[[8, 9]] = swapped[[9, 8]]
    found = compare(swapped, REFERENCE, N_ENTITIES, 1.0)
    assert found.equal == {5: True, 20: False, 100: False}
    assert found.overlap == {5: 1.0, 20: 1.0, 100: 1.0}
    assert found.distance == pytest.approx(2 / 72)


def test_a_passage_that_is_not_found_counts_as_its_share() -> None:
    lost = REFERENCE.copy()
    lost[[2, 8]] = lost[[8, 2]]
    found = compare(lost, REFERENCE, N_ENTITIES, 1.0)
    assert not found.equal[5]
    assert found.overlap == {5: 0.8, 20: 1.0, 100: 1.0}
