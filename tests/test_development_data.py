"""The main job on real questions: recall beside figures that were measured independently.

Needs MARA_DEVELOPMENT_DATA, a folder with `musique_train100` and `hotpot_train100`; skipped without it.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation.tables import read_figures
from graph.retrieve.modes import Mode
from workflows.context import Context, Question
from workflows.evaluation import averaged, recall_at_k
from workflows.indexing import index_sources
from workflows.retrieval import graph

DATA = Path(os.environ.get("MARA_DEVELOPMENT_DATA") or "unset")

RECALL_OF_THE_README = {each["name"]: each["systems"]["mara"]["recall"].values() for each in read_figures()}
"""Recall of mode `mara` at 2, 5 and 10."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="MARA_DEVELOPMENT_DATA names no folder"),
]


@pytest.fixture(scope="module")
def musique(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("musique")
    folder = DATA / "musique_train100"
    report = index_sources([folder / "corpus.jsonl"], workspace, folder / "openie.jsonl")
    assert (report.passages, report.imported) == (1890, 1890)
    return workspace


@pytest.fixture(scope="module")
def hotpot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("hotpot")
    assert index_sources([DATA / "hotpot_train100" / "corpus.jsonl"], workspace).extracted == 994
    return workspace


def rows_of(name: str, file: str) -> list[dict[str, Any]]:
    lines = (DATA / name / file).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rankings_of(name: str, workspace: Path, **settings: Any) -> list[list[str]]:
    context = Context(workspace=str(workspace), **settings)
    return [
        [hit["id"] for hit in graph.invoke(Question(question=row["question"]), context=context)["passages"]]
        for row in rows_of(name, "questions.jsonl")
    ]


def recall_at_5(name: str, workspace: Path, mode: Mode) -> float:
    recalls = [
        len(set(row["gold_ids"]) & set(found)) / len(row["gold_ids"])
        for row, found in zip(
            rows_of(name, "questions.jsonl"), rankings_of(name, workspace, mode=mode, top_k=5), strict=True
        )
    ]
    return sum(recalls) / len(recalls)


@pytest.mark.parametrize(
    ("mode", "expected", "within"),
    [(Mode.DENSE, 0.622, 0.02), (Mode.HIPPORAG2, 0.652, 0.02), (Mode.SPARSE, 0.498, 0.03), (Mode.HYBRID, 0.616, 0.03)],
)
def test_the_baselines_agree_with_an_independent_measurement(
    musique: Path, mode: Mode, expected: float, within: float
) -> None:
    assert recall_at_5("musique_train100", musique, mode) == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("name", ["musique", "hotpot"])
def test_the_walk_finds_what_the_readme_says(name: str, request: pytest.FixtureRequest) -> None:
    workspace: Path = request.getfixturevalue(name)
    ours = rankings_of(f"{name}_train100", workspace, top_k=10)
    golds = [row["gold_ids"] for row in rows_of(f"{name}_train100", "questions.jsonl")]
    measured = [averaged(partial(recall_at_k, k=k), ours, golds) for k in (2, 5, 10)]
    assert measured == pytest.approx(list(RECALL_OF_THE_README[name]), abs=0.01)
