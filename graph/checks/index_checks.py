"""Checks of the derived files against the record: snapshot, word index, search index."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.checks.findings import Finding, judged, leftover, repairable, sound
from graph.construction.bm25 import SparseIndex
from graph.construction.edges import Edges
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.metadata_filter import FINGERPRINT
from graph.publish.search_indexes import SearchIndex
from graph.publish.vectors import passage_metadata
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
    store: SearchIndex,
    graph: KnowledgeGraph,
    record: RecordReader | None,
    others: Mapping[str, Collection[str]],
) -> list[Finding]:
    """Compare a search index with the generation that it serves.

    Args:
        store: it.
        graph: the generation's snapshot.
        record: what the snapshot was derived from; None where it has moved on, or gives another snapshot.
        others: ids of ``facts`` and ``passages`` of other generations that may be read, which a server keeps.
    """
    findings = []
    for name, wanted in ("facts", [*graph.facts]), ("passages", [*graph.passage_index]):
        changed = _changed_passages(store, graph, record) if name == "passages" and record is not None else []
        findings.append(_check_ids(store, name, graph.commit_id, wanted, changed, others[name]))
        if not findings[-1].ok:
            continue
        if name == "passages":
            findings.append(_check_vectors(store, name, wanted, lambda _, place: graph.passage_vectors[place]))
        elif record is None:
            findings.append(sound("search index: vectors of facts", _MOVED_ON))
        else:
            findings.append(_check_vectors(store, name, wanted, lambda ids, _: record.fact_vectors(ids)))
    return findings


def _check_ids(
    store: SearchIndex, name: str, commit: str, wanted: Sequence[str], changed: Sequence[str], others: Collection[str]
) -> Finding:
    check = f"search index: {name}"
    stamp = store.stamp(name)
    if stamp is None:
        return repairable(check, f"The search index has no {name}")
    if stamp.writing or stamp.commit not in ("", commit):
        return repairable(check, f"Writing {name} to the search index was interrupted, or it is of another commit")
    held = store.fingerprints(name).keys()
    lacking, extra = set(wanted) - held, held - set(wanted)
    problem = f"Of the {name}, {len(lacking)} are missing, {len(extra)} too many and {len(changed)} of another state"
    wrong = [*lacking, *changed, *(() if store.shared else extra)]
    unknown = extra - set(others)
    if not wrong and unknown:
        return leftover(check, f"{len(unknown)} {name} were left on the server by older generations", unknown)
    return judged(check, wrong, problem, f"The search index holds all {len(wanted)} {name}")


def _changed_passages(store: SearchIndex, graph: KnowledgeGraph, record: RecordReader) -> list[str]:
    """Return the ids of passages that the search index has in another state than the record."""
    held, states = store.fingerprints("passages"), record.stated_fingerprints()
    return [
        passage.id
        for passage in graph.passages
        if held.get(passage.id) is not None
        and held[passage.id] != passage_metadata(states[passage.id], passage.source, passage.metadata)[FINGERPRINT]
    ]


def _check_vectors(
    store: SearchIndex, name: str, wanted: Sequence[str], vectors: Callable[[Sequence[str], slice], NDArray[np.float32]]
) -> Finding:
    """Compare all vectors, some thousand at a time, and search for some of them.

    ``vectors`` returns those of some ids, which stand in a slice of those that are wanted.
    """
    check, odd, lost = f"search index: vectors of {name}", list[str](), list[str]()
    searched = range(0, len(wanted), max(1, len(wanted) // _SEARCHES))
    for start in range(0, len(wanted), _PAGE):
        page = wanted[start : start + _PAGE]
        right, held = vectors(page, slice(start, start + len(page))), store.vectors(name, page)
        odd += [key for key, vector in zip(page, right, strict=True) if not _is_same(held.get(key), vector)]
        asked = [row - start for row in searched if start <= row < start + len(page)] if not odd else []
        lost += [page[row] for row in asked if not _finds(store.search(name, right[row], 1))]
    if odd:
        return repairable(check, f"{len(odd)} vectors of {name} are not those of the record", odd)
    problem = f"A search among the {name} does not find what is there"
    return judged(check, lost, problem, f"All {len(wanted)} vectors of {name} are those of the record, and are found")


def _finds(hits: Sequence[tuple[str, float]]) -> bool:
    return bool(hits) and hits[0][1] >= 1 - _VECTOR_TOLERANCE


def _is_same(held: NDArray[np.float32] | None, vector: NDArray[np.float32]) -> bool:
    if held is None or held.shape != vector.shape:
        return False
    return bool(np.abs(held - vector).max() <= _VECTOR_TOLERANCE)
