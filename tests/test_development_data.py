"""The main job on real questions: recall beside figures that were measured independently.

Needs MARA_DEVELOPMENT_DATA, a folder with `musique_train100` and `hotpot_train100`; skipped without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.evaluation.tables import read_figures
from graph.embedding.embeddings import QUESTION_TO_PASSAGE
from graph.retrieve.modes import Mode
from workflows.context import Context, Question
from workflows.evaluation import DEPTHS, averaged, f1_at_k, mrr, precision_at_k, recall_at_k
from workflows.indexing import index_sources
from workflows.retrieval import graph
from workflows.runtime.resources import open_workspace_index

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


class IndependentHybrid:
    """Section 5's hybrid by other means: numpy over the embedder's vectors, and bm25s with its own tokens."""

    def __init__(self, name: str, workspace: Path, alpha: float) -> None:
        import bm25s
        import Stemmer

        self.stemmer = Stemmer.Stemmer("english")
        self.alpha = alpha
        index = open_workspace_index(Context(workspace=str(workspace)))
        self.embedder = index.embedder
        self.ids = [passage.id for passage in index.graph.passages]
        self.vectors = np.asarray(index.graph.passage_vectors)
        texts = {row["id"]: f"{row['title']}\n{row['text']}" for row in rows_of(name, "corpus.jsonl")}
        self.bm25 = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self.bm25.index(self.words([texts[key] for key in self.ids]), show_progress=False)

    def words(self, texts: list[str]) -> Any:
        import bm25s

        return bm25s.tokenize(texts, stopwords="en", stemmer=self.stemmer, return_ids=False, show_progress=False)

    def rank(self, question: str, depth: int = 200) -> list[str]:
        cosines = self.vectors @ self.embedder.embed_question(question, QUESTION_TO_PASSAGE)
        (words,) = self.words([question])
        overlaps = self.bm25.get_scores(words) if words else np.zeros(len(self.ids))
        mixed = np.zeros(len(self.ids))
        for scores, share in ((cosines, self.alpha), (np.where(overlaps > 0, overlaps, np.nan), 1 - self.alpha)):
            listed = [place for place in np.argsort(-scores)[:depth] if not np.isnan(scores[place])]
            mixed[listed] += share * self.spread(scores[listed])
        return [self.ids[place] for place in np.argsort(-mixed)[:20]]

    def spread(self, scores: NDArray[Any]) -> NDArray[Any]:
        width = np.ptp(scores) if len(scores) else 0
        return (scores - scores.min()) / width if width else np.ones(len(scores))


def figures_of(rankings: Sequence[Sequence[str]], golds: Sequence[Sequence[str]]) -> dict[str, float]:
    """Recall@20, MRR@5, precision and F1 at each depth, by hand."""
    figures: dict[str, list[float]] = {}
    for ranking, gold in zip(rankings, golds, strict=True):
        hits = [key in gold for key in ranking]
        figures.setdefault("recall@20", []).append(sum(hits[:20]) / len(gold))
        figures.setdefault("mrr@5", []).append(1 / (hits.index(True) + 1) if any(hits[:5]) else 0.0)
        for k in DEPTHS:
            precision, recall = sum(hits[:k]) / k, sum(hits[:k]) / len(gold)
            figures.setdefault(f"precision@{k}", []).append(precision)
            either = precision + recall
            figures.setdefault(f"f1@{k}", []).append(2 * precision * recall / either if either else 0.0)
    return {name: sum(values) / len(values) for name, values in figures.items()}


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


def test_the_walk_finds_more_than_the_published_baseline(musique: Path) -> None:
    assert recall_at_5("musique_train100", musique, Mode.MARA) >= recall_at_5(
        "musique_train100", musique, Mode.HIPPORAG2
    )


def test_text_alone_is_enough(hotpot: Path) -> None:
    assert recall_at_5("hotpot_train100", hotpot, Mode.MARA) >= recall_at_5("hotpot_train100", hotpot, Mode.HYBRID)


@pytest.mark.parametrize("name", ["musique", "hotpot"])
def test_hybrid_retrieval_agrees_with_an_independent_computation(name: str, request: pytest.FixtureRequest) -> None:
    workspace: Path = request.getfixturevalue(name)
    data = f"{name}_train100"
    questions = rows_of(data, "questions.jsonl")
    golds = [row["gold_ids"] for row in questions]
    ours = rankings_of(data, workspace, mode=Mode.HYBRID, top_k=20, alpha=0.65)
    measured = {
        "recall@20": averaged(partial(recall_at_k, k=20), ours, golds),
        "mrr@5": mrr(ours, golds, 5),
        **{f"precision@{k}": averaged(partial(precision_at_k, k=k), ours, golds) for k in DEPTHS},
        **{f"f1@{k}": averaged(partial(f1_at_k, k=k), ours, golds) for k in DEPTHS},
    }
    other = IndependentHybrid(data, workspace, 0.65)
    theirs = figures_of([other.rank(row["question"]) for row in questions], golds)
    assert measured == pytest.approx(theirs, abs=0.02)
    assert measured == pytest.approx(figures_of(ours, golds)), "the same rankings, measured by hand"


@pytest.mark.parametrize(("alpha", "mode"), [(1.0, Mode.DENSE), (0.0, Mode.SPARSE)])
def test_hybrid_at_either_end_is_the_single_ranking(musique: Path, alpha: float, mode: Mode) -> None:
    name = "musique_train100"
    for top_k in (5, 20):
        single = rankings_of(name, musique, mode=mode, top_k=top_k)
        assert rankings_of(name, musique, mode=Mode.HYBRID, top_k=top_k, alpha=alpha) == single
