"""The main job on real questions: recall beside figures that were measured independently.

Needs MARA_DEVELOPMENT_DATA, a folder with `musique_train100` and `hotpot_train100`; skipped without it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graph.modes import Mode
from workflows.context import Context, Question
from workflows.indexing import index_sources
from workflows.retrieval import graph

DATA = Path(os.environ.get("MARA_DEVELOPMENT_DATA") or "unset")

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


def recall_at_5(name: str, workspace: Path, mode: Mode) -> float:
    lines = (DATA / name / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions: list[dict[str, Any]] = [json.loads(line) for line in lines]
    context = Context(workspace=str(workspace), mode=mode, top_k=5)
    recalls = []
    for question in questions:
        found = graph.invoke(Question(question=question["question"]), context=context)["passages"]
        gold = set(question["gold_ids"])
        recalls.append(len(gold & {passage["id"] for passage in found}) / len(gold))
    return sum(recalls) / len(recalls)


@pytest.mark.parametrize(
    ("mode", "expected", "within"),
    [(Mode.DENSE, 0.622, 0.02), (Mode.HIPPORAG2, 0.652, 0.02), (Mode.SPARSE, 0.498, 0.03), (Mode.HYBRID, 0.616, 0.03)],
)
def test_the_baselines_agree_with_an_independent_measurement(
    musique: Path, mode: Mode, expected: float, within: float
) -> None:
    assert recall_at_5("musique_train100", musique, mode) == pytest.approx(expected, abs=within)


def test_the_walk_finds_more_than_the_published_baseline(musique: Path) -> None:
    assert recall_at_5("musique_train100", musique, Mode.MARA) >= recall_at_5(
        "musique_train100", musique, Mode.HIPPORAG2
    )


def test_text_alone_is_enough(hotpot: Path) -> None:
    assert recall_at_5("hotpot_train100", hotpot, Mode.MARA) >= recall_at_5("hotpot_train100", hotpot, Mode.HYBRID)
