"""Relation matrices: the graph as one sparse matrix a relation, in files that scipy alone can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graph.construction.edges import EDGE_KINDS, TypedGraph
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.errors import BadInput
from graph.relations import fact_relations
from graph.retrieve.modes import MARA_MATRIX, MatrixWeights
from graph.schema import PASSAGE_RELATIONS, RelationType, entity_id

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FORMAT = "mara relation matrices"
FORMAT_VERSION = 1

METADATA_FILE = "graph_metadata.json"
UNFINISHED_FILE = f"{METADATA_FILE}.unfinished"
"""The metadata's name until every matrix is written: an interrupted export has this file in place of the other."""


def matrices_of(own: Sequence[RelationType] = ()) -> Mapping[str, tuple[RelationType, ...]]:
    """Return the matrices of a graph with some own relation types, and the relation types whose edges each holds."""
    return {
        **{relation.lower(): (relation,) for relation in fact_relations(own)},
        "synonym": (RelationType.SYNONYMY,),
        "passage": PASSAGE_RELATIONS,
    }


def formula_of(own: Sequence[RelationType] = ()) -> str:
    """Return the formula of a question's matrix and of the walk on it (MARA-RAG)."""
    return (
        f"A = {' + '.join(f'w_{r.lower()} M_{r.lower()}' for r in fact_relations(own))} + M_synonym + M_passage,"
        " w_r = the question's factor of relation r; P = A with each column divided by its sum;"
        f" scores = (1 - d) restart + d P scores, d = {MARA_MATRIX.damping} in mode mara-matrix;"
        " a column without entries stands for the restart, which sums to 1"
    )


_MEANINGS: Mapping[MatrixWeights, Mapping[str, str]] = {
    MatrixWeights.COUNTS: {
        "fact": "how many triples link the two entities",
        "synonym": "cosine of the two names, where both stand in triples",
        "passage": "1 where the entity stands in a triple of the passage",
    },
    MatrixWeights.EVIDENCE: {
        "fact": "sum of the confidences of the triples that link the two entities",
        "synonym": "cosine of the two names",
        "passage": "0.4 role + 0.4 similarity + 0.2 position of the name in the passage",
    },
}


def relation_matrices(graph: TypedGraph) -> Iterator[tuple[str, csr_array]]:
    """Yield (name, matrix) of each relation, one after the other, so that one alone need be in memory.

    Matrices are symmetric, float32, shape (n_nodes, n_nodes), with sorted indices. Both directions of an edge stand in
    them; several edges of a pair within one matrix are summed, edges of weight 0 left out.
    """
    from scipy.sparse import coo_array

    shape = (graph.n_nodes, graph.n_nodes)
    own = [kind.relation for kind in graph.kinds[len(EDGE_KINDS) :]]
    for name, relations in matrices_of(own).items():
        is_wanted = np.asarray([kind.relation in relations for kind in graph.kinds])
        rows = np.flatnonzero(is_wanted[graph.kind] & (graph.weight > 0))
        source, target, weight = graph.source[rows], graph.target[rows], graph.weight[rows]
        ends = np.concatenate([source, target]), np.concatenate([target, source])
        yield name, coo_array((np.concatenate([weight, weight]), ends), shape=shape, dtype=np.float32).tocsr()


def write_matrices(
    graph: KnowledgeGraph, folder: Path, *, workspace_id: str, weights: MatrixWeights = MatrixWeights.COUNTS
) -> dict[str, Any]:
    """Write ``matrix_<relation>.npz`` for each relation, and the metadata once they are all there.

    Args:
        graph: the graph to export.
        folder: made with its parents where it is missing; an export that stands there is replaced.
        workspace_id: kept in the metadata.
        weights: which weights the matrices hold.

    Returns:
        The metadata without the lists of nodes.

    Raises:
        BadInput: the folder holds something else than an export.
        OSError: it is a file, or cannot be written.
    """
    from scipy.sparse import save_npz

    folder.mkdir(parents=True, exist_ok=True)
    metadata, unfinished = folder / METADATA_FILE, folder / UNFINISHED_FILE
    if any(folder.iterdir()) and not (metadata.exists() or unfinished.exists()):
        raise BadInput(f"{folder} is not empty and holds no earlier export", "Name a new or an empty folder")
    unfinished.touch()
    metadata.unlink(missing_ok=True)
    described: dict[str, Any] = {}
    relations_of = matrices_of(graph.own.relation_types)
    for name, matrix in relation_matrices(graph.counted if weights is MatrixWeights.COUNTS else graph.typed):
        save_npz(folder / f"matrix_{name}.npz", matrix)
        is_fact = name not in ("synonym", "passage")
        described[name] = {
            "file": f"matrix_{name}.npz",
            "relations": [relation.value for relation in relations_of[name]],
            "coefficient": f"w_{name}" if is_fact else 1.0,
            "edges": matrix.nnz // 2,
            "weight": _MEANINGS[weights]["fact" if is_fact else name],
        }
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "workspace_id": workspace_id,
        "generation": graph.generation,
        "embedding_model": graph.embedding_model,
        "n_entities": graph.n_entities,
        "n_passages": len(graph.passages),
        "weights": weights.value,
        "formula": formula_of(graph.own.relation_types),
        "matrices": described,
    }
    rows = {
        "node_order": "row i is entity i; row n_entities + j is passage j",
        "entity_ids": [entity_id(name) for name in graph.entity_names],
        "entity_names": list(graph.entity_names),
        "entity_labels": list(graph.entity_labels),
        "passage_ids": [passage.id for passage in graph.passages],
        "passage_titles": [passage.title for passage in graph.passages],
    }
    unfinished.write_text(json.dumps({**header, **rows}, ensure_ascii=False, indent=1), encoding="utf-8")
    unfinished.replace(metadata)
    return header
