"""What a workspace holds, in numbers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from graph.edges import EDGE_KINDS
from graph.embeddings import configured_embedder
from graph.index import open_index
from graph.knowledge_graph import KnowledgeGraph
from graph.workspace import Workspace


def workspace_stats(root: Path) -> dict[str, Any]:
    """Return counts of passages, entities, facts and edges by type, and the models of a workspace.

    Raises:
        WorkspaceMissing: there is none, or it is empty.
        EmbeddingMismatch: another embedding model wrote it.
    """
    index = open_index(root, configured_embedder())
    try:
        with Workspace(root).open_record() as record:
            extractors = Counter(record.extractors().values())
            workspace_id, dimension, complete = record.workspace_id, record.dimension, record.complete
        return {
            "workspace": str(root),
            "workspace_id": workspace_id,
            "generation": index.graph.generation,
            "complete": complete,
            **_counts(index.graph),
            "extractors": dict(sorted(extractors.items())),
            "models": {"embedding": index.embedder.model_id, "store": index.store_name},
            "dimension": dimension,
            "bytes": sum(path.stat().st_size for path in root.rglob("*") if path.is_file()),
        }
    finally:
        index.close()


def _counts(graph: KnowledgeGraph) -> dict[str, Any]:
    kinds = Counter(graph.edges.kind.tolist())
    by_type: Counter[str] = Counter()
    by_link: Counter[str] = Counter()
    for kind, count in kinds.items():
        by_type[EDGE_KINDS[kind].relation.value] += count
        link = EDGE_KINDS[kind].link
        if link is not None:
            by_link[link.value] += count
    degree = np.bincount(np.concatenate([graph.edges.source, graph.edges.target]), minlength=graph.n_nodes)
    with_facts = np.unique(graph.fact_passages.values)
    return {
        "passages": len(graph.passages),
        "entities": graph.n_entities,
        "facts": len(graph.facts),
        "edges": len(graph.edges),
        "edges_by_type": {kind.relation.value: by_type[kind.relation.value] for kind in EDGE_KINDS},
        "passage_edges_by_link": dict(sorted(by_link.items())),
        "passages_without_facts": len(graph.passages) - len(with_facts),
        "isolated_nodes": int((degree == 0).sum()),
        "median_degree": float(np.median(degree)) if len(degree) else 0.0,
        "max_degree": int(degree.max(initial=0)),
    }
