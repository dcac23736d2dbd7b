"""Names that the embedding model knows nothing about are found by their spelling and by BM25: all vectors are zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.builders import HashEmbedder
from tests.workflows.small_world import Run, run, write_corpus
from tests.workflows.workspaces import use_embedder
from workflows.context import Context, Walk
from workflows.indexing import index_sources

QUESTIONS = {
    "han": "青石鎮在哪裡？",
    "arabic": "ماذا عن وادي النور؟",
    "cyrillic": "Где стоит БЕЛОГОРКА?",
    "greek": "Ποια ήταν η Αλκμήνη Ρούσου;",
    "devanagari": "सोनपुरा कहाँ है?",
}
WITHIN_ENGLISH = {
    "han": "What is 青石鎮 known for?",
    "arabic": "Where does وادي النور lie?",
    "cyrillic": "Who lives in Белогорка?",
    "greek": "Who was Αλκμήνη Ρούσου?",
    "devanagari": "Which village is सोनपुरा?",
}


class ZeroEmbedder(HashEmbedder):
    """Knows nothing of any text."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros_like(super().embed(texts))

    def understands(self, text: str) -> bool:
        return False


@pytest.fixture(scope="module")
def blind_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The small world without its triples' file, indexed with zeros."""
    folder = tmp_path_factory.mktemp("blind")
    corpus, _ = write_corpus(folder)
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, ZeroEmbedder())
        index_sources([corpus], folder / "workspace")
        yield folder / "workspace"


def ask(workspace: Path, question: str, mode: str = "mara") -> Run:
    return run(Context(workspace=str(workspace), mode=mode), question)


def test_the_embeddings_tell_nothing(blind_workspace: Path) -> None:
    for question in QUESTIONS.values():
        assert {hit["score"] for hit in ask(blind_workspace, question, "dense").result["passages"]} <= {0.0, 1.0}


def test_the_passage_of_a_name_ranks_first_and_is_the_first_evidence(blind_workspace: Path) -> None:
    for mode in ("mara", "sparse", "hybrid"):
        for passage, question in [*QUESTIONS.items(), *WITHIN_ENGLISH.items()]:
            done = ask(blind_workspace, question, mode)
            assert done.passage_ids[0] == passage
            if question in QUESTIONS.values() or passage in ("greek", "han"):
                assert done.result["citations"][0]["passage_id"] == passage


def test_a_name_alone_is_too_little_evidence_where_the_words_around_it_are_of_another_language(
    blind_workspace: Path,
) -> None:
    for mode in ("mara", "sparse", "hybrid"):
        for passage in ("arabic", "cyrillic"):
            result = ask(blind_workspace, WITHIN_ENGLISH[passage], mode).result
            assert result["answer_kind"] == "refusal", (passage, mode)
            (error,) = result["errors"]
            assert error["kind"] == "Evidence"
            assert error["message"].endswith("hold too little of the question")


def test_the_name_alone_leads_the_walk_to_its_passage_and_equal_vectors_make_no_synonyms(blind_workspace: Path) -> None:
    context = Context(workspace=str(blind_workspace), walk=Walk(passage_weight=0, entity_seeds=0))
    for passage, question in [*QUESTIONS.items(), *WITHIN_ENGLISH.items()]:
        done = run(context, question)
        assert len(done.result["seeds"]["entities"]) == 1
        assert done.result["seeds"]["passages"] == []
        assert (done.result["ranked_by"], done.passage_ids[0]) == ("walk", passage)
    reached = [hit["id"] for hit in run(context, WITHIN_ENGLISH["greek"]).result["passages"] if hit["score"] > 0]
    assert reached == ["greek"]
