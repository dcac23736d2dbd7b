"""Settling an answer: every claim is kept, marked or removed, and each of that can be seen."""

from __future__ import annotations

from collections.abc import Mapping

from agents.answers.citations import MARK
from agents.claim_judge import (
    Assessment,
    ClaimVerdict,
    Component,
    Coverage,
    Settled,
    Structure,
    Verdict,
    claims_of,
    nothing_answered,
    settle_claims,
)
from agents.roles import NumberedPassage, refusal

QUESTION = "Who founded the yard at Orsund, and when did it close?"
YARD = NumberedPassage(3, "p-yard", "Orsund", "Orsund lies on the sound. The yard was founded by Nils Berg in 1881.")
BANK = NumberedPassage(12, "p-bank", "Orsund Bank", "The bank closed in 1940.")
ANSWER = "The yard was founded by Nils Berg [3]. It closed in 1940 [12]. Ships were built there."
FULLY, PARTIALLY, NOT = Coverage.FULLY, Coverage.PARTIALLY, Coverage.NOT


def settle(
    verdicts: Mapping[int, ClaimVerdict], *components: Component, answer: str = ANSWER, remove: bool = False
) -> Settled:
    claims = claims_of(answer, (3, 12))
    judged = tuple(verdicts.get(claim.number, ClaimVerdict(claim.number, claim.cited)) for claim in claims)
    asked = components or (Component(QUESTION, FULLY, tuple(claim.number for claim in claims)),)
    structure = Structure.SINGLE if len(asked) == 1 else Structure.MULTIPLE
    assessment = Assessment(structure, asked, judged)
    return settle_claims(QUESTION, answer, claims, assessment, (YARD, BANK), remove_unsupported=remove)


def verdicts(*each: ClaimVerdict) -> dict[int, ClaimVerdict]:
    return {verdict.claim: verdict for verdict in each}


SUPPORTED_WITHOUT_CITATION = ClaimVerdict(3, (3,))


class TestWhatBecomesOfAClaim:
    def test_an_answer_whose_claims_all_hold_stays_byte_for_byte_the_uncited_ones_included(self) -> None:
        settled = settle(verdicts(SUPPORTED_WITHOUT_CITATION))
        assert settled.answer.text == settled.draft == ANSWER
        assert {each.verdict for each in settled.claims} == {Verdict.SUPPORTED}
        last = settled.claims[2]
        assert (last.supported_by, last.claim.cited, last.spans) == ((3,), (), ())

    def test_an_unsupported_one_is_marked(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION))
        assert settled.answer.text == ANSWER.replace("[12].", f"[12]. {MARK}")
        assert [each.verdict for each in settled.claims] == ["supported", "unsupported", "supported"]
        assert [each.kept for each in settled.claims] == [True, True, True]
        assert settled.draft == "The yard was founded by Nils Berg [3]. Ships were built there."
        bank = settled.answer.citations[1]
        assert (bank.number, bank.passage_id, bank.start, bank.end) == (12, "p-bank", None, None)

    def test_or_removed_where_that_is_wanted(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION), remove=True)
        assert settled.answer.text == "The yard was founded by Nils Berg [3]. Ships were built there."
        assert [citation.number for citation in settled.answer.citations] == [3]

    def test_an_irrelevant_one_goes_however_well_supported(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, (12,), relevant=False), SUPPORTED_WITHOUT_CITATION))
        assert "1940" not in settled.answer.text + settled.draft
        assert (settled.claims[1].verdict, settled.claims[1].kept) == (Verdict.IRRELEVANT, False)

    def test_support_counts_only_from_the_passages_that_a_claim_cites_and_that_there_are(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, (3,)), ClaimVerdict(3, (7,))))
        assert (settled.claims[1].verdict, settled.claims[1].supported_by) == (Verdict.UNSUPPORTED, (3,))
        assert (settled.claims[2].verdict, settled.claims[2].supported_by) == (Verdict.UNSUPPORTED, ())
        answer = "It closed in 1940 [3]."
        settled = settle(verdicts(ClaimVerdict(1, (12,))), answer=answer)
        assert (settled.answer.text, settled.coverage) == (f"{answer} {MARK}", PARTIALLY), "no reason to refuse"
        assert (settled.draft, settled.cited) == ("", ())

    def test_the_draft_cites_with_good_reason_or_there_is_nothing_to_complete(self) -> None:
        answer = "The yard was founded by Nils Berg [3, 12]. It closed in 1940 [12]."
        settled = settle(verdicts(ClaimVerdict(1, (3,)), ClaimVerdict(2, ())), answer=answer)
        assert (settled.draft, settled.cited) == ("The yard was founded by Nils Berg [3, 12].", (3,))
        settled = settle(verdicts(ClaimVerdict(1, ()), ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION))
        assert (settled.draft, settled.cited, settled.answer.refused) == ("", (), False)


