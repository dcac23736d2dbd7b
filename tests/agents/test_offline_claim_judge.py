from __future__ import annotations

from agents.answers.claims import split_claims
from agents.claim_judge import Assessment, Coverage, OfflineClaimJudge, Structure
from tests.agents.offline.moor import WORLD


def assess(question: str, answer: str, max_follow_ups: int = 3) -> Assessment:
    return OfflineClaimJudge().assess(question, split_claims(answer), WORLD, max_follow_ups)


def test_a_quote_is_evidence_for_the_question_and_never_a_full_answer() -> None:
    found = assess("Who constructed the Moor Bridge?", "It was built by Tavin & Loom in 1863. [3]")
    assert found.structure is Structure.SINGLE
    assert [verdict.supported_by for verdict in found.verdicts] == [(3,)]
    assert found.coverage is Coverage.EVIDENCE
    assert found.components[0].claims == (1,)
    assert found.follow_ups == ()


def test_a_claim_that_its_passage_does_not_hold_is_not_supported() -> None:
    found = assess("Who constructed the Moor Bridge?", "It was built by Ada Vale in 1990. [3]")
    assert found.verdicts[0].supported_by == ()
    assert found.coverage is Coverage.NOT


def test_an_uncited_claim_is_supported_by_whatever_passage_holds_it() -> None:
    found = assess("When was Tavin & Loom founded?", "Tavin & Loom was set up in 1852 by Orsa Tavin.")
    assert found.verdicts[0].supported_by == (7,)


def test_a_claim_may_rest_on_several_passages_that_it_cites_together() -> None:
    found = assess("Who is older?", "Moor Bridge (1863; Tavin & Loom: set up in 1852) [3][7]")
    assert found.verdicts[0].supported_by == (3, 7)


def test_a_claim_that_rests_on_nothing_that_bears_on_its_part_is_no_evidence_for_it() -> None:
    found = assess("Who built the Moor Bridge, and what is the phone number of Emil Brand?", "It had 90 men. [7]")
    assert found.verdicts[0].supported_by == (7,)
    assert found.components[1].coverage is Coverage.NOT


def test_what_is_missing_of_several_things_is_asked_for_by_itself() -> None:
    found = assess("Who built the Moor Bridge, and how heavy is it?", "It was built by Tavin & Loom in 1863. [3]")
    assert found.structure is Structure.MULTIPLE
    assert [component.coverage for component in found.components] == [Coverage.EVIDENCE, Coverage.NOT]
    assert [(one.question, one.component) for one in found.follow_ups] == [("How heavy is the Moor Bridge?", 2)]


def test_no_more_follow_ups_than_wanted() -> None:
    question = "Who built the Lowen Bridge? How heavy is the Lowen Bridge? When was the Lowen Bridge sold?"
    found = assess(question, "It had 90 men. [7]", max_follow_ups=1)
    assert len(found.follow_ups) == 1
    assert found.dropped == 2


def test_both_claims_of_a_bridge_are_evidence_together() -> None:
    built = "It was built by Tavin & Loom in 1863. [3]"
    answer = f"{built} Tavin & Loom was a firm of bridge builders, set up in 1852 by Orsa Tavin. [7]"
    found = assess("When was the firm that built the Moor Bridge founded?", answer)
    assert found.coverage is Coverage.EVIDENCE
    assert found.components[0].claims == (1, 2)


def test_no_claims_answer_nothing() -> None:
    found = assess("Who constructed the Moor Bridge?", "")
    assert found.verdicts == ()
    assert found.coverage is Coverage.NOT
