from __future__ import annotations

import numpy as np
import pytest

from graph.retrieve.convergence import anchors_of, converged
from graph.walk.sparse import SparseVector

N_ENTITIES, N_PASSAGES = 10, 6


def start(**weights: float) -> SparseVector:
    """Return a restart vector of entities ("e3") and passages ("p0")."""
    nodes = {int(name[1:]) + (N_ENTITIES if name[0] == "p" else 0): weight for name, weight in weights.items()}
    return SparseVector.of_mapping(N_ENTITIES + N_PASSAGES, nodes)


class TestAnchors:
    def test_the_heaviest_entities_stand_alone_and_the_others_together(self) -> None:
        weights = {"e0": 1.0, "e1": 4.0, "e2": 1.0, "e3": 2.0, "e4": 3.0, "e5": 2.5, "p0": 1.0, "p5": 1.5}
        anchors = anchors_of(start(**weights), N_ENTITIES)
        assert [(anchor.entity, anchor.share) for anchor in anchors] == [
            (1, 0.25),
            (4, 3.0 / 16),
            (5, 2.5 / 16),
            (3, 0.125),
            (None, 0.125),
        ]
        assert anchors[-1].restart.places.tolist() == [0, 2]
        assert anchors_of(start(p1=3.0, p2=1.0), N_ENTITIES) == []


class TestConverged:
    RANKING = ((0, 0.54), (1, 0.3), (2, 0.1), (3, 0.0))
    REACHED = np.array([[0.9, 0.3, 0.0], [0.0, 0.3, 0.0]])
    """The heavy anchor floods passage 0, both reach 1, none reaches 2; 3 is not compared."""

    def ranked(self, strength: float) -> list[int]:
        ranking = converged(self.RANKING, [0.6, 0.4], self.REACHED, strength)
        assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
        return [passage for passage, _ in ranking]

    def test_a_passage_that_every_anchor_reaches_stands_before_one_that_a_single_one_floods(self) -> None:
        assert self.ranked(0.0) == [0, 1, 2, 3]
        assert self.ranked(0.3) == [1, 0, 2, 3]
        whole, part = (dict(converged(self.RANKING, shares, self.REACHED, 0.3)) for shares in ([0.6, 0.4], [0.15, 0.1]))
        assert part == pytest.approx(whole), "shares count beside each other"
        spread = (np.array([0.6, 0.4]) @ np.log(self.REACHED / [[0.9], [0.3]] + 1e-3))[:2]
        assert [whole[0], whole[1]] == pytest.approx(np.array([0.54, 0.3]) ** 0.7 * (0.54 * np.exp(spread)) ** 0.3)
        nowhere = converged(self.RANKING, [0.6, 0.4], np.zeros((2, 3)), 0.3)
        assert [passage for passage, _ in nowhere] == [0, 1, 2, 3]
        assert converged([], [0.6, 0.4], np.zeros((2, 0)), 0.3) == []
