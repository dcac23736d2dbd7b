from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph.walk.pagerank import walk
from graph.walk.settings import Engine
from graph.walk.sparse import SparseVector
from tests.random_walks import Given, walks


@given(st.dictionaries(st.integers(0, 9), st.sampled_from([0.0, 1.5])), st.lists(st.integers(0, 9), max_size=5))
def test_a_vector_stands_for_all_its_numbers(given_numbers: dict[int, float], places: list[int]) -> None:
    vector = SparseVector.of_mapping(10, given_numbers)
    dense = np.array([given_numbers.get(place, 0.0) for place in range(10)])
    assert vector.places.tolist() == sorted(given_numbers)
    assert vector.dense().tolist() == vector.nonzero().dense().tolist() == dense.tolist()
    assert vector.nonzero().values.all()
    assert vector.at(places) == dense[places].tolist()
    again = SparseVector.of(dense)
    assert again.dense().tolist() == dense.tolist()
    assert len(again.places) == np.count_nonzero(dense)
    assert bool(again) == dense.any()


@given(walks(), st.sampled_from([Engine.IGRAPH, Engine.MATRIX, Engine.PUSH]))
def test_a_walk_from_the_seeds_alone_is_that_from_a_weight_for_every_node(given_walk: Given, engine: Engine) -> None:
    graph, restart, factors, damping = given_walk
    every, few = (walk(graph, start, factors, damping, engine) for start in (restart, SparseVector.of(restart)))
    assert np.array_equal(every.scores, few.scores)
    assert (every.error, every.arcs) == (few.error, few.arcs)
