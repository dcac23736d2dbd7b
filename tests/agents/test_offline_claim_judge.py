from __future__ import annotations

from agents.answers.claims import split_claims
from agents.claim_judge import Assessment, Coverage, OfflineClaimJudge, Structure, is_supported
from tests.agents.offline.moor import WORLD

BUILT = "It was built by Tavin & Loom in 1863. [3]"
NISSAN = "Nissan\nNissan Motor was founded in Yokohama in 1933 and employs 130,000 people."


def assess(question: str, answer: str, max_follow_ups: int = 3) -> Assessment:
    return OfflineClaimJudge().assess(question, split_claims(answer), WORLD, max_follow_ups)


def test_a_quote_is_evidence_for_the_question_and_never_a_full_answer() -> None:
    assessment = assess("Who constructed the Moor Bridge?", BUILT)
    assert assessment.structure is Structure.SINGLE
    assert [verdict.supported_by for verdict in assessment.verdicts] == [(3,)]
    assert assessment.coverage is Coverage.EVIDENCE
    assert assessment.components[0].claims == (1,)
    assert assessment.follow_ups == ()


def test_a_claim_is_supported_by_the_passages_that_it_cites_or_where_it_cites_none_by_any() -> None:
    for question, claim, support in (
        ("Who constructed the Moor Bridge?", "It was built by Ada Vale in 1990. [3]", ()),
        ("When was Tavin & Loom founded?", "Tavin & Loom was set up in 1852 by Orsa Tavin.", (7,)),
        ("Who is older?", "Moor Bridge (1863; Tavin & Loom: set up in 1852) [3][7]", (3, 7)),
    ):
        assessment = assess(question, claim)
        assert assessment.verdicts[0].supported_by == support
        assert (assessment.coverage is Coverage.NOT) == (not support)


def test_a_claim_that_rests_on_nothing_that_bears_on_its_part_is_no_evidence_for_it() -> None:
    assessment = assess("Who built the Moor Bridge, and what is the phone number of Emil Brand?", "It had 90 men. [7]")
    assert assessment.verdicts[0].supported_by == (7,)
    assert assessment.components[1].coverage is Coverage.NOT


def test_what_is_missing_of_several_things_is_asked_for_by_itself_up_to_the_limit() -> None:
    assessment = assess("Who built the Moor Bridge, and how heavy is the Moor Bridge?", BUILT)
    assert assessment.structure is Structure.MULTIPLE
    assert [component.coverage for component in assessment.components] == [Coverage.EVIDENCE, Coverage.NOT]
    assert [(one.question, one.component) for one in assessment.follow_ups] == [("How heavy is the Moor Bridge?", 2)]
    question = "Who built the Lowen Bridge? How heavy is the Lowen Bridge? When was the Lowen Bridge sold?"
    assessment = assess(question, "It had 90 men. [7]", max_follow_ups=1)
    assert (len(assessment.follow_ups), assessment.dropped) == (1, 2)


def test_both_claims_of_a_bridge_are_evidence_together_and_no_claims_answer_nothing() -> None:
    answer = f"{BUILT} Tavin & Loom was a firm of bridge builders, set up in 1852 by Orsa Tavin. [7]"
    assessment = assess("When was the firm that built the Moor Bridge founded?", answer)
    assert assessment.coverage is Coverage.EVIDENCE
    assert assessment.components[0].claims == (1, 2)
    nothing = assess("Who constructed the Moor Bridge?", "")
    assert (nothing.verdicts, nothing.coverage) == ((), Coverage.NOT)


def test_a_sentence_whose_words_the_source_holds_is_supported_and_one_with_something_else_is_not() -> None:
    for sentence in (
        "Nissan Motor was founded in Yokohama in 1933.",
        "The founding of Nissan in Yokohama was in 1933.",
        "It employs 130000 people.",
    ):
        assert is_supported(sentence, NISSAN), sentence
    for sentence, lacking in (
        ("Nissan Motor was founded in Yokohama in 1933 and employs 13,000 people.", "number"),
        ("Nissan Motor was founded in Osaka in 1933.", "name"),
        ("Toyota Motor was founded in Yokohama in 1933.", "name at the start"),
        ("Nissan sold nothing but small trucks abroad.", "most content words"),
        ("It is.", "anything to hold"),
    ):
        assert not is_supported(sentence, NISSAN), lacking
    assert is_supported("alpha beta gamma delta epsilon", "gamma beta alpha"), "three of five words are most"
    assert not is_supported("alpha beta gamma delta epsilon", "gamma beta")
    assert not is_supported("日産は大阪府で創業した。", "ホンダは浜松に本社を置く。")
