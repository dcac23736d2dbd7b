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


def test_names_grow_more_slowly_than_passages(corpus: NamedCorpus) -> None:
    a_passage = [NamedCorpus(size).n_names / size for size in (1_000, 10_000, 100_000)]
    assert a_passage == sorted(a_passage, reverse=True)
    assert a_passage[0] < 2 * a_passage[-1]


def test_the_names_that_a_passage_brings_in_are_among_its_own(corpus: NamedCorpus) -> None:
    for number in (0, 499, 500, 2_999):
        _, extraction = corpus.passage(number)
        assert set(corpus.new_names(number, number + 1)) <= set(extraction.entities)


def test_a_text_spells_its_names_and_says_its_facts(corpus: NamedCorpus) -> None:
    for passage, extraction in corpus.passages(1_000, 1_100):
        assert all(name in passage.text for name in extraction.entities)
        assert all(f"{t.subject} {t.predicate} {t.object}." in passage.text for t in extraction.triples)
        assert len({triple.relation for triple in extraction.triples}) == len(extraction.triples) == 3


def test_passages_of_a_topic_share_more_names_than_others(corpus: NamedCorpus) -> None:
    names = [set(extraction.entities) for _, extraction in corpus.passages(0, 3_000)]
    topics, order, starts = corpus.topics
    of_topic = order[starts[3] : starts[4]].tolist()
    shared = [len(names[a] & names[b]) for a in of_topic for b in of_topic if a < b]
    apart = [len(names[a] & names[b]) for a in of_topic for b in range(0, 3_000, 50) if topics[a] != topics[b]]
    assert np.mean(shared) > 2 * np.mean(apart)


def test_a_question_names_one_end_of_each_fact_and_not_what_joins_them(corpus: NamedCorpus) -> None:
    passages = {passage.id: extraction.triples for passage, extraction in corpus.passages(0, 3_000)}
    questions = corpus.questions(20)
    assert len(questions) == 20
    for question in questions:
        joining = {t.object for t in passages[question.first] if t.subject in question.text}
        assert joining & {t.subject for t in passages[question.second] if t.object in question.text}
        assert question.first != question.second


def test_names_of_a_family_are_near_each_other_and_others_are_not(corpus: NamedCorpus) -> None:
    names = corpus.new_names(0, 1_000)
    families, members = corpus.families
    vectors = NameEmbedder().embed(names)
    near = vectors @ vectors.T >= 0.8
    same = families[: len(names), None] == families[None, : len(names)]
    plain = (members[: len(names)] % 12 < 11)[:, None] & (members[: len(names)] % 12 < 11)[None, :]
    assert near[same & plain].mean() > 0.9
    assert near[~same].mean() < 1e-4


def test_a_passage_is_nearer_to_its_names_than_to_others(corpus: NamedCorpus) -> None:
    embedder = NameEmbedder()
    passage, extraction = corpus.passage(2_000)
    vector = embedder.embed([passage.content])[0]
    own, others = (embedder.embed(names) @ vector for names in (extraction.entities, corpus.new_names(0, 100)))
    assert np.median(own) > 1.5 * others.mean()
