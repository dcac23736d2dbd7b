"""BM25 over passages in any script: bm25s with Unicode tokens."""

from __future__ import annotations

from collections.abc import Sequence
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
    def build(contents: Sequence[str]) -> SparseIndex:
        """Index the passages' contents, in order."""
        import bm25s

        bm25 = bm25s.BM25(k1=_K1, b=_B, method="lucene")
        # What holds no word cannot be indexed; the unmatchable token stands for its emptiness.
        corpus = [terms(content) or [_UNMATCHABLE] for content in contents] or [[_UNMATCHABLE]]
        bm25.index(corpus, show_progress=False)
        return SparseIndex(bm25, len(contents))

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


def terms(text: str) -> list[str]:
    """Split text into search terms: stemmed words without English stop words, pairs of unspaced characters.

    Where a script is written without spaces, neighbouring characters pair up; one without a neighbour stands alone.
    """
    stem, stop = _english()
    found: list[str] = []
    run: list[str] = []
    for token in [*tokens(text), ""]:
        if token and is_unspaced(token):
            run.append(token)
            continue
        found.extend(map(str.__add__, run, run[1:]) if len(run) > 1 else run)
        run = []
        if token and token not in stop:
            found.append(stem(token))
    return found


@lru_cache(maxsize=1)
def _english() -> tuple[Any, frozenset[str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stemmer = Stemmer.Stemmer("english", 100_000)
    return stemmer.stemWord, frozenset(STOPWORDS_EN)