class TestCoverage:
    FOUNDED, CLOSED = "Who founded the yard?", "When did the yard close?"

    def test_a_component_is_answered_as_far_as_its_claims_hold(self) -> None:
        """Claim 1 is supported, 2 is not, and 3 is irrelevant; another component keeps the answer from a refusal."""
        cases: list[tuple[Coverage, tuple[int, ...], Coverage]] = [
            (FULLY, (1,), FULLY),
            (FULLY, (1, 2), PARTIALLY),
            (FULLY, (3,), NOT),
            (FULLY, (1, 3), FULLY),
            (FULLY, (), NOT),
            (PARTIALLY, (1,), PARTIALLY),
            (PARTIALLY, (2,), NOT),
            (NOT, (1,), NOT),
        ]
        for judged, claims, coverage in cases:
            asked = (Component(self.FOUNDED, judged, claims), Component(self.CLOSED, FULLY, (1,)))
            settled = settle(verdicts(ClaimVerdict(2, ()), ClaimVerdict(3, (3,), relevant=False)), *asked)
            assert [component.coverage for component in settled.components] == [coverage, FULLY], (judged, claims)
            assert settled.coverage is (FULLY if coverage is FULLY else PARTIALLY)

    def test_claims_name_the_component_that_they_are_about_or_any_where_none_lists_them(self) -> None:
        asked = (Component(self.FOUNDED, FULLY, (1,)), Component(self.CLOSED, FULLY, (2,)))
        assert [each.component for each in settle({}, *asked).claims] == [1, 2, None]
        asked = (Component(self.FOUNDED, FULLY, (2,)), Component(self.CLOSED, NOT, ()))
        settled = settle(verdicts(ClaimVerdict(2, ()), ClaimVerdict(3, (), relevant=False)), *asked)
        assert settled.answer.text == f"The yard was founded by Nils Berg [3]. It closed in 1940 [12]. {MARK}"
        assert [component.coverage for component in settled.components] == [PARTIALLY, NOT]
        single = verdicts(ClaimVerdict(1, ()), ClaimVerdict(3, (), relevant=False))
        settled = settle(single, Component("?", FULLY, (1,)))
        assert [each.component for each in settled.claims] == [1, 1, None], "every relevant claim is about one thing"
        assert (settled.coverage, settled.answer.refused) == (PARTIALLY, False)

    def test_an_answer_that_answers_nothing_becomes_a_refusal(self) -> None:
        for remove in (False, True):
            settled = settle({number: ClaimVerdict(number, ()) for number in (1, 2, 3)}, remove=remove)
            assert settled.answer == refusal()
            assert (settled.coverage, settled.draft, settled.cited) == (NOT, "", ())
            assert [each.kept for each in settled.claims] == [False] * 3

    def test_an_answer_without_judgement_is_refused_unless_that_is_not_wanted(self) -> None:
        claims = claims_of(ANSWER, (3, 12))
        nothing = nothing_answered(QUESTION, claims)
        for refuses in (True, False):
            settled = settle_claims(
                QUESTION, ANSWER, claims, nothing, (YARD, BANK), remove_unsupported=False, refuse_unanswered=refuses
            )
            assert (settled.answer.refused, settled.coverage) == (refuses, NOT)
        assert settled.answer.text.count(MARK) == len(claims)
