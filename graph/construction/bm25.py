"""BM25 over passages in any script: bm25s with Unicode tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.text import is_unspaced, tokens

_K1, _B = 1.5, 0.75
_UNMATCHABLE = "\x00"


class SparseIndex:
    """A BM25 index (k1 1.5, b 0.75, Lucene's variant) over the passages of one generation."""

    def __init__(self, bm25: Any, n_passages: int) -> None:
        self._bm25 = bm25
        self._n_passages = n_passages

    @staticmethod
    def of_terms(passages: Sequence[NDArray[np.int32]], vocabulary: Sequence[str]) -> SparseIndex:
        """Index passages by their terms' numbers; the vocabulary may hold terms that no passage does.

        The scores are those of bm25s, all computed at once: a small change of a large corpus needs them anew.
        """
        from scipy.sparse import csr_array

        n_passages, n_terms = max(1, len(passages)), len(vocabulary)
        lengths = np.array([len(found) for found in passages] or [0])
        terms_held = np.concatenate([*passages, np.zeros(0, dtype=np.int32)])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        once = np.ones(len(terms_held), dtype=np.int32)
        counts = csr_array((once, terms_held, starts), shape=(n_passages, n_terms)).tocsc()
        counts.sum_duplicates()
        passage, frequency = counts.indices, np.diff(counts.indptr)
        idf = np.repeat(inverse_frequency(n_passages, frequency), frequency)
        scores = term_scores(idf, counts.data, lengths[passage], mean_length(lengths))
        return SparseIndex.of_scores(scores, passage, counts.indptr, vocabulary, len(passages))

    @staticmethod
    def of_scores(
        scores: NDArray[np.float32],
        passages: NDArray[np.integer],
        starts: NDArray[np.integer],
        vocabulary: Iterable[str],
        n_passages: int,
    ) -> SparseIndex:
        """Return the index of computed scores.

        Args:
            scores: of each term in each passage that holds it, term by term.
            passages: of each score.
            starts: where the scores of each term start, and the end.
            vocabulary: the terms.
            n_passages: how many passages there are.
        """
        import bm25s

        bm25 = bm25s.BM25(k1=_K1, b=_B, method="lucene")
        bm25.scores = {
            "data": scores.astype(np.float32, copy=False),
            "indices": passages.astype(np.int32, copy=False),
            "indptr": starts.astype(np.int64, copy=False),
            "num_docs": max(1, n_passages),
        }
        bm25.vocab_dict = {term: number for number, term in enumerate(vocabulary)} or {_UNMATCHABLE: 0}
        bm25.unique_token_ids_set = set(bm25.vocab_dict.values())
        bm25.nonoccurrence_array = None
        return SparseIndex(bm25, n_passages)

    def save(self, folder: Path) -> None:
        """Write the index into a folder."""
        self._bm25.save(str(folder), show_progress=False)

    @staticmethod
    def load(folder: Path, n_passages: int) -> SparseIndex:
        """Read an index, memory-mapped."""
        import bm25s

        return SparseIndex(bm25s.BM25.load(str(folder), mmap=True, show_progress=False), n_passages)

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return the BM25 score of every passage, shape (n_passages,); zeros when no word is known."""
        known = [term for term in terms(question) if term in self._bm25.vocab_dict]
        if not known:
            return np.zeros(self._n_passages)
        return np.asarray(self._bm25.get_scores(known), dtype=np.float64)


def mean_length(lengths: NDArray[np.integer]) -> float:
    """Return the mean number of terms; a passage without any counts as one that holds the unmatchable term."""
    return float(np.maximum(1, lengths).mean())


def inverse_frequency(n_passages: int, frequency: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the weight of terms that so many of all passages hold."""
    return np.log1p((n_passages - frequency + 0.5) / (frequency + 0.5))


def term_scores(
    idf: NDArray[np.float64], times: NDArray[np.integer], lengths: NDArray[np.integer], mean: float
) -> NDArray[np.float32]:
    """Return the scores of terms in passages, one element each.

    Args:
        idf: of the term.
        times: how often the passage holds it.
        lengths: how many terms the passage has.
        mean: of the lengths of all passages.
    """
    length_part = _K1 * (1 - _B + _B * lengths / mean)
    return (idf * times / (times + length_part)).astype(np.float32)


def terms(text: str) -> list[str]:
    """Split text into search terms: stemmed words without English stop words, pairs of unspaced characters.

    Where a script is written without spaces, neighbouring characters pair up; one without a neighbour stands alone.
    """
    return terms_of(tokens(text))


def terms_of(text_tokens: Sequence[str]) -> list[str]:
    """Return the search terms of a text's tokens, see `terms`."""
    found: list[str] = []
    run: list[str] = []
    for token in text_tokens:
        stem = _stem(token)
        if stem is None:
            run.append(token)
            continue
        if run:
            found.extend(_pairs(run))
            run = []
        if stem:
            found.append(stem)
    found.extend(_pairs(run))
    return found


def _pairs(run: Sequence[str]) -> Iterable[str]:
    return map(str.__add__, run, run[1:]) if len(run) > 1 else run


@lru_cache(maxsize=50_000)
def _stem(token: str) -> str | None:
    """Return a word's stem; nothing of a stop word; None for a character of an unspaced script."""
    if is_unspaced(token):
        return None
    stemmer, stop = _english()
    return "" if token in stop else str(stemmer.stemWord(token))


@lru_cache(maxsize=1)
def _english() -> tuple[Any, frozenset[str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    return Stemmer.Stemmer("english"), frozenset(STOPWORDS_EN)
