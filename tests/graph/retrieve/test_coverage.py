from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ranking = [(4, 1.0), (2, 0.5)]
    none = np.zeros((0, 2), dtype=np.bool_)
    assert second_for_open_words(ranking, np.zeros(0), none, np.ones(2, dtype=np.bool_), 2.0) == ranking


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[tuple[int, float]], np.ndarray, np.ndarray, np.ndarray]:
    size, words = draw(st.integers(2, 8)), draw(st.integers(1, 4))
    scores = sorted(draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)), reverse=True)
    bits = st.lists(st.booleans(), min_size=size, max_size=size)
    weights = np.array(draw(st.lists(st.floats(0.1, 9), min_size=words, max_size=words)))
    has_word = np.array([draw(bits) for _ in range(words)])
    return list(enumerate(scores)), weights, has_word, np.array(draw(bits))


@given(cases(), st.floats(0, 10))
def test_only_one_moves(
    case: tuple[list[tuple[int, float]], np.ndarray, np.ndarray, np.ndarray], strength: float
) -> None:
    ranking, weights, has_word, joined = case
    reordered = second_for_open_words(ranking, weights, has_word, joined, strength)
    scores = [score for _, score in reordered]
    assert scores == sorted(scores, reverse=True)
    assert reordered[0] == ranking[0]
    moved = reordered[1][0]
    assert [row for row, _ in reordered if row != moved] == [row for row, _ in ranking if row != moved]
    if strength == 0:
        assert scores == pytest.approx([score for _, score in ranking])
