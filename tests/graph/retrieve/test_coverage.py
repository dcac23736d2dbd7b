from __future__ import annotations

import numpy as np
import pytest

from graph.retrieve.coverage import second_for_open_words

WEIGHTS = np.array([3.0, 1.0])
FIRST_WORD, SECOND_WORD, BOTH, NONE = (True, False), (False, True), (True, True), (False, False)


def order(*passages: tuple[bool, bool], scores: list[float], strength: float = 2.0, joined: str = "") -> list[int]:
    """Return the order of passages that hold some of two words; ``joined`` has an "x" for each that shares a name."""
    shares = np.array([mark == "x" for mark in joined or "x" * len(passages)])
    ranking = list(enumerate(scores))
    return [row for row, _ in second_for_open_words(ranking, WEIGHTS, np.array(passages).T, shares, strength)]


def test_the_second_passage_is_the_one_that_holds_what_the_first_leaves_open() -> None:
    assert order(FIRST_WORD, FIRST_WORD, NONE, SECOND_WORD, scores=[1, 0.5, 0.45, 0.4]) == [0, 3, 1, 2]
    three = [1.0, 0.5, 0.4]
    assert order(NONE, SECOND_WORD, BOTH, scores=three) == [0, 2, 1], "the more of the words the better"
    assert order(BOTH, NONE, BOTH, scores=three) == [0, 1, 2], "words of the first do not count again"
    words = (FIRST_WORD, FIRST_WORD, SECOND_WORD)
    assert order(*words, scores=three, joined="xx-") == [0, 1, 2], "it must share a name with the first"
    assert order(*words, scores=three, strength=0.1) == [0, 1, 2], "words are worth little"
    lifted = second_for_open_words([(0, 1.0), (1, 0.5)], WEIGHTS, np.array([(1, 0), (0, 1)]).T > 0, np.ones(2) > 0, 2.0)
    assert lifted == [(0, 1.0), (1, pytest.approx(0.5 * np.exp(2.0 * 1 / 4)))]
    ranking = [(4, 1.0), (2, 0.5)]
    none = np.zeros((0, 2), dtype=np.bool_)
    assert second_for_open_words(ranking, np.zeros(0), none, np.ones(2, dtype=np.bool_), 2.0) == ranking
