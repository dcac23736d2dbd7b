"""Upkeep of what indexing derived: how much edges are worth, and pruning those that are worth little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graph.errors import BadInput
from graph.relationships.concept_edges import EXPLAINS, RELATED_TO, EdgeKey, evidence_of
from graph.relationships.documents import forget_step
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType
from graph.relationships.tables import joined_tables, table_of_edges

PRUNABLE: Mapping[EdgeType, EdgeKey] = {key[0]: key for key in (EXPLAINS, RELATED_TO)}
"""The edges that may be pruned: those that indexing derives. What people said and did is never pruned."""

_SHOWN = 5
_QUARTILES = (0, 25, 50, 75, 100)

_VALUE = {
    EdgeType.EXPLAINS: "e.relevance_score * e.confidence",
    EdgeType.RELATED_TO: "e.confidence * e.documents / (e.documents + 1.0)",
}
_IN_USE = {
    EdgeType.EXPLAINS: (
        "EXISTS (SELECT 1 FROM mentions m JOIN references_message_document r ON r.source = m.source"
        " WHERE m.target = e.target AND r.target = e.source)"
    ),
    EdgeType.RELATED_TO: (
        "EXISTS (SELECT 1 FROM mentions m JOIN mentions o ON o.source = m.source"
        " WHERE m.target = e.source AND o.target = e.target)"
    ),
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the edges of a type are worth.

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
    """What pruning removes, or would.

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
    return [_evaluation(record, key) for key in PRUNABLE.values()]


def prune(
    record: RelationshipRecord, below: float, types: Sequence[EdgeType] = tuple(PRUNABLE), *, dry_run: bool = False
) -> list[Pruning]:
    """Remove the edges that are worth less than ``below``, in one transaction; with ``dry_run``, only tell which.

    Edges that conversations use stay: an EXPLAINS edge where a message mentions the concept and cites the document, a
    RELATED_TO edge where a message mentions both concepts. A pruned edge stays away for as long as indexing finds the
    same evidence for it, and comes back once that changes.

    Raises:
        BadInput: ``below`` is not within [0, 1], or a type is not one that indexing derives.
    """
    if not 0 <= below <= 1:
        raise BadInput(f"Edges cannot be worth less than {below}", "Give a number from 0 to 1")
    if unknown := next((of for of in types if of not in PRUNABLE), None):
        raise BadInput(f"{unknown} edges are not pruned", f"Choose from {', '.join(PRUNABLE)}")
    if dry_run:
        return [_weak(record, PRUNABLE[of], below)[0] for of in types]
    done = []
    with record.transaction():
        for of in types:
            pruning, edges = _weak(record, PRUNABLE[of], below)
            for edge in edges:
                _remember(record, edge)
                record.unlink(edge)
            done.append(pruning)
    return done


def restore(record: RelationshipRecord) -> int:
    """Let all pruned edges come back with the next step; return how many were pruned."""
    with record.transaction():
        restored = record.execute("DELETE FROM pruned").rowcount
        if restored:
            forget_step(record)
    return restored


def n_pruned(record: RelationshipRecord) -> int:
    """Return how many edges were pruned, and stay so."""
    return int(record.execute("SELECT count(*) FROM pruned").fetchone()[0])


def _evaluation(record: RelationshipRecord, key: EdgeKey) -> Evaluation:
    of, table = key[0], table_of_edges(*key)
    values = np.fromiter((row[0] for row in record.execute(f'SELECT {_VALUE[of]} FROM "{table}" e')), dtype=np.float64)
    ((in_use,),) = record.execute(f'SELECT count(*) FROM "{table}" e WHERE {_IN_USE[of]}')
    ((pruned,),) = record.execute("SELECT count(*) FROM pruned WHERE type = ?", (of.value,))
    quartiles = np.percentile(values, _QUARTILES).round(4).tolist() if len(values) else []
    return Evaluation(of, len(values), in_use, tuple(quartiles), pruned)


def _weak(record: RelationshipRecord, key: EdgeKey, below: float) -> tuple[Pruning, list[Edge]]:
    """Return what is worth too little, and the edges themselves, of least value first."""
    of = key[0]
    weak = f"WHERE {_VALUE[of]} < ? AND NOT {_IN_USE[of]} ORDER BY {_VALUE[of]}, a.id, b.id"
    edges = list(record.edges(*key, weak, (below,)))
    first = "a.title" if of is EdgeType.EXPLAINS else "a.name"
    query = f"SELECT {first}, b.name, {_VALUE[of]} FROM {joined_tables(*key)} {weak} LIMIT {_SHOWN}"
    examples = tuple((one, other, round(value, 4)) for one, other, value in record.execute(query, (below,)))
    ((total,),) = record.execute(f'SELECT count(*) FROM "{table_of_edges(*key)}"')
    return Pruning(of, total, len(edges), examples), edges


def _remember(record: RelationshipRecord, edge: Edge) -> None:
    values = (edge.type.value, edge.source[1], edge.target[1], evidence_of(edge.properties))
    record.execute(
        "INSERT INTO pruned VALUES (?, ?, ?, ?)"
        " ON CONFLICT (type, source, target) DO UPDATE SET evidence = excluded.evidence",
        values,
    )
