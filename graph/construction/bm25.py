"""BM25 over passages in any script, of an index that is mapped rather than loaded."""

from __future__ import annotations

import runpy
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import (
    ArrayWriter,
    LazySequence,
    SortedMapping,
    TextTable,
    check_bounds,
    check_range,
    load_array,
)
from graph.text import is_unspaced, tokens

_K1, _B = 1.5, 0.75


class SparseIndex:
    """A BM25 index (k1 1.5, b 0.75, Lucene's variant) over the passages of one generation.

    The scores of all terms are computed beforehand, as bm25s has it (Lù 2024); a question adds up those of its terms.

    Attributes:
        weights: of each term in each passage that holds it, term by term.
        passages: of each weight, ascending within a term.
        starts: where the weights of each term start, and the end.
        numbers: of the terms.
        n_passages: how many passages there are.
    """

    def __init__(
        self,
        weights: NDArray[np.float32],
        passages: NDArray[np.int32],
        starts: NDArray[np.int64],
        numbers: Mapping[str, int],
        n_passages: int,
    ) -> None:
        self.weights = weights
        self.passages = passages
        self.starts = starts
        self.numbers = numbers
        self.n_passages = n_passages

    @staticmethod
    def load(folder: Path, n_passages: int) -> SparseIndex:
        """Open an index; what is large stays on disk, memory-mapped, the terms included.

        Args:
            folder: holds it.
            n_passages: how many passages there are.

        Raises:
            OSError: a file cannot be read.
            ValueError: it is damaged.
        """
        table = TextTable.load(folder, "terms", 1)
        numbers = load_array(folder / "numbers.npy", np.int32, (len(table),))
        check_range(numbers, len(table))
        starts = load_array(folder / "starts.npy", np.int64, (len(table) + 1,))
        passages = load_array(folder / "passages.npy", np.int32, (None,))
        weights = load_array(folder / "weights.npy", np.float32, (len(passages),))
        check_bounds(starts, len(passages))
        check_range(passages, n_passages)
        by_term = SortedMapping(table.column(0), LazySequence(len(numbers), numbers.item))
        return SparseIndex(weights, passages, starts, by_term, n_passages)

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return the BM25 score of every passage, shape (n_passages,); zeros when no word is known."""
        return self._sums(question).astype(np.float64)

    def best(self, question: str, k: int, shown: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """Return (passage, score) of the best ``k`` passages that hold any word of a question, ties by index.

        Args:
            question: any text.
            k: how many are wanted.
            shown: whether each passage may be returned, shape (n_passages,).
        """
        sums = self._sums(question)
        near = np.flatnonzero(sums if shown is None else sums * shown)
        if 0 < k < len(near):
            near = near[sums[near] >= np.partition(sums[near], -k)[-k]]
        best = near[np.lexsort((near, -sums[near]))][: max(0, k)]
        return list(zip(best.tolist(), sums[best].astype(np.float64).tolist(), strict=True))

    def held_words(self, question: str, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the weight of each known word of a question, its IDF, and whether each of some passages holds it.

        Shapes (n_words,) and (n_words, n_rows).
        """
        numbers = [self.numbers[term] for term in dict.fromkeys(terms(question)) if term in self.numbers]
        holders = [self.passages[self.starts.item(number) : self.starts.item(number + 1)] for number in numbers]
        occurrences = [passages.take(np.searchsorted(passages, rows), mode="clip") == rows for passages in holders]
        weights = inverse_frequency(self.n_passages, np.array([*map(len, holders)], dtype=np.int64))
        return weights, np.array(occurrences, dtype=np.bool_).reshape(len(holders), len(rows))

    def _sums(self, question: str) -> NDArray[np.float32]:
        """Return of every passage the sum of its weights for each known term, as often as it stands in a question."""
        sums = np.zeros(self.n_passages, dtype=np.float32)
        for number in (self.numbers[term] for term in terms(question) if term in self.numbers):
            place = slice(self.starts.item(number), self.starts.item(number + 1))
            sums[self.passages[place]] += self.weights[place]
        return sums


def write_index(
    folder: Path,
    vocabulary: Mapping[str, int],
    frequency: NDArray[np.integer],
    lengths: NDArray[np.integer],
    postings: Iterable[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]],
) -> None:
    """Write an index into a folder, which is made.

    Args:
        folder: where it goes.
        vocabulary: the terms and their numbers.
        frequency: of each term, how many passages hold it.
        lengths: of each passage, how many terms it has.
        postings: terms, the passages that hold them, and how often they do, in ranges of terms that ascend.
    """
    folder.mkdir(parents=True)
    idf = inverse_frequency(max(1, len(lengths)), frequency)
    # A passage without any counts as one that holds a term that nothing matches.
    mean = float(np.maximum(1, lengths).mean()) if len(lengths) else 1.0
    with (
        ArrayWriter(folder / "weights.npy", np.float32) as weights,
        ArrayWriter(folder / "passages.npy", np.int32) as passages,
    ):
        for terms, holders, times in postings:
            order = np.argsort(terms, kind="stable")
            rows = holders[order]
            weights.append(term_scores(idf[terms[order]], times[order], lengths[rows], mean))
            passages.append(rows)
    ordered = sorted(vocabulary)
    TextTable.of_strings(ordered).save(folder, "terms")
    np.save(folder / "numbers.npy", np.array([vocabulary[term] for term in ordered], dtype=np.int32))
    np.save(folder / "starts.npy", np.cumsum([0, *frequency.tolist()]))


def inverse_frequency(n_passages: int, frequency: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the weight of terms that so many of all passages hold."""
    weights: NDArray[np.float64] = np.log1p((n_passages - frequency + 0.5) / (frequency + 0.5))
    return weights


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
    stems = [*map(_stem, text_tokens)]
    if None not in stems:
        return [*filter(None, stems)]
    search_terms: list[str] = []
    run: list[str] = []
    for token, stem in zip(text_tokens, stems, strict=True):
        if stem is None:
            run.append(token)
            continue
        if run:
            search_terms.extend(_pairs(run))
            run = []
        if stem:
            search_terms.append(stem)
    search_terms.extend(_pairs(run))
    return search_terms


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

    return Stemmer.Stemmer("english"), frozenset(stop_words()["STOPWORDS_EN"])


@lru_cache(maxsize=1)
def stop_words() -> Mapping[str, Sequence[str]]:
    """Return bm25s's lists of stop words by name, read without the package itself, which imports numba where it can."""
    return runpy.run_path(str(distribution("bm25s").locate_file("bm25s/stopwords.py")))
