"""Relation matrices: what the graph is made of, what mode mara-matrix walks on, and the files of an export."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

from graph.construction.edges import EdgeKind, TypedGraph
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.errors import BadInput
from graph.explain import matrices
from graph.explain.matrices import METADATA_FILE, relation_matrices, write_matrices
from graph.relations import PassageLink
from graph.retrieve.modes import MARA_MATRIX, MatrixWeights
from graph.retrieve.search import factors_for
from graph.schema import ENTITY_RELATIONS, RelationFactors, RelationType
from graph.walk.pagerank import walk
from tests.builders import typed_graph

Edge = tuple[int, int, EdgeKind, float]

CAUSAL, TEMPORAL = EdgeKind(RelationType.CAUSALITY), EdgeKind(RelationType.TEMPORAL)
SPATIAL, ATTRIBUTED = EdgeKind(RelationType.SPATIAL), EdgeKind(RelationType.ATTRIBUTION)
SYNONYM = EdgeKind(RelationType.SYNONYMY)
TITLE = EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)
MENTION = EdgeKind(RelationType.SECONDARY, PassageLink.MENTION)

WAR, SHOTS, YEAR, SARAJEVO, FIRST_WAR, ARMS = range(6)
"""World War I, the shots that killed Franz Ferdinand, 1914, Sarajevo, First World War, arms race."""
ABOUT_SHOTS, ABOUT_PLACE, ABOUT_ARMS = range(6, 9)
"""The passages; nothing links a fourth one."""

EDGES: list[Edge] = [
    (WAR, SHOTS, CAUSAL, 2.0),
    (WAR, YEAR, TEMPORAL, 1.0),
    (WAR, FIRST_WAR, SYNONYM, 0.875),
    (WAR, ARMS, CAUSAL, 1.0),
    (WAR, ARMS, ATTRIBUTED, 1.0),
    (SHOTS, SARAJEVO, SPATIAL, 1.0),
    (WAR, ABOUT_SHOTS, MENTION, 1.0),
    (SARAJEVO, ABOUT_PLACE, TITLE, 1.0),
    (FIRST_WAR, ABOUT_ARMS, MENTION, 1.0),
]
"""Each with its HippoRAG 2 weight."""

CAUSES = RelationFactors(
    {"CAUSALITY": 0.5, "TEMPORAL": 0.3, "HIERARCHICAL": 0.05, "SPATIAL": 0.05, "ATTRIBUTION": 0.05},
    {"PRIMARY": 0.8, "SECONDARY": 0.15, "PERIPHERAL": 0.05},
)
"""What the manager says to "What caused World War I?"."""


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    """The war: HippoRAG 2's weights are whole numbers and cosines, those of evidence a tenth of them."""
    made = typed_graph(6, 4, EDGES)
    count = made.edges.weight.copy()
    return replace(made, edges=replace(made.edges, weight=(count / 10).astype(np.float32), count=count))


def adjacency(graph: TypedGraph, beta: RelationFactors) -> NDArray[np.float64]:
    """A = Σ w_r M_r + M_syn + M_passage."""
    total = np.zeros((graph.n_nodes, graph.n_nodes))
    for name, matrix in relation_matrices(graph):
        total += beta.entity_entity.get(name.upper(), 1.0) * matrix.toarray().astype(np.float64)
    return total


