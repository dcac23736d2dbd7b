"""Exports: what another program, with scipy and without mara, makes of a workspace's relation matrices."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, WorkspaceMissing
from graph.retrieve.modes import MatrixWeights
from graph.storage.workspace import Workspace
from tests.scripted_server import ScriptedServer
from tests.workflows.small_world import run, well_behaved
from tests.workflows.workspaces import KARV, ROWS, Indexer
from workflows import retrieval
from workflows.admin.export import export_matrices
from workflows.admin.inspection import workspace_stats
from workflows.context import Context

MakeContext = Callable[..., Context]

QUESTION = "What caused the flood of 1871?"
BETA = {"HIERARCHICAL": 0.05, "TEMPORAL": 0.3, "SPATIAL": 0.05, "CAUSALITY": 0.55, "ATTRIBUTION": 0.05}
MANAGED = json.dumps(
    {
        "entity_entity": BETA,
        "entity_passage": {"PRIMARY": 0.8, "SECONDARY": 0.1, "PERIPHERAL": 0.1},
        "passage_weight": 0.03,
    }
)

STRANGER = """
import json, sys
from pathlib import Path
import numpy as np
from scipy.sparse import diags_array, load_npz

folder, asked = Path(sys.argv[1]), json.load(sys.stdin)
metadata = json.loads((folder / "graph_metadata.json").read_text(encoding="utf-8"))
a = 0
for name, each in metadata["matrices"].items():
    m = load_npz(folder / each["file"])
    assert (m != m.T).nnz == 0 and m.nnz == 2 * each["edges"], name
    w = asked["w"][name] if each["coefficient"] == "w_" + name else each["coefficient"]
    a = a + w * m.astype(np.float64)
nodes = metadata["entity_ids"] + metadata["passage_ids"]
restart = np.zeros(len(nodes))
for key, weight in asked["seeds"].items():
    restart[nodes.index(key)] += weight
restart /= restart.sum()
degree = np.asarray(a.sum(axis=0)).ravel()
p = a @ diags_array(np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0))
scores = restart
for _ in range(100):
    scores = 0.5 * restart + 0.5 * (p @ scores + restart * scores[degree == 0].sum())
first = metadata["n_entities"]
order = np.argsort(-scores[first:], kind="stable")
print(json.dumps({
    "ranking": [[metadata["passage_ids"][i], scores[first + i]] for i in order],
    "mara": sorted({name.partition(".")[0] for name in sys.modules} & {"agents", "graph", "prompts", "workflows"}),
}))
"""
"""A program that reads an export and walks on it for {w, seeds}."""


def asked_of_a_stranger(folder: Path, w: dict[str, float], seeds: dict[str, float]) -> Any:
    done = subprocess.run(
        [sys.executable, "-I", "-c", STRANGER, folder],
        input=json.dumps({"w": w, "seeds": seeds}),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scipy_alone_ranks_an_export_as_mode_mara_matrix_ranks_the_workspace(
    small_workspace: Path, settings: MakeContext, chat_server: ScriptedServer, tmp_path: Path
) -> None:
    chat_server.script({**well_behaved(), "manager": [MANAGED]})
    result = run(settings(mode="mara-matrix", top_k=200), QUESTION, retrieval.graph).result
    assert result["passage_weight"] == pytest.approx(0.03), "the manager's own"
    assert result["relation_factors"]["entity_entity"] == pytest.approx(BETA)
    export_matrices(small_workspace, tmp_path / "export")
    w = {name.lower(): factor for name, factor in result["relation_factors"]["entity_entity"].items()}
    seeds = {seed["id"]: seed["weight"] for kind in result["seeds"].values() for seed in kind}
    found = asked_of_a_stranger(tmp_path / "export", w, seeds)
    assert found["mara"] == []
    own = {hit["id"]: hit["score"] for hit in result["passages"]}
    assert dict(found["ranking"]) == pytest.approx(own, abs=1e-5)
    assert [key for key, score in found["ranking"] if score > 0] == [key for key, score in own.items() if score > 0]


def test_the_report_says_what_was_written(small_workspace: Path, tmp_path: Path) -> None:
    for weights in MatrixWeights:
        written = export_matrices(small_workspace, tmp_path / "export", weights)
        stats = workspace_stats(small_workspace)
        same = ("workspace", "workspace_id", "generation")
        assert {name: written[name] for name in same} == {name: stats[name] for name in same}, weights
        assert (written["n_entities"], written["n_passages"]) == (stats["entities"], stats["passages"]), weights
        assert (written["folder"], written["weights"]) == (str(tmp_path / "export"), weights.value)
        assert written["embedding_model"] == stats["models"]["embedding"], weights
        edges = {name: matrix["edges"] for name, matrix in written["matrices"].items()}
        for name in ("hierarchical", "temporal", "spatial", "causality", "attribution"):
            assert edges[name] == stats["edges_by_type"][name.upper()], weights
        if weights is MatrixWeights.EVIDENCE:
            assert sum(edges.values()) == stats["edges"], weights
        assert json.loads(json.dumps(written)) == written, weights


@pytest.mark.usefixtures("embedder")
def test_an_export_is_of_the_newest_generation_and_replaces_the_earlier_one(
    index: Indexer, root: Path, tmp_path: Path
) -> None:
    index([KARV])
    first = export_matrices(root, tmp_path / "export")
    index(ROWS)
    second = export_matrices(root, tmp_path / "export")
    assert (first["n_passages"], second["n_passages"]) == (1, len(ROWS))
    assert second["generation"] > first["generation"]
    metadata = json.loads((tmp_path / "export" / "graph_metadata.json").read_text(encoding="utf-8"))
    assert metadata["passage_ids"] == sorted(row["id"] for row in ROWS)


@pytest.mark.usefixtures("embedder")
def test_nothing_is_written_into_the_workspace(index: Indexer, root: Path) -> None:
    index([KARV])
    (root.parent / "link").symlink_to(root)
    before = sorted(root.rglob("*"))
    for place in (".", "export", "index/7", "../link/export"):
        with pytest.raises(BadInput, match="workspace"):
            export_matrices(root, root / place)
        assert sorted(root.rglob("*")) == before, place


def test_without_a_workspace_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="mara index"):
        export_matrices(tmp_path / "none", tmp_path / "export")
    Workspace(tmp_path / "empty").create()
    with pytest.raises(WorkspaceMissing, match="no passage"):
        export_matrices(tmp_path / "empty", tmp_path / "export")
    with pytest.raises(BadInput, match="path"):
        export_matrices(tmp_path / "empty", Path("\x00"))
    assert not (tmp_path / "export").exists()
    assert not (tmp_path / "none").exists()
