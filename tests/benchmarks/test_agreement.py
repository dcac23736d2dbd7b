from __future__ import annotations

import numpy as np
import pytest

from benchmarks.walk_timing import Agreement, compare, summarise

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


def test_entities_are_in_the_distance_but_not_in_the_ranking() -> None:
    shifted = REFERENCE + np.array([0.5, -0.1, *np.zeros(8)])
    found = compare(shifted, REFERENCE, N_ENTITIES, 0.6)
    assert found.equal[5]
    assert found.distance == pytest.approx(0.6)


def test_a_stated_error_holds_up_to_that_of_prpack() -> None:
    assert Agreement({}, {}, distance=0.1 + 9e-10, stated=0.1).holds
    assert not Agreement({}, {}, distance=0.1 + 2e-9, stated=0.1).holds


def test_a_summary_is_over_questions() -> None:
    good = Agreement(dict.fromkeys((5, 20, 100), True), dict.fromkeys((5, 20, 100), 1.0), 0.1, 0.2)
    reordered = Agreement({5: True, 20: False, 100: False}, dict.fromkeys((5, 20, 100), 1.0), 0.2, 0.4)
    wrong = Agreement(dict.fromkeys((5, 20, 100), False), {5: 0.4, 20: 0.7, 100: 1.0}, 0.9, 0.6)
    found = summarise([good, reordered, wrong])
    assert found.questions == 3
    assert found.same_order == pytest.approx({5: 2 / 3, 20: 1 / 3, 100: 1 / 3})
    assert found.same_set == pytest.approx({5: 2 / 3, 20: 2 / 3, 100: 1.0})
    assert found.overlap == pytest.approx({5: 0.8, 20: 0.9, 100: 1.0})
    assert (found.median_distance, found.largest_distance, found.median_stated) == (0.2, 0.9, 0.4)
    assert not found.holds