class TestMatrices:
    def test_mode_mara_matrix_walks_on_their_column_stochastic_sum(self, graph: KnowledgeGraph) -> None:
        restart = np.array([0, 0.9, 0.4, 0, 0, 0, 0.03, 0.02, 0.01, 0.005])
        scores = walk(graph.counted, restart, factors_for(CAUSES, MARA_MATRIX), MARA_MATRIX.damping).scores
        restart /= restart.sum()
        a = adjacency(graph.counted, CAUSES)
        degree = a.sum(axis=0)
        arrived = a @ np.divide(scores, degree, out=np.zeros(10), where=degree > 0)
        arrived += restart * scores[degree == 0].sum()
        assert scores == pytest.approx(0.5 * restart + 0.5 * arrived, abs=1e-6)

    def test_types_of_one_pair_stay_apart_and_links_within_a_matrix_are_summed(self, graph: KnowledgeGraph) -> None:
        of_graph = dict(relation_matrices(graph.counted))
        assert [name for name, matrix in of_graph.items() if matrix[WAR, ARMS]] == ["causality", "attribution"]
        for matrix in of_graph.values():
            assert (matrix.format, matrix.dtype, matrix.shape) == ("csr", np.float32, (10, 10))
            assert (matrix != matrix.T).nnz == 0
        twice = typed_graph(1, 1, [(0, 1, TITLE, 0.5), (0, 1, MENTION, 0.25)])
        assert dict(relation_matrices(twice.typed))["passage"].toarray().tolist() == [[0, 0.75], [0.75, 0]]
        weightless = typed_graph(2, 0, [(0, 1, SYNONYM, 0.0)])
        assert dict(relation_matrices(weightless.typed))["synonym"].nnz == 0
        assert sum(matrix.sum() for matrix in of_graph.values()) == 2 * graph.counted.weight.sum()


class TestFiles:
    def test_they_hold_the_matrices_of_the_weights_asked_for(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        meanings = []
        for weights in MatrixWeights:
            described = write_matrices(graph, tmp_path / weights, workspace_id="w1", weights=weights)["matrices"]
            meanings.append({each["weight"] for each in described.values()})
            source = graph.counted if weights is MatrixWeights.COUNTS else graph.typed
            for name, matrix in relation_matrices(source):
                loaded = scipy.sparse.load_npz(tmp_path / weights / f"matrix_{name}.npz")
                assert (loaded.format, loaded.dtype) == ("csr", np.float32)
                assert (loaded != matrix).nnz == 0
        assert not meanings[0] & meanings[1]

    def test_the_metadata_tells_rows_and_entries(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        written = write_matrices(graph, tmp_path / "new" / "export", workspace_id="w1")
        relations = ("hierarchical", "temporal", "spatial", "causality", "attribution", "synonym", "passage")
        metadata = json.loads((tmp_path / "new" / "export" / METADATA_FILE).read_text(encoding="utf-8"))
        assert written == {key: value for key, value in metadata.items() if key in written}
        assert (metadata["format_version"], metadata["workspace_id"]) == (1, "w1")
        assert (metadata["n_entities"], metadata["n_passages"]) == (6, 4)
        assert metadata["entity_names"] == list(graph.entity_names)
        described = metadata["matrices"]
        assert [described[name]["edges"] for name in relations] == [0, 1, 1, 2, 1, 1, 3]
        named = [*(f"w_{relation.lower()}" for relation in ENTITY_RELATIONS), 1.0, 1.0]
        assert [described[name]["coefficient"] for name in relations] == named

    def test_an_export_broken_off_is_no_whole_one(
        self, graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_matrices(graph, tmp_path, workspace_id="earlier")
        (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
        save = scipy.sparse.save_npz

        def breaks_off(path: Path, matrix: Any) -> None:
            if path.name == "matrix_causality.npz":
                raise OSError("no space left")
            save(path, matrix)

        with monkeypatch.context() as patch:
            patch.setattr(scipy.sparse, "save_npz", breaks_off)
            with pytest.raises(OSError, match="no space"):
                write_matrices(graph, tmp_path, workspace_id="later")
        assert not (tmp_path / METADATA_FILE).exists()
        write_matrices(graph, tmp_path, workspace_id="later")
        assert json.loads((tmp_path / METADATA_FILE).read_text(encoding="utf-8"))["workspace_id"] == "later"
        assert not (tmp_path / matrices.UNFINISHED_FILE).exists()
        assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_holds_something_else_is_left_as_it_is(graph: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(BadInput, match="not empty"):
        write_matrices(graph, tmp_path, workspace_id="w1")
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]
