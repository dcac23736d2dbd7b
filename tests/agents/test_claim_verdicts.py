"""Settling an answer: every claim is kept, marked or removed, and each of that can be seen."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents.answers.citations import MARK, parse_citations, strip_citations
from agents.answers.claims import split_claims
from agents.claim_judge import Assessment, ClaimVerdict, Component, Coverage, Structure
from agents.claim_verdicts import Settled, Verdict, claims_of, nothing_answered, settle_claims
from agents.roles import REFUSAL, NumberedPassage, refusal

QUESTION = "Who founded the yard at Orsund, and when did it close?"
YARD = NumberedPassage(3, "p-yard", "Orsund", "Orsund lies on the sound. The yard was founded by Nils Berg in 1881.")
BANK = NumberedPassage(12, "p-bank", "Orsund Bank", "The bank closed in 1940.")
ANSWER = "The yard was founded by Nils Berg [3]. It closed in 1940 [12]. Ships were built there."
FULLY, PARTIALLY, NOT = Coverage.FULLY, Coverage.PARTIALLY, Coverage.NOT


def settle(
    verdicts: Mapping[int, ClaimVerdict],
    *components: Component,
    answer: str = ANSWER,
    remove: bool = False,
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
    def test_an_answer_whose_claims_all_hold_stays_byte_for_byte(self) -> None:
        settled = settle(verdicts(SUPPORTED_WITHOUT_CITATION))
        assert settled.answer.text == settled.draft == ANSWER
        assert {each.verdict for each in settled.claims} == {Verdict.SUPPORTED}

    def test_an_unsupported_one_is_marked(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION))
        assert settled.answer.text == ANSWER.replace("[12].", f"[12]. {MARK}")
        assert [each.verdict for each in settled.claims] == ["supported", "unsupported", "supported"]
        assert [each.kept for each in settled.claims] == [True, True, True]
        assert settled.draft == "The yard was founded by Nils Berg [3]. Ships were built there."

    def test_or_removed_where_that_is_wanted(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION), remove=True)
        assert settled.answer.text == "The yard was founded by Nils Berg [3]. Ships were built there."
        assert [(each.claim.text, each.kept) for each in settled.claims][1] == ("It closed in 1940.", False)
        assert [citation.number for citation in settled.answer.citations] == [3]

    def test_an_irrelevant_one_goes_however_well_supported(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, (12,), relevant=False), SUPPORTED_WITHOUT_CITATION))
        assert "1940" not in settled.answer.text + settled.draft
        assert (settled.claims[1].verdict, settled.claims[1].kept) == (Verdict.IRRELEVANT, False)

    def test_support_counts_only_from_the_passages_that_a_claim_cites(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, (3,)), SUPPORTED_WITHOUT_CITATION))
        assert (settled.claims[1].verdict, settled.claims[1].supported_by) == (Verdict.UNSUPPORTED, (3,))

    def test_what_another_passage_says_is_marked_and_no_reason_to_refuse(self) -> None:
        answer = "It closed in 1940 [3]."
        settled = settle(verdicts(ClaimVerdict(1, (12,))), answer=answer)
        assert (settled.answer.text, settled.coverage) == (f"{answer} {MARK}", PARTIALLY)
        assert (settled.draft, settled.cited) == ("", ())

    def test_an_uncited_one_may_be_supported_and_stays_uncited(self) -> None:
        settled = settle(verdicts(SUPPORTED_WITHOUT_CITATION))
        last = settled.claims[2]
        assert (last.verdict, last.supported_by, last.claim.cited) == (Verdict.SUPPORTED, (3,), ())
        assert settled.answer.text.endswith("Ships were built there.")

    def test_support_by_a_passage_that_there_is_none_of_counts_for_nothing(self) -> None:
        settled = settle(verdicts(ClaimVerdict(3, (7,))))
        assert (settled.claims[2].verdict, settled.claims[2].supported_by) == (Verdict.UNSUPPORTED, ())

    def test_its_words_are_located_where_a_supporting_passage_holds_them(self) -> None:
        settled = settle(verdicts(SUPPORTED_WITHOUT_CITATION))
        (span,) = settled.claims[0].spans
        assert (span.number, span.passage_id) == (3, "p-yard")
        assert YARD.text[span.start : span.end] == "The yard was founded by Nils Berg in 1881."
        assert settled.claims[2].spans == ()
        assert settled.answer.citations[0] == span

    def test_a_citation_that_supports_nothing_is_told_without_a_place(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION))
        bank = settled.answer.citations[1]
        assert (bank.number, bank.passage_id, bank.start, bank.end) == (12, "p-bank", None, None)

    def test_the_plain_answer_has_neither_citations_nor_marks(self) -> None:
        settled = settle(verdicts(ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION))
        plain = "The yard was founded by Nils Berg. It closed in 1940. Ships were built there."
        assert settled.answer.plain_text == plain


class TestCoverage:
    FOUNDED, CLOSED = "Who founded the yard?", "When did the yard close?"

    @pytest.mark.parametrize(
        ("said", "claims", "settled"),
        [
            (FULLY, (1,), FULLY),
            (FULLY, (1, 2), PARTIALLY),
            (FULLY, (2,), NOT),
            (FULLY, (3,), NOT),
            (FULLY, (1, 3), FULLY),
            (FULLY, (), NOT),
            (FULLY, (9,), NOT),
            (PARTIALLY, (1,), PARTIALLY),
            (PARTIALLY, (2,), NOT),
            (NOT, (1,), NOT),
            (NOT, (2,), NOT),
        ],
    )
    def test_a_component_is_answered_as_far_as_its_claims_hold(
        self, said: Coverage, claims: tuple[int, ...], settled: Coverage
    ) -> None:
        """Claim 1 is supported, 2 is not, and 3 is irrelevant; another component keeps the answer from a refusal."""
        asked = (Component(self.FOUNDED, said, claims), Component(self.CLOSED, FULLY, (1,)))
        found = settle(verdicts(ClaimVerdict(2, ()), ClaimVerdict(3, (3,), relevant=False)), *asked)
        assert [component.coverage for component in found.components] == [settled, FULLY]
        assert found.coverage is (FULLY if settled is FULLY else PARTIALLY)

    def test_claims_name_the_component_that_they_are_about(self) -> None:
        asked = (Component(self.FOUNDED, FULLY, (1,)), Component(self.CLOSED, FULLY, (2,)))
        assert [each.component for each in settle({}, *asked).claims] == [1, 2, None]

    @pytest.mark.parametrize("remove", [False, True])
    def test_an_answer_that_answers_nothing_becomes_a_refusal(self, remove: bool) -> None:
        settled = settle({number: ClaimVerdict(number, ()) for number in (1, 2, 3)}, remove=remove)
        assert settled.answer == refusal()
        assert (settled.coverage, settled.draft, settled.cited) == (NOT, "", ())
        assert [each.kept for each in settled.claims] == [False] * 3
        assert [each.claim.text for each in settled.claims][1] == "It closed in 1940."

    def test_a_claim_that_no_component_lists_may_be_about_any(self) -> None:
        asked = (Component(self.FOUNDED, FULLY, (2,)), Component(self.CLOSED, NOT, ()))
        found = settle(verdicts(ClaimVerdict(2, ()), ClaimVerdict(3, (), relevant=False)), *asked)
        assert found.answer.text == f"The yard was founded by Nils Berg [3]. It closed in 1940 [12]. {MARK}"
        assert [component.coverage for component in found.components] == [PARTIALLY, NOT]

    def test_of_a_question_for_one_thing_every_relevant_claim_is_about_it(self) -> None:
        found = settle(verdicts(ClaimVerdict(1, ()), ClaimVerdict(3, (), relevant=False)), Component("?", FULLY, (1,)))
        assert [each.component for each in found.claims] == [1, 1, None]
        assert (found.coverage, found.answer.refused) == (PARTIALLY, False)

    def test_an_answer_is_not_refused_where_nobody_judged_it(self) -> None:
        claims = claims_of(ANSWER, (3, 12))
        nobody = nothing_answered(QUESTION, claims)
        for refuses in (True, False):
            found = settle_claims(
                QUESTION, ANSWER, claims, nobody, (YARD, BANK), remove_unsupported=False, refuse_unanswered=refuses
            )
            assert (found.answer.refused, found.coverage) == (refuses, NOT)
        assert found.answer.text.count(MARK) == len(claims)

    def test_a_refusal_makes_no_claims_and_stays_one(self) -> None:
        assert claims_of(f" {REFUSAL}\n", (3,)) == []
        assessment = nothing_answered(QUESTION)
        settled = settle_claims(QUESTION, REFUSAL, [], assessment, (YARD,), remove_unsupported=False)
        assert (settled.answer, settled.claims, settled.coverage) == (refusal(), (), NOT)
        assert [component.text for component in settled.components] == [QUESTION]


class TestTheDraft:
    def test_what_it_cites_with_good_reason_has_to_stay(self) -> None:
        answer = "The yard was founded by Nils Berg [3, 12]. It closed in 1940 [12]."
        settled = settle(verdicts(ClaimVerdict(1, (3,)), ClaimVerdict(2, ())), answer=answer)
        assert (settled.draft, settled.cited) == ("The yard was founded by Nils Berg [3, 12].", (3,))

    def test_without_a_supported_citation_there_is_nothing_to_complete(self) -> None:
        settled = settle(verdicts(ClaimVerdict(1, ()), ClaimVerdict(2, ()), SUPPORTED_WITHOUT_CITATION))
        assert (settled.draft, settled.cited) == ("", ())
        assert not settled.answer.refused


SENTENCES = st.tuples(
    st.sampled_from(["The yard was founded by Nils Berg", "It closed in 1940", "Ships were built", "Dr. Kral left"]),
    st.sampled_from(["", " [3]", " [12]", " [3, 12]", " [12][3]", " [3-4]", " [99]", " [2024]"]),
    st.sampled_from([".", "!", "?"]),
)
VERDICTS = st.tuples(st.sets(st.sampled_from([3, 12, 99])), st.booleans())


class TestWhateverIsSaid:
    @hypothesis_settings(max_examples=40)
    @given(st.lists(st.tuples(SENTENCES, VERDICTS), min_size=1, max_size=5), st.booleans(), st.sampled_from(" \n"))
    def test_no_claim_is_kept_in_silence_and_no_citation_comes_from_nowhere(
        self,
        said: list[tuple[tuple[str, str, str], tuple[set[int], bool]]],
        remove: bool,
        between: str,
    ) -> None:
        answer = between.join("".join(sentence) for sentence, _ in said)
        claims = claims_of(answer, (3, 12))
        judged = {
            claim.number: ClaimVerdict(claim.number, tuple(sorted(support)), relevant)
            for claim, (_, (support, relevant)) in zip(claims, said, strict=False)
        }
        settled = settle(judged, answer=answer, remove=remove)
        text = settled.answer.text
        assert [each.claim for each in settled.claims] == claims
        assert text.count(MARK) == sum(each.kept and each.verdict is Verdict.UNSUPPORTED for each in settled.claims)
        assert {citation.number for citation in settled.answer.citations} <= {3, 12}
        if settled.answer.refused:
            assert not any(each.kept for each in settled.claims)
            return
        for each in settled.claims:
            assert each.kept == (
                each.verdict is Verdict.SUPPORTED or (each.verdict is Verdict.UNSUPPORTED and not remove)
            )
            assert set(each.supported_by) <= {3, 12}
            assert {span.number for span in each.spans} <= set(each.supported_by) & set(each.claim.cited or (3, 12))
        left = split_claims(text, (3, 12))
        assert [(each.text, each.cited) for each in left] == [
            (each.claim.text, each.claim.cited) for each in settled.claims if each.kept
        ]
        cited = [number for each in left for number in each.cited]
        assert [citation.number for citation in settled.answer.citations] == list(dict.fromkeys(cited))
        assert set(settled.cited) <= set(parse_citations(settled.draft, (3, 12)).numbers)
        assert MARK not in settled.draft + settled.answer.plain_text
        assert strip_citations(settled.answer.plain_text) == settled.answer.plain_text
