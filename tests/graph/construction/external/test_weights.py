from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.edge_weights import CLASS_QUANTILES
from graph.construction.external.weights import quantiles


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_quantiles_are_those_of_numpy_to_the_last_bit(values: list[float]) -> None:
    every = np.array(values)
    assert quantiles(every, CLASS_QUANTILES) == np.quantile(every, CLASS_QUANTILES).tolist()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_so_they_are_where_few_numbers_are_held_at_once(values: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graph.construction.external.weights._COUNTED", 2)
        found = quantiles(np.array(values), CLASS_QUANTILES)
    assert found == np.quantile(np.array(values), CLASS_QUANTILES).tolist()


def test_of_nothing_they_are_zero() -> None:
    assert quantiles(np.zeros(0), CLASS_QUANTILES) == [0.0, 0.0]
