from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.retrieve.convergence import ANCHORS, Anchor, anchors_of, converged
from graph.walk.sparse import SparseVector

N_ENTITIES, N_PASSAGES = 10, 6


def start(**weights: float) -> SparseVector:
    """Return a restart vector of entities ("e3") and passages ("p0")."""
    nodes = {int(name[1:]) + (N_ENTITIES if name[0] == "p" else 0): weight for name, weight in weights.items()}
    return SparseVector.of_mapping(N_ENTITIES + N_PASSAGES, nodes)


def reaching(reached: dict[int, list[float]], anchor: SparseVector) -> SparseVector:
    """Return the PageRank of the passages by the first seed of an anchor."""
    values = np.array(reached[int(anchor.places[0])])
    return SparseVector(N_ENTITIES + N_PASSAGES, N_ENTITIES + np.arange(len(values)), values)


class TestAnchors:
    def test_the_heaviest_entities_stand_alone_and_the_others_together(self) -> None:
        anchors = anchors_of(start(e0=1.0, e1=4.0, e2=1.0, e3=2.0, p0=1.0, p5=1.0), N_ENTITIES)
        assert [(anchor.entity, anchor.is_passages, anchor.share) for anchor in anchors] == [
            (1, False, 0.4),
            (3, False, 0.2),
            (None, False, 0.2),
            (None, True, 0.2),
        ]
        assert anchors[2].restart.places.tolist() == [0, 2]

    def test_a_start_without_names_has_one_anchor(self) -> None:
        (anchor,) = anchors_of(start(p1=3.0, p2=1.0), N_ENTITIES)
        assert anchor.is_passages and anchor.share == 1

    @given(
        st.dictionaries(st.integers(0, N_ENTITIES + N_PASSAGES - 1), st.floats(0, 10), min_size=1).filter(
            lambda weights: sum(weights.values()) > 1e-6
        )
    )
    def test_together_they_are_the_whole_start(self, weights: dict[int, float]) -> None:
        restart = SparseVector.of_mapping(N_ENTITIES + N_PASSAGES, weights)
        anchors = anchors_of(restart, N_ENTITIES)
        assert len(anchors) <= ANCHORS + 2
        together = sum((anchor.share * anchor.restart.dense() for anchor in anchors), np.zeros(restart.length))
        assert together == pytest.approx(restart.dense() / restart.values.sum())


class TestConverged:
    ANCHORS = (
        Anchor(0, False, 0.6, start(e0=1.0)),
        Anchor(1, False, 0.4, start(e1=1.0)),
    )

    def ranked(self, strength: float) -> list[int]:
        """Rank a passage that the heavy anchor floods, one that both reach, and one that none does."""
        reached = {0: [0.9, 0.3, 0.0], 1: [0.0, 0.3, 0.0]}
        ranking = [(0, 0.54), (1, 0.3), (2, 0.0)]
        found = converged(ranking, self.ANCHORS, lambda start: reaching(reached, start), N_ENTITIES, strength)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        return [passage for passage, _ in found]

    def test_a_passage_that_every_anchor_reaches_stands_before_one_that_a_single_one_floods(self) -> None:
        assert self.ranked(0.0) == [0, 1, 2]
        assert self.ranked(0.3) == [1, 0, 2]

    def test_one_anchor_alone_changes_nothing(self) -> None:
        def never(_: SparseVector) -> SparseVector:
            raise AssertionError("no walk is needed")

        ranking = [(2, 0.7), (0, 0.2)]
        assert converged(ranking, self.ANCHORS[:1], never, N_ENTITIES, 1.0) == ranking

    @given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=6), st.floats(0, 1))
    def test_anchors_that_agree_keep_the_order(self, scores: list[float], strength: float) -> None:
        best_first = sorted(scores, reverse=True)
        ranking = list(enumerate(best_first))
        reached = {0: best_first, 1: best_first}
        found = converged(ranking, self.ANCHORS, lambda start: reaching(reached, start), N_ENTITIES, strength)
        assert [score for _, score in found] == pytest.approx(best_first, rel=0.1, abs=1e-4)
        assert [passage for passage, _ in found] == [passage for passage, _ in ranking]
