"""An embedding model that takes no time: words by their letters, invented ones weighing more than known ones.

It stands for a real one where millions of texts are to be embedded: names of one family have a cosine of about 0.8 and
more, names that are spelled nearly alike about as much, others hardly any, and a passage is near the names that it
spells. It knows nothing of what words mean.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.growth.corpus import KNOWN_WORDS

DIMENSION = 384
_GRAMS = 1 << 15
_KNOWN_WEIGHT = 0.3
_BLOCK = 4_096


class NameEmbedder:
    """Unit vectors: the weighted sum of a text's words, each of them the sum of its pairs and triples of letters."""

    model_id = "synthetic-names"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), 384)."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for start in range(0, len(texts), _BLOCK):
            vectors[start : start + _BLOCK] = self._block(texts[start : start + _BLOCK])
        return vectors

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        """Return the question's unit vector, shape (384,); the instruction changes nothing."""
        vector: NDArray[np.float32] = self.embed([question])[0]
        return vector

    def understands(self, text: str) -> bool:
        """Return True: letters of every script are alike to it."""
        return True

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return 1 for each text."""
        return [1] * len(texts)

    def _block(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from scipy.sparse import csr_array

        places: dict[str, int] = {}
        held = [[places.setdefault(word, len(places)) for word in _words_of(text)] for text in texts]
        weights = np.array([_KNOWN_WEIGHT if word in KNOWN_WORDS else 1.0 for word in places], dtype=np.float32)
        indices, starts = _flat(held)
        sums = csr_array((weights[indices], indices, starts), shape=(len(texts), len(places))) @ self._words([*places])
        return _unit(sums)

    def _words(self, words: Sequence[str]) -> NDArray[np.float32]:
        from scipy.sparse import csr_array

        indices, starts = _flat([_grams(word) for word in words])
        ones = np.ones(len(indices), dtype=np.float32)
        sums = csr_array((ones, indices, starts), shape=(len(words), _GRAMS)) @ self._table
        return _unit(sums)

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        return np.random.default_rng(0).standard_normal((_GRAMS, DIMENSION), dtype=np.float32)


def _words_of(text: str) -> list[str]:
    """Return the words of a text of the corpus: what `graph.text.tokens` finds in any text takes ten times as long."""
    return text.casefold().replace(".", " ").replace(",", " ").replace("?", " ").split()


@lru_cache(maxsize=200_000)
def _grams(word: str) -> list[int]:
    marked = f"<{word}>".encode()
    return [zlib.crc32(marked[at : at + n]) % _GRAMS for n in (2, 3) for at in range(len(marked) - n + 1)]


def _unit(sums: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def _flat(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    return np.array([value for each in lists for value in each], dtype=np.int64), starts
