from __future__ import annotations

from hypothesis import strategies as st

from agents.answers.citations import MIN_OVERLAP, locate_quote, parse_citations, quotable, strip_citations

words = st.text(st.characters(categories=("L", "N"), max_codepoint=0x24F), min_size=1, max_size=8)


def test_the_grammar() -> None:
    for text, numbers in (
        ("Founded in 1933 [3][2].", (3, 2)),
        ("Founded in 1933 [1–3].", (1, 2, 3)),
        ("Founded in 1933 [3-1].", (1, 2, 3)),
        ("Founded [2] in 1933 [1] by him [2].", (2, 1)),
        ("成立于1933年【1，3】。", (1, 3)),
        ("Founded in 1933 【1-3】[4].", (1, 2, 3, 4)),
        ("Founded in [year] 1933 [].", ()),
    ):
        parsed = parse_citations(text, range(1, 5))
        assert (parsed.numbers, parsed.out_of_range) == (numbers, ()), text
    errors = parse_citations("A [0]. B [2, 7]. C [4-6][7].", range(1, 5))
    assert (errors.numbers, errors.out_of_range) == ((2, 4), (0, 7, 5, 6)), "counted once each"
    text = "A [1][2] and B [1, 3]."
    assert [text[start:end] for start, end in parse_citations(text, range(1, 4)).spans] == ["[1]", "[2]", "[1, 3]"]


def test_a_bracket_that_is_no_citation_is_prose() -> None:
    for prose in ("the Act of [2024] said", "see [1, 2024]", "[12345]", "a[i]", "[1.5]", "[-1]", "【2024】", "【1]"):
        parsed = parse_citations(prose, range(1, 6))
        assert (parsed.numbers, parsed.out_of_range, parsed.spans) == ((), (), ())
        assert strip_citations(prose) == prose


def test_stripping_takes_citations_and_the_space_they_took() -> None:
    for text, plain in (
        ("Founded in 1933.[1] It grew.", "Founded in 1933. It grew."),
        ("Founded in 1933. [1] It grew.", "Founded in 1933. It grew."),
        ("Founded [1] in 1933 [2][3], in Japan.", "Founded in 1933, in Japan."),
        ("Founded in 1933 ([1], [2]).", "Founded in 1933."),
        ("[1] says 1933.\n[2] agrees.", "says 1933.\nagrees."),
    ):
        assert strip_citations(text) == plain


def test_a_quote_holds_the_words_without_the_signs_of_markdown() -> None:
    for sentence, words in (
        ("The **term** is `two` years.", "The term is two years."),
        ("See [the annex](https://ex.org/a) of it.", "See the annex of it."),
        ("bolt | 3 | steel", "bolt; 3; steel"),
        ("It rained\n> and stopped.", "It rained and stopped."),
        ("It was ~~May~~ June.[^1]", "It was May June."),
        (
            "See [the annex][b1] at <https://ex.org/a> by Otto\\_Krause.",
            "See the annex at https://ex.org/a by Otto_Krause.",
        ),
        ("if a==b and c==d, then [a-z] and x < y", "if a==b and c==d, then [a-z] and x < y"),
        ("the name my_var_name and 2 * 3 * 4 or 2**3", "the name my_var_name and 2 * 3 * 4 or 2**3"),
    ):
        assert quotable(sentence) == words


def test_a_quote_is_the_sentence_that_shares_most_words_the_earlier_on_a_tie() -> None:
    for claim, question, text, quote in (
        (
            "He lived in Oslo [2].",
            "",
            "Lund was a composer. Lund lived in Oslo. Lund lived in Oslo for long.",
            "Lund lived in Oslo.",
        ),
        (
            "1911",
            "When was the opera composed?",
            "A fire came in 1911. The opera was composed in 1911.",
            "The opera was composed in 1911.",
        ),
    ):
        span = locate_quote(claim, text, question)
        assert span is not None
        assert text[slice(*span)] == quote


def test_a_quote_below_the_least_overlap_and_a_claim_without_content_are_found_nowhere() -> None:
    claim = "The ferry Norda sank near Bergen during a winter storm"
    assert MIN_OVERLAP == 0.3
    assert locate_quote(claim, "Bergen is a town.") is None
    assert locate_quote(claim, "A storm hit the ferry near Bergen.") == (0, 34)
    for empty in ("", "[1]", "it was the"):
        assert locate_quote(empty, "It was the 1 opera.") is None
