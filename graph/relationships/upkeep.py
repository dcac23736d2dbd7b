"""Upkeep of what indexing derived: how much edges are worth, and pruning those that are worth little."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.relationships.concept_view import PRUNABLE, evidence_of
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType
from graph.relationships.tables import along

_SHOWN = 5
_QUARTILES = (0, 25, 50, 75, 100)

_IN_USE = {
    EdgeType.EXPLAINS: f"""
        SELECT DISTINCT document.id, concept.id
        FROM {along("concept <-mentions- message -references_message_document-> document")}""",
    EdgeType.RELATED_TO: """
        SELECT DISTINCT a.id, b.id FROM mentions m JOIN mentions o ON o.source = m.source
        JOIN concept a ON a.key = m.target JOIN concept b ON b.key = o.target WHERE a.id < b.id""",
}
"""Selects the ends of the edges that conversations use, some of which there may not be."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of the edges of a type.

    Attributes:
        type: of the edges.
        edges: how many there are.
        in_use: how many of them conversations use, see `prune`.
        quartiles: the least value, the quartiles and the largest one; empty where there is no edge.
        pruned: how many were pruned, and stay so.
    """

    type: EdgeType
    edges: int
    in_use: int
    quartiles: tuple[float, ...]
    pruned: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """The edges that pruning removes, or would.

    Attributes:
        type: of the edges.
        edges: how many there were.
        pruned: how many of them go.
        examples: some of those, as (name of one end, name of the other, value), of least value first.
    """

    type: EdgeType
    edges: int
    pruned: int
    examples: tuple[tuple[str, str, float], ...]


def evaluate(record: RelationshipRecord) -> list[Evaluation]:
    """Return what the edges are worth now, by type; nothing is written.

    An EXPLAINS edge is worth relevance x confidence, a RELATED_TO edge confidence x n / (n + 1) of its n documents.
    """
    return [_evaluation(record, of) for of in PRUNABLE]


def prune(record: RelationshipRecord, below: float, *, dry_run: bool = False) -> list[Pruning]:
    """Remove the edges that are worth less than ``below``, in one transaction; with ``dry_run``, only tell which.

    Edges that conversations use stay: an EXPLAINS edge where a message mentions the concept and cites the document, a
    RELATED_TO edge where a message mentions both concepts. So do those that a user wrote over a generation's. A pruned
    edge stays away for as long as indexing finds the same evidence for it, and comes back once that changes.

    Raises:
        BadInput: ``below`` is not within [0, 1].
    """
    if not 0 <= below <= 1:
        raise BadInput(f"Edges cannot be worth less than {below}", "Give a number from 0 to 1")
    with nullcontext() if dry_run else record.transaction():
        done = [_weak(record, of, below) for of in PRUNABLE]
        if not dry_run:
            for edge in (edge for _, edges in done for edge in edges):
                _remember(record, edge)
                record.unlink(edge)
            record.note_laid_over()
    return [pruning for pruning, _ in done]


def restore(record: RelationshipRecord) -> int:
    """Bring all pruned edges back; return how many were pruned."""
    with record.transaction():
        restored = record.execute("DELETE FROM pruned").rowcount
        if restored:
            record.note_laid_over()
    return restored


def n_pruned(record: RelationshipRecord) -> int:
    """Return how many edges were pruned, and stay so."""
    return int(record.execute("SELECT count(*) FROM pruned").fetchone()[0])


def _evaluation(record: RelationshipRecord, of: EdgeType) -> Evaluation:
    values = _values(record, of)
    ((pruned,),) = record.execute("SELECT count(*) FROM pruned WHERE type = ?", (of.value,))
    quartiles = np.percentile(values, _QUARTILES).round(4).tolist() if len(values) else []
    return Evaluation(of, len(values), int(_in_use(record, of).sum()), tuple(quartiles), pruned)


def _weak(record: RelationshipRecord, of: EdgeType, below: float) -> tuple[Pruning, list[Edge]]:
    """Return what is worth too little, and the edges themselves, of least value first."""
    concepts, values = record.concepts, _values(record, of)
    rows = np.flatnonzero((values < below) & ~_in_use(record, of)).tolist()
    weak = {row: concepts.edge_at(of, row) for row in rows}
    ordered = sorted(rows, key=lambda row: (values.item(row), weak[row].source[1], weak[row].target[1]))
    edges = [weak[row] for row in ordered]
    shown = [
        (*_named(record, edge), round(values.item(row), 4)) for row, edge in zip(ordered[:_SHOWN], edges, strict=False)
    ]
    return Pruning(of, len(values), len(edges), tuple(shown)), edges


def _values(record: RelationshipRecord, of: EdgeType) -> NDArray[np.float64]:
    links = record.concepts.links(of)
    share = links.weights if of is EdgeType.EXPLAINS else links.weights / (links.weights + 1.0)
    return share * links.confidence


def _in_use(record: RelationshipRecord, of: EdgeType) -> NDArray[np.bool_]:
    """Tell of each edge of a type whether conversations use it, or a user wrote it."""
    concepts, used = record.concepts, np.zeros(len(_values(record, of)), dtype=bool)
    ends = chain(record.execute(_IN_USE[of]), concepts.stated_ends(of))
    places = (concepts.row(of, source, target) for source, target in ends)
    used[[place for place in places if place is not None]] = True
    return used


def _named(record: RelationshipRecord, edge: Edge) -> tuple[str, str]:
    """Return how the ends of an edge are shown."""
    label = record.concepts.label
    document = record.node(*edge.source) if edge.type is EdgeType.EXPLAINS else None
    first = document.properties["title"] if document else label(edge.source[1])
    return str(first), str(label(edge.target[1]))


def _remember(record: RelationshipRecord, edge: Edge) -> None:
    values = (edge.type.value, edge.source[1], edge.target[1], evidence_of(edge.properties))
    record.execute(
        "INSERT INTO pruned VALUES (?, ?, ?, ?)"
        " ON CONFLICT (type, source, target) DO UPDATE SET evidence = excluded.evidence",
        values,
    )
