from __future__ import annotations

from agents.answers.claims import split_claims
from agents.answers.quotes import unmarked
from agents.final_predictor import Draft, OfflineFinalPredictor
from agents.roles import REFUSAL, Answer
from tests.agents.offline.moor import BRIDGE, FIRM, ORSA, WITH_EVIDENCE, WITHOUT_EVIDENCE, WORLD

DRAFT = Draft("It was built by Tavin & Loom in 1863. [3]", (3,), ("When was Tavin & Loom set up?",))


def answered(question: str, draft: Draft | None = None) -> Answer:
    return OfflineFinalPredictor().answer(question, WORLD, draft).answer


def test_evidence_is_quoted_from_the_passages_that_hold_it() -> None:
    texts = {one.number: one.text for one in WORLD}
    for question, cited in WITH_EVIDENCE:
        answer = answered(question)
        assert answer.is_evidence
        assert cited <= {citation.number for citation in answer.citations}, question
        claims = split_claims(answer.text)
        assert claims
        assert all(len(claim.cited) == 1 and unmarked(claim.text) in texts[claim.cited[0]] for claim in claims)
    citation = answered("Who constructed the Moor Bridge?").citations[0]
    assert BRIDGE.text[citation.start : citation.end] == BRIDGE.text
    both = answered("Who built the Moor Bridge and when was Tavin & Loom set up?")
    assert [citation.number for citation in both.citations][:2] == [3, 7]


def test_it_refuses_what_the_passages_do_not_hold() -> None:
    for question, passages in (*((question, WORLD) for question in WITHOUT_EVIDENCE), ("Who built it?", ())):
        final = OfflineFinalPredictor().answer(question, passages)
        assert final.answer.refused
        assert (final.answer.text, final.answer.citations, final.prompt) == (REFUSAL, (), ""), question


def test_a_draft_stays_and_the_evidence_for_its_follow_ups_is_appended() -> None:
    answer = OfflineFinalPredictor().answer("Who built the Moor Bridge and when?", (BRIDGE, FIRM, ORSA), DRAFT).answer
    assert answer.text.startswith(DRAFT.text)
    assert [citation.number for citation in answer.citations][:2] == [3, 7]
    nothing = Draft(DRAFT.text, (3,), ("Who painted the Lowen Bridge?",))
    assert answered("Who built it?", nothing).text == DRAFT.text
