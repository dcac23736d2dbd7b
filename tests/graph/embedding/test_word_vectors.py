from __future__ import annotations

import numpy as np
import pytest

from graph.embedding.bert import DIMENSION, word_vectors


def cosine(one: str, other: str) -> float:
    vectors = word_vectors([one, other])
    return float(vectors[0] @ vectors[1])


def test_each_word_has_a_unit_vector() -> None:
    vectors = word_vectors(["boat", "slipway", "日本", "vx-210"])
    assert vectors.shape == (4, DIMENSION)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert np.array_equal(word_vectors(["boat"])[0], vectors[0])
    assert not word_vectors([""]).any()
    assert len(word_vectors([])) == 0


def test_words_of_one_meaning_are_nearer_than_others() -> None:
    for one, other in [("bought", "purchased"), ("boat", "ship"), ("salary", "wage"), ("begin", "start")]:
        assert cosine(one, other) > 0.4, one
        assert cosine(one, other) > cosine(one, "respirator") + 0.2, one
        assert cosine(other, "respirator") < 0.3, one
