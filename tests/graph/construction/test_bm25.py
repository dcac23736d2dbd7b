from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.bm25 import SparseIndex, terms
from tests.builders import bm25_of, write_bm25

CORPUS = [
    "Nissan was founded in 1933 in Yokohama.",
    "日産自動車は横浜に本社を置く自動車会社である。",
    "",
    "The city of Yokohama has a harbour; Yokohama has ships.",
    "Белогорка стоит на берегу озера.",
    "현대자동차는 울산에 공장이 있다.",
]


def test_terms_are_stems_words_and_pairs_of_characters_of_unspaced_scripts() -> None:
    for text, expected in [
        ("The founders were founding a company", ["founder", "were", "found", "compani"]),
        ("日産自動車 in 横浜", ["日産", "産自", "自動", "動車", "横浜"]),
        ("현대차", ["현대", "대차"]),
        ("春 1933年", ["春", "1933", "年"]),
        ("Белогорка стоит", ["белогорка", "стоит"]),
        ("وادي النور", ["وادي", "النور"]),
        *((text, []) for text in ("", "   ", "?!", "the of and")),
    ]:
        assert terms(text) == expected, text


@pytest.fixture(scope="module")
def index() -> SparseIndex:
    return bm25_of(CORPUS)


def test_the_words_of_a_question_that_each_passage_holds(index: SparseIndex) -> None:
    weights, in_passages = index.held_words("Ships of Yokohama, Yokohama?", np.array([3, 0, 4]))
    assert in_passages.tolist() == [[True, False, False], [True, True, False]]
    assert weights[0] > weights[1] > 0
    weights, in_passages = index.held_words("zeppelin", np.array([0, 1]))
    assert (weights.shape, in_passages.shape) == ((0,), (0, 2))


class TestScores:
    def test_unknown_words_score_nothing(self, index: SparseIndex) -> None:
        for question in ("", "xylophone", "the of and", "???", "\x00"):
            assert index.scores(question).tolist() == [0.0] * len(CORPUS), question
            assert bm25_of(["", "?!"]).scores(question).tolist() == [0.0, 0.0]
            assert bm25_of([]).scores(question).shape == (0,)
        assert np.array_equal(index.scores("Nissan xylophone"), index.scores("Nissan"))

    def test_scores_are_bm25_as_lucene_has_it(self) -> None:
        corpus = ["apple apple pear", "pear", "plum fig grape melon"]
        frequency, document, mean_length, n_with_apple = 2, 3, (3 + 1 + 4) / 3, 1
        idf = math.log(1 + (len(corpus) - n_with_apple + 0.5) / (n_with_apple + 0.5))
        expected = idf * frequency / (frequency + 1.5 * (1 - 0.75 + 0.75 * document / mean_length))
        assert bm25_of(corpus).scores("apple").tolist() == pytest.approx([expected, 0, 0], rel=1e-5)


words = st.sampled_from(["yokohama", "nissan", "ship", "harbour", "lake", "横浜", "xylophone"])
texts = st.lists(words, max_size=12).map(" ".join)


class TestBest:
    @settings(max_examples=60)
    @given(st.lists(texts, max_size=14), texts, st.integers(0, 16), st.data())
    def test_the_best_are_the_first_of_all_by_score(
        self, corpus: list[str], question: str, k: int, data: st.DataObject
    ) -> None:
        index = bm25_of(corpus)
        shown = np.array([data.draw(st.booleans()) for _ in corpus], dtype=bool)
        scores = index.scores(question)
        ranked = [(int(i), float(scores[i])) for i in np.argsort(-scores, kind="stable") if scores[i] > 0]
        assert index.best(question, k) == ranked[:k]
        assert index.best(question, k, shown) == [hit for hit in ranked if shown[hit[0]]][:k]


class TestDamage:
    def test_a_file_of_fewer_numbers_or_with_one_that_leads_nowhere_is_refused(self, tmp_path: Path) -> None:
        write_bm25(CORPUS, tmp_path / "bm25")
        for name in ("numbers", "starts", "passages", "weights", "terms.text", "terms.bounds"):
            path = tmp_path / "bm25" / f"{name}.npy"
            array = np.load(path)
            damages = [array[:-1]]
            if name in ("numbers", "starts", "passages"):
                damages.append(np.where(np.arange(len(array)) == len(array) // 2, 10**6, array).astype(array.dtype))
            for damaged in damages:
                np.save(path, damaged)
                with pytest.raises(ValueError, match=r"\w"):
                    SparseIndex.load(tmp_path / "bm25", len(CORPUS))
            np.save(path, array)
