from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.edges import EdgeKind
from graph.errors import BadInput
from graph.schema import RelationType
from graph.walk.pagerank import walk
from graph.walk.settings import Engine
from graph.walk.sparse import SparseVector
from tests.builders import typed_graph
from tests.random_walks import Given, walks
from tests.walking import NEUTRAL

numbers = st.lists(st.sampled_from([0.0, 0.5, 2.0]), max_size=8)


@given(numbers)
def test_what_is_kept_stands_for_all(given_numbers: list[float]) -> None:
    dense = np.array(given_numbers)
    kept = SparseVector.of(dense)
    assert kept.dense().tolist() == given_numbers
    assert len(kept.places) == np.count_nonzero(dense)
    assert bool(kept) == dense.any()


@given(st.dictionaries(st.integers(0, 9), st.sampled_from([0.0, 1.5])))
def test_places_of_a_mapping_are_kept_in_their_order(given_numbers: dict[int, float]) -> None:
    kept = SparseVector.of_mapping(10, given_numbers)
    assert kept.places.tolist() == sorted(given_numbers)
    assert kept.dense().tolist() == [given_numbers.get(place, 0.0) for place in range(10)]
    assert kept.nonzero().dense().tolist() == kept.dense().tolist()
    assert kept.nonzero().values.all()


@given(st.dictionaries(st.integers(0, 9), st.sampled_from([0.0, 1.5])), st.lists(st.integers(0, 9), max_size=5))
def test_the_numbers_of_a_few_places_are_those_of_all(given_numbers: dict[int, float], places: list[int]) -> None:
    kept = SparseVector.of_mapping(10, given_numbers)
    assert kept.at(places) == kept.dense()[places].tolist()


@given(walks(), st.sampled_from([Engine.IGRAPH, Engine.MATRIX, Engine.PUSH]))
def test_a_walk_from_the_seeds_alone_is_that_from_a_weight_for_every_node(given_walk: Given, engine: Engine) -> None:
    graph, restart, factors, damping = given_walk
    every, few = (walk(graph, start, factors, damping, engine) for start in (restart, SparseVector.of(restart)))
    assert np.array_equal(every.scores, few.scores)
    assert (every.error, every.arcs) == (few.error, few.arcs)


def test_a_restart_of_another_graph_is_refused() -> None:
    graph = typed_graph(2, 0, [(0, 1, EdgeKind(RelationType.TEMPORAL), 1.0)]).typed
    with pytest.raises(BadInput, match=r"\(3,\)"):
        walk(graph, SparseVector.of(np.ones(3)), NEUTRAL, 0.5)
