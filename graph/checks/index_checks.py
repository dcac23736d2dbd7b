"""Checks of the derived files against the record: snapshot, word index, search index."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.checks.findings import Finding, judged, repairable, sound
from graph.construction.bm25 import SparseIndex
from graph.construction.edges import Edges
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.publish.generation_vectors import GenerationVectors
from graph.storage.record import RecordReader

WEIGHT_TOLERANCE = 1e-6
_VECTOR_TOLERANCE = 2.5e-4
"""Half precision, which many facts are mapped in, is half of that from what it stands for."""

_PAGE = 5_000
_SEARCHES = 20
_MOVED_ON = "The vectors of facts are not looked at: the record has moved on"
_WEIGHTS = ("weight", "count")


def open_snapshot(folder: Path) -> tuple[Finding, KnowledgeGraph | None]:
    """Read a snapshot, all of its numbers and texts."""
    try:
        graph = load(folder, thorough=True)
        named = chain(graph.entity_names, graph.entity_labels, graph.aliases)
        deque(chain(named, graph.passages, graph.facts, graph.facts.rows), maxlen=0)
    except (OSError, ValueError) as fault:
        return repairable("snapshot", f"The snapshot cannot be read ({fault})", [folder.name]), None
    message = f"{len(graph.passages)} passages, {graph.n_entities} entities, {len(graph.edges)} edges can be read"
    return sound("snapshot", message), graph


def compare_snapshot(graph: KnowledgeGraph, fresh: KnowledgeGraph) -> Finding:
    """Compare a snapshot with what the record gives now, edge for edge."""
    fine = "The snapshot is what the record gives, edge for edge"
    differing = [*_differences(graph, fresh)]
    return judged("snapshot and record", differing, "The snapshot is not what the record gives", fine)


def _differences(graph: KnowledgeGraph, fresh: KnowledgeGraph) -> Iterator[str]:
    """Yield the names of what differs."""
    for name in ("generation", "embedding_model", "entity_names", "entity_labels", "passages", "aliases"):
        if getattr(graph, name) != getattr(fresh, name):
            yield name.replace("_", " ")
    for name in ("triple_passages", "name_passages", "name_shares", "passage_vectors"):
        if not np.array_equal(getattr(graph, name), getattr(fresh, name)):
            yield name.replace("_", " ")
    if ([*graph.facts], graph.facts.rows) != ([*fresh.facts], fresh.facts.rows):
        yield "facts"
    if _spellings(graph) != _spellings(fresh):
        yield "spellings"
    for column in fields(Edges):
        held, right = getattr(graph.edges, column.name), getattr(fresh.edges, column.name)
        tolerance = WEIGHT_TOLERANCE if column.name in _WEIGHTS else 0
        if held.shape != right.shape or not np.allclose(held, right, rtol=tolerance, atol=tolerance):
            yield f"edges: {column.name}"
    if not all(map(np.array_equal, _arcs(graph), _arcs(fresh))):
        yield "arcs"


def _arcs(graph: KnowledgeGraph) -> list[NDArray[Any]]:
    """Return all that a walk reads of a snapshot's edges beside them, but for weights, which rounding may change."""
    arcs = graph.typed.arcs
    return [arcs.forward.starts, *arcs.backward[:3], arcs.counts]


def _spellings(graph: KnowledgeGraph) -> list[dict[str, list[int]]]:
    """Return what the matcher of names knows; the order of names that are spelled alike says nothing."""
    return [{key: sorted(found) for key, found in part.items()} for part in (graph.names.indices, graph.names.lengths)]


def check_words(folder: Path, n_passages: int, fresh: Path | None) -> Finding:
    """Read a generation's word index, and compare it with that of a fresh one in another folder, if there is one."""
    check = "word index"
    try:
        terms, weights = _weights_of_words(folder / "bm25", n_passages)
    except Exception as fault:
        # Whatever a damaged file makes its reader raise.
        return repairable(check, f"The word index cannot be read ({type(fault).__name__}: {fault})")
    if fresh is None:
        return sound(check, f"The word index can be read: {len(terms)} terms")
    right_terms, right = _weights_of_words(fresh / "bm25", n_passages)
    if terms != right_terms or (weights != right).nnz:
        return repairable(check, "The word index is not what the record gives")
    return sound(check, f"The word index is what the record gives: {len(terms)} terms")


def _weights_of_words(folder: Path, n_passages: int) -> tuple[list[str], Any]:
    """Return the terms of a word index that stand in any passage, sorted, and its matrix of (passage, term)."""
    from scipy.sparse import csc_array

    index = SparseIndex.load(folder, n_passages, thorough=True)
    shape = (n_passages, len(index.starts) - 1)
    matrix = csc_array((index.weights, index.passages, index.starts), shape=shape)
    weighed = set(np.flatnonzero(np.diff(index.starts)).tolist())
    numbers = {term: number for term, number in index.numbers.items() if number in weighed}
    return [*numbers], matrix[:, [*numbers.values()]]


def check_search_index(
    vectors: GenerationVectors, graph: KnowledgeGraph, record: RecordReader | None
) -> Iterator[Finding]:
    """Compare the vectors of a generation with its snapshot and its record, and search for some of them.

    Args:
        vectors: as they can be opened, which tells that all are there.
        graph: the generation's snapshot.
        record: what the snapshot was derived from; None where it has moved on, or gives another snapshot.
    """
    facts, passages = graph.facts.ids, graph.passage_vectors
    yield _check_vectors(vectors, "passages", len(passages), lambda page: passages[page])
    if record is None:
        yield sound("search index: vectors of facts", _MOVED_ON)
    else:
        yield _check_vectors(vectors, "facts", len(facts), lambda page: record.fact_vectors([*facts[page]]))


def _check_vectors(
    vectors: GenerationVectors, name: str, count: int, read: Callable[[slice], NDArray[np.float32]]
) -> Finding:
    """Compare all vectors, some thousand at a time, and search for some; ``read`` returns what a slice should be."""
    check, odd, lost = f"search index: vectors of {name}", 0, 0
    searched = range(0, count, max(1, count // _SEARCHES))
    for start in range(0, count, _PAGE):
        page = range(start, min(start + _PAGE, count))
        right, held = read(slice(page.start, page.stop)), vectors.vectors(name, page)
        odd += int((np.abs(held - right).max(axis=1) > _VECTOR_TOLERANCE).sum())
        lost += sum(not _finds(vectors.search(name, right[row - start], 1)) for row in searched if row in page)
    if odd:
        return repairable(check, f"{odd} vectors of {name} are not those of the record")
    if lost:
        return repairable(check, f"A search among the {name} does not find what is there")
    return sound(check, f"All {count} vectors of {name} are those of the record, and are found")


def _finds(hits: Sequence[tuple[int, float]]) -> bool:
    return bool(hits) and hits[0][1] >= 1 - _VECTOR_TOLERANCE
