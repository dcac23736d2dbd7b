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

from graph.construction.arrays import ArrayWriter
from graph.construction.columns import LazySequence, SortedMapping, TextTable, check_bounds, check_range, load_array
from graph.text import is_unspaced, tokens

_K1, _B = 1.5, 0.75
_SCANNED = 8
"""The sums of so many passages are read in the time that one takes whose place is looked up."""


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
        self._sums: list[NDArray[np.float32]] = []

    @staticmethod
    def load(folder: Path, n_passages: int, *, thorough: bool = False) -> SparseIndex:
        """Open an index; what is large stays on disk, memory-mapped, the terms included.

        Args:
            folder: holds it.
            n_passages: how many passages there are.
            thorough: look at every number of what is large, too.

        Raises:
            OSError: a file cannot be read.
            ValueError: it is damaged.
        """
        table = TextTable.load(folder, "terms", 1, thorough=thorough)
        numbers = load_array(folder / "numbers.npy", np.int32, (len(table),))
        check_range(numbers, len(table), thorough=thorough)
        starts = load_array(folder / "starts.npy", np.int64, (len(table) + 1,))
        passages = load_array(folder / "passages.npy", np.int32, (None,))
        weights = load_array(folder / "weights.npy", np.float32, (len(passages),))
        check_bounds(starts, len(passages), thorough=thorough)
        check_range(passages, n_passages, thorough=thorough)
        by_term = SortedMapping(table.column(0), LazySequence(len(numbers), numbers.item))
        return SparseIndex(weights, passages, starts, by_term, n_passages)

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return the BM25 score of every passage, shape (n_passages,); zeros when no word is known."""
        scores = np.zeros(self.n_passages, dtype=np.float32)
        for passages, weights in self._postings(question):
            scores[passages] += weights
        return scores.astype(np.float64)

    def best(self, question: str, k: int, shown: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """Return (passage, score) of the best ``k`` passages that hold any word of a question, ties by index.

        The time is that of going through the passages that hold each word. The sums of all are gone through only where
        these are many.

        Args:
            question: any text.
            k: how many are wanted.
            shown: whether each passage may be returned, shape (n_passages,).
        """
        postings = self._postings(question)
        if k < 1 or not postings:
            return []
        try:
            # Made once for each question at a time, and put back as zeros.
            sums = self._sums.pop()
        except IndexError:
            sums = np.zeros(self.n_passages, dtype=np.float32)
        for passages, weights in postings:
            sums[passages] += weights
        rows_of_terms = [passages for passages, _ in postings]
        is_scanned = sum(map(len, rows_of_terms)) * _SCANNED > len(sums)
        near = _near(sums, rows_of_terms, k, shown, is_scanned=is_scanned)
        best_sums = sums[near]
        if is_scanned:
            sums[:] = 0
        for passages in rows_of_terms if not is_scanned else ():
            sums[passages] = 0
        self._sums.append(sums)
        order = np.lexsort((near, -best_sums))[:k]
        return list(zip(near[order].tolist(), best_sums[order].astype(np.float64).tolist(), strict=True))

    def held_words(self, question: str, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the weight of each known word of a question, its IDF, and whether each of some passages holds it.

        Shapes (n_words,) and (n_words, n_rows).
        """
        numbers = [self.numbers[term] for term in dict.fromkeys(terms(question)) if term in self.numbers]
        holders = [self.passages[self.starts.item(number) : self.starts.item(number + 1)] for number in numbers]
        occurrences = [passages.take(np.searchsorted(passages, rows), mode="clip") == rows for passages in holders]
        weights = inverse_frequency(self.n_passages, np.array([*map(len, holders)], dtype=np.int64))
        return weights, np.array(occurrences, dtype=np.bool_).reshape(len(holders), len(rows))

    def _postings(self, question: str) -> list[tuple[NDArray[np.intp], NDArray[np.float32]]]:
        """Return passages and weights of each known term of a question, as often as it stands there."""
        known = [number for term in terms(question) if (number := self.numbers.get(term)) is not None]
        places = [slice(self.starts.item(number), self.starts.item(number + 1)) for number in known]
        return [(self.passages[place].astype(np.intp), self.weights[place]) for place in places]


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


def _near(
    sums: NDArray[np.float32],
    postings: Sequence[NDArray[np.intp]],
    k: int,
    shown: NDArray[np.bool_] | None,
    *,
    is_scanned: bool,
) -> NDArray[np.intp]:
    """Return passages among which the best ``k`` are, ascending.

    The passages of one term differ: the k-th best of them is no better than the k-th best of all.
    """
    parts = postings if shown is None else [passages[shown[passages]] for passages in postings]
    rarest = min((passages for passages in parts if len(passages) >= k), key=len, default=None)
    least = np.float32(0) if rarest is None else np.partition(sums[rarest], -k)[-k]
    if not is_scanned:
        return np.unique(np.concatenate([passages[sums[passages] >= least] for passages in parts]))
    near = np.flatnonzero(sums >= least if least > 0 else sums)
    return near if shown is None else near[shown[near]]


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
