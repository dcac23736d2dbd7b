"""The BM25 index: the terms of all shards, in the order in which they first stand, with the scores of passages."""

from __future__ import annotations

import numpy as np

from graph.construction.bm25 import SparseIndex, inverse_frequency, mean_length, term_scores
from graph.construction.external.arrays import ArrayWriter, join_arrays
from graph.construction.external.layout import Layout, even_ranges

_IN_RANGE = 1 << 23
"""Scores that are computed at once, more or less."""


def number_terms(layout: Layout) -> list[str]:
    """Write which term of all each shard's terms is, and how many passages hold each; return the terms."""
    vocabulary: dict[str, int] = {}
    frequency = np.zeros(0, dtype=np.int64)
    with ArrayWriter(layout.whole.folder / "term_counts.npy", np.int64) as lengths:
        for index, shard in enumerate(layout.shards):
            said = shard.columns
            numbers = [vocabulary.setdefault(term, len(vocabulary)) for term in said.strings("terms")]
            term_of = np.array(numbers, dtype=np.int32)
            frequency = np.concatenate([frequency, np.zeros(len(vocabulary) - len(frequency), dtype=np.int64)])
            posted, times = np.unique(said.array("posting_terms"), return_counts=True)
            frequency[term_of[posted]] += times
            lengths.append(said.array("term_counts"))
            terms = term_of[said.array("posting_terms")]
            order = np.argsort(terms, kind="stable")
            layout.of_shard(index).save(
                posting_terms=terms[order],
                posting_passages=said.array("posting_passages")[order] + np.int32(shard.start),
                posting_times=said.array("posting_times")[order],
            )
    layout.whole.save(
        term_frequency=frequency, term_weights=inverse_frequency(max(1, layout.n_passages), frequency.astype(np.int32))
    )
    return list(vocabulary)


def ranges_of_terms(layout: Layout) -> list[tuple[int, int]]:
    """Return the ranges of terms of which the scores are computed together."""
    return even_ranges(layout.whole.array("term_frequency"), _IN_RANGE)


def score_terms(layout: Layout, part: int, start: int, end: int) -> None:
    """Write the scores of a range of terms, term by term, and in which passages they are."""
    names = ("posting_terms", "posting_passages", "posting_times")
    terms, passages, times = layout.rows(names, [np.int32] * len(names), start, end)
    order = np.argsort(terms, kind="stable")
    terms, passages, times = terms[order], passages[order], times[order]
    lengths = layout.whole.array("term_counts")
    weights = layout.whole.array("term_weights")[terms]
    scores = term_scores(weights, times, lengths[passages], mean_length(lengths) if len(lengths) else 1.0)
    layout.of_part("terms", part).save(scores=scores, passages=passages)


def join_terms(layout: Layout, parts: int, vocabulary: list[str]) -> None:
    """Write the BM25 index of all terms into the generation's folder."""
    whole = layout.whole.folder
    for name, kind in (("scores", np.float32), ("passages", np.int32)):
        paths = [layout.of_part("terms", part).folder / f"{name}.npy" for part in range(parts)]
        join_arrays(paths, whole / f"{name}.npy", kind)
    starts = np.cumsum([0, *layout.whole.array("term_frequency").tolist()])
    index = SparseIndex.of_scores(
        layout.whole.array("scores"), layout.whole.array("passages"), starts, vocabulary, layout.n_passages
    )
    index.save(layout.folder / "bm25")
