from __future__ import annotations

import pytest

from agents.answers.claims import split_claims
from agents.answers.quotes import unmarked
from agents.final_predictor import Draft, OfflineFinalPredictor
from agents.roles import REFUSAL
from tests.agents.offline.moor import BRIDGE, FIRM, ORSA, WITH_EVIDENCE, WITHOUT_EVIDENCE, WORLD, passage


@pytest.mark.parametrize(("question", "cited"), WITH_EVIDENCE)
def test_evidence_is_quoted_from_the_passages_that_hold_it(question: str, cited: set[int]) -> None:
    answer = OfflineFinalPredictor().answer(question, WORLD).answer
    assert answer.is_evidence
    assert cited <= {citation.number for citation in answer.citations}


@pytest.mark.parametrize("question", WITHOUT_EVIDENCE)
def test_it_refuses_what_the_passages_do_not_hold(question: str) -> None:
    final = OfflineFinalPredictor().answer(question, WORLD)
    assert final.answer.refused
    assert (final.answer.text, final.answer.citations, final.prompt) == (REFUSAL, (), "")


@pytest.mark.parametrize("question", [question for question, _ in WITH_EVIDENCE])
def test_every_sentence_stands_in_the_passage_that_it_cites(question: str) -> None:
    texts = {one.number: one.text for one in WORLD}
    claims = split_claims(OfflineFinalPredictor().answer(question, WORLD).answer.text)
    assert claims
    assert all(len(claim.cited) == 1 and unmarked(claim.text) in texts[claim.cited[0]] for claim in claims)


def test_a_citation_spans_the_quoted_paragraph() -> None:
    citation = OfflineFinalPredictor().answer("Who constructed the Moor Bridge?", WORLD).answer.citations[0]
    assert BRIDGE.text[citation.start : citation.end] == BRIDGE.text


def test_citations_in_a_passage_are_not_those_of_the_answer() -> None:
    wiki = passage(2, "Moor Mill", "The Moor Mill was built [1] by Ada Vale [9].")
    assert OfflineFinalPredictor().answer("Who built the Moor Mill?", [wiki]).answer.text == (
        "The Moor Mill was built by Ada Vale. [2]"
    )


def test_there_is_evidence_for_each_part_of_a_question() -> None:
    question = "Who built the Moor Bridge and when was Tavin & Loom set up?"
    answer = OfflineFinalPredictor().answer(question, WORLD).answer
    assert [citation.number for citation in answer.citations][:2] == [3, 7]


def test_a_draft_stays_and_what_its_follow_ups_find_is_appended() -> None:
    draft = Draft("It was built by Tavin & Loom in 1863. [3]", (3,), ("When was Tavin & Loom set up?",))
    answer = OfflineFinalPredictor().answer("Who built the Moor Bridge and when?", (BRIDGE, FIRM, ORSA), draft).answer
    assert answer.text.startswith(draft.text)
    assert [citation.number for citation in answer.citations][:2] == [3, 7]


def test_a_draft_stays_as_it_is_where_nothing_was_found() -> None:
    draft = Draft("It was built by Tavin & Loom in 1863. [3]", (3,), ("Who painted the Lowen Bridge?",))
    assert OfflineFinalPredictor().answer("Who built it?", WORLD, draft).answer.text == draft.text


def test_without_passages_it_refuses() -> None:
    assert OfflineFinalPredictor().answer("Who built the Moor Bridge?", []).answer.refused
