from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.answers.citations import parse_citations
from agents.answers.claims import citing_sentences, split_claims
from workflows.evaluation.attribution import supported_citations

NISSAN = "Nissan\nNissan Motor was founded in Yokohama in 1933 and employs 130,000 people."
LEAF = "Nissan Leaf\nThe Leaf is an electric car that Nissan has built since 2010."


def cited_sentences(answer: str, known: set[int]) -> list[tuple[str, tuple[int, ...]]]:
    """The sentences of an answer that cite, with the numbers they cite."""
    return [(claim.text, claim.cited) for claim in split_claims(answer, known) if claim.cited]


class TestSentences:
    def test_each_citation_belongs_to_the_sentence_it_ends_or_stands_in(self) -> None:
        cases: list[tuple[str, list[tuple[str, tuple[int, ...]]]]] = [
            ("It was 1933. [1] It grew.", [("It was 1933.", (1,))]),
            ("It was 1933.[1] It grew.[2]", [("It was 1933.", (1,)), ("It grew.", (2,))]),
            ("It was 1933 ([1]). It grew [2, 3].", [("It was 1933.", (1,)), ("It grew.", (2, 3))]),
            ("It [1] was [2] 1933 [1].", [("It was 1933.", (1, 2))]),
            ("It grew [1-3][2].", [("It grew.", (1, 2, 3))]),
            ("[1] It grew.", [("It grew.", (1,))]),
            ("First line.\n[2] Second line.", [("Second line.", (2,))]),
            ("Said in prose [2024]. Nothing cited.", []),
            ("Out of range [9].", []),
            ("[1]", []),
        ]
        for answer, sentences in cases:
            assert cited_sentences(answer, {1, 2, 3}) == sentences, answer

    @settings(max_examples=30)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["It was 1933", "He left Paris", "They grew"]),
                st.sampled_from(["{}.", " {}.", ". {}", ".{}", "."]),
                st.sampled_from(["[1]", "[2][3]", "[1, 3]", "[1-2]"]),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_the_first_sentence_of_a_number_is_the_one_that_the_answer_shows_for_it(
        self, parts: list[tuple[str, str, str]]
    ) -> None:
        answer = " ".join(words + form.format(mark) for words, form, mark in parts)
        sentences = cited_sentences(answer, {1, 2, 3})
        for number in parse_citations(answer, {1, 2, 3}).numbers:
            first = next(text for text, cited in sentences if number in cited)
            assert first == citing_sentences(answer)[number]


class TestCitations:
    def test_a_citation_is_supported_where_all_its_sentences_stand_in_the_passages_that_they_cite(self) -> None:
        both = "Nissan was founded in 1933 and has built the electric Leaf since 2010 [1][2]."
        twice = "Nissan was founded in 1933 [1]. The Leaf is an electric car [2]. Honda followed in 1948 [1]."
        bees = "Bees\nBees make honey."
        cases: list[tuple[str, dict[int, str], dict[int, bool]]] = [
            (both, {1: NISSAN, 2: LEAF}, {1: True, 2: True}),
            (both.replace("[2]", ""), {1: NISSAN, 2: LEAF}, {1: False}),
            (twice, {1: NISSAN, 2: LEAF}, {1: False, 2: True}),
            ("Nissan was founded in 1933 [1][2].", {1: NISSAN, 2: bees}, {1: True, 2: False}),
            ("Honda makes cars [1].", {1: "Honda\nIt makes cars."}, {1: True}),
            ("Nissan was founded in 1933 [2].", {1: NISSAN, 3: LEAF}, {}),
            ("Nissan was founded in 1933.", {1: NISSAN}, {}),
        ]
        for answer, passages, verdicts in cases:
            assert supported_citations(answer, passages) == verdicts, answer
