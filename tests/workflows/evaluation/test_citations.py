from __future__ import annotations

from workflows.evaluation.attribution import supported_citations

NISSAN = "Nissan\nNissan Motor was founded in Yokohama in 1933 and employs 130,000 people."
LEAF = "Nissan Leaf\nThe Leaf is an electric car that Nissan has built since 2010."


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
