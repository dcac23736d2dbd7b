from __future__ import annotations

import numpy as np
import pytest

from benchmarks.growth.corpus import NamedCorpus
from benchmarks.growth.embedder import NameEmbedder


@pytest.fixture(scope="module")
def corpus() -> NamedCorpus:
    return NamedCorpus(3_000)


def test_a_passage_is_the_same_whichever_others_are_made(corpus: NamedCorpus) -> None:
    some = list(corpus.passages(490, 520))
    assert some == list(NamedCorpus(3_000).passages(0, 520))[490:]
    assert some[7] == corpus.passage(497)


def test_a_text_spells_its_names_and_says_its_facts(corpus: NamedCorpus) -> None:
    for passage, extraction in corpus.passages(1_000, 1_100):
        assert all(name in passage.text for name in extraction.entities)
        assert all(f"{t.subject} {t.predicate} {t.object}." in passage.text for t in extraction.triples)
        assert len({triple.relation for triple in extraction.triples}) == len(extraction.triples) == 3


def test_a_question_names_one_end_of_each_fact_and_not_what_joins_them(corpus: NamedCorpus) -> None:
    passages = {passage.id: extraction.triples for passage, extraction in corpus.passages(0, 3_000)}
    questions = corpus.questions(20)
    assert len(questions) == 20
    for question in questions:
        joining = {t.object for t in passages[question.first] if t.subject in question.text}
        assert joining & {t.subject for t in passages[question.second] if t.object in question.text}
        assert question.first != question.second


def test_a_passage_is_nearer_to_its_names_than_to_others(corpus: NamedCorpus) -> None:
    embedder = NameEmbedder()
    passage, extraction = corpus.passage(2_000)
    vector = embedder.embed([passage.content])[0]
    own, others = (embedder.embed(names) @ vector for names in (extraction.entities, corpus.new_names(0, 100)))
    assert np.median(own) > 1.5 * others.mean()
