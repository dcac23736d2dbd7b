"""What the offline agents of RAGentA answer and refuse in an invented corpus: half of its questions have no answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agents.claims import split_claims
from workflows.ask import ask
from workflows.indexing import index_sources
from workflows.ragenta_context import RagentaContext
from workflows.resources import close_indexes

pytestmark = pytest.mark.slow

WORLD = Path(__file__).parent / "answerable"
MOST_REFUSED_OF_ANSWERABLE = 0.1
LEAST_REFUSED_OF_UNANSWERABLE = 0.9


@dataclass(frozen=True)
class Asked:
    """A question of the corpus and what the workflow made of it."""

    question: dict[str, Any]
    result: dict[str, Any]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Asked]]:
    """All questions, asked once: the corpus is indexed with the embedded model, and no chat model answers."""
    workspace = tmp_path_factory.mktemp("answerable") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        index_sources([WORLD / "corpus.jsonl"], workspace)
        context = RagentaContext(workspace=str(workspace))
        lines = (WORLD / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        yield [Asked(row, ask(row["question"], context)) for row in map(json.loads, lines)]
    close_indexes()


def refused(asked: list[Asked], *, answerable: bool) -> float:
    """Return the share of the answerable or unanswerable questions that were refused."""
    of_kind = [bool(one.result["refused"]) for one in asked if one.question["answerable"] is answerable]
    return sum(of_kind) / len(of_kind)


def test_questions_without_an_answer_are_refused(asked: list[Asked]) -> None:
    assert refused(asked, answerable=False) >= LEAST_REFUSED_OF_UNANSWERABLE


def test_questions_with_an_answer_are_answered(asked: list[Asked]) -> None:
    assert refused(asked, answerable=True) <= MOST_REFUSED_OF_ANSWERABLE


def test_answers_cite_a_passage_that_holds_the_answer(asked: list[Asked]) -> None:
    answered = [one for one in asked if one.question["answerable"] and not one.result["refused"]]
    cited = [{citation["passage_id"] for citation in one.result["citations"]} for one in answered]
    right = [not ids.isdisjoint(one.question["gold_ids"]) for one, ids in zip(answered, cited, strict=True)]
    assert sum(right) >= 0.9 * len(answered)


def test_every_sentence_is_cited_and_stands_in_the_passage_that_it_cites(asked: list[Asked]) -> None:
    rows = map(json.loads, (WORLD / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {row["id"]: " ".join(row["text"].split()) for row in rows}
    for one in asked:
        if not one.result["refused"]:
            numbers = {citation["number"]: citation["passage_id"] for citation in one.result["citations"]}
            for claim in split_claims(one.result["answer"]):
                assert claim.cited
                assert all(" ".join(claim.text.split()) in texts[numbers[number]] for number in claim.cited)
