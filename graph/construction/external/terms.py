"""The BM25 index: the terms of all shards, in the order in which they first stand, with the scores of passages."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graph.construction.bm25 import SparseIndex, inverse_frequency, mean_length, term_scores
from graph.construction.external.arrays import ArrayWriter, join_arrays, joined
from graph.construction.external.layout import Layout, rows_of

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


@dataclass(frozen=True, slots=True)
class TermsTask:
    """A task: to compute the scores of a range of terms.

    Attributes:
        start, end: the range.
        mean: how many terms a passage has.
    """

    layout: Layout
    part: int
    start: int
    end: int
    mean: float


def terms_tasks(layout: Layout) -> list[TermsTask]:
    """Return the tasks that compute all scores."""
    mean = mean_length(layout.whole.array("term_counts")) if layout.n_passages else 1.0
    ends = np.cumsum(layout.whole.array("term_frequency"))
    total = int(ends[-1]) if len(ends) else 0
    cut = np.searchsorted(ends, np.arange(_IN_RANGE, total, _IN_RANGE)).tolist()
    bounds = sorted({0, *cut, len(ends)})
    return [TermsTask(layout, part, start, end, mean) for part, (start, end) in enumerate(itertools.pairwise(bounds))]


def score_terms(task: TermsTask) -> None:
    """Write the scores of a range of terms, term by term, and in which passages they are."""
    columns: dict[str, list[np.ndarray]] = {"posting_terms": [], "posting_passages": [], "posting_times": []}
    for index in range(len(task.layout.shards)):
        own = task.layout.of_shard(index)
        rows = rows_of(own.array("posting_terms"), task.start, task.end)
        for name, parts in columns.items():
            # A copy: a map of each shard's file would take as many open files.
            parts.append(np.array(own.array(name)[rows]))
    terms, passages, times = (joined(parts, np.int32) for parts in columns.values())
    order = np.argsort(terms, kind="stable")
    terms, passages, times = terms[order], passages[order], times[order]
    whole = task.layout.whole
    scores = term_scores(whole.array("term_weights")[terms], times, whole.array("term_counts")[passages], task.mean)
    task.layout.of_part("terms", task.part).save(scores=scores, passages=passages)


def join_terms(layout: Layout, parts: int, vocabulary: list[str], folder: Path) -> None:
    """Write the BM25 index of all terms into a generation's folder."""
    whole = layout.whole.folder
    for name, kind in (("scores", np.float32), ("passages", np.int32)):
        paths = [layout.of_part("terms", part).folder / f"{name}.npy" for part in range(parts)]
        join_arrays(paths, whole / f"{name}.npy", kind)
    starts = np.cumsum([0, *layout.whole.array("term_frequency").tolist()])
    index = SparseIndex.of_scores(
        layout.whole.array("scores"), layout.whole.array("passages"), starts, vocabulary, layout.n_passages
    )
    index.save(folder)
