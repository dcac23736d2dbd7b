"""Names of a workspace that may be one, with what speaks for it, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph.construction.edges import IS_SYNONYM_KIND
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.corrections.apply import Corrections
from graph.environment import refresh_environment
from graph.review.proposals import LEAST_SCORE, Review
from graph.schema import entity_id
from workflows.admin.inspection import published_graph


def review_names(root: Path, limit: int = 20, least: float = LEAST_SCORE) -> dict[str, Any]:
    """Return proposals to merge names, the likeliest first; nothing is written.

    Pairs that are kept apart are left out; merged ones are one name already.

    Args:
        root: the workspace.
        limit: how many, at most.
        least: the score from which on a pair is proposed, 0 to 1.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
        WorkspaceLocked: no generation can be read, and another process is writing.
    """
    refresh_environment()
    with published_graph(root) as (record, graph):
        corrections = Corrections(record.corrections())
        review = Review(graph, near_names(graph), corrections.kept_apart())
        merges = review.merges(least)
        return {
            "workspace": str(root),
            "generation": graph.generation,
            "merges": [asdict(each) for each in merges[:limit]],
            "of_merges": len(merges),
        }


def near_names(graph: KnowledgeGraph) -> list[tuple[str, str, float]]:
    """Return (name id, name id, cosine) of names with near vectors."""
    ids = [entity_id(name) for name in graph.entity_names]
    edges = graph.edges
    near = IS_SYNONYM_KIND[edges.kind]
    columns = (column[near].tolist() for column in (edges.source, edges.target, edges.weight))
    return [(ids[a], ids[b], weight) for a, b, weight in zip(*columns, strict=True)]
