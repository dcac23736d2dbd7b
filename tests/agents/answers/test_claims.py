from __future__ import annotations

import random
import re
from collections.abc import Sequence

from hypothesis import strategies as st

from agents.answers.citations import MARK, parse_citations, strip_citations
from agents.answers.claims import Claim, join_claims, marks_in_words, split_claims

KNOWN = frozenset({1, 2, 4, 12})
SENTENCES = ("It grew", "Dr. Kral left Paris in 1933", "The U.S. Army came", "Ärger überall", "Nissan employs 130,000")
MARKS = ("", " [1]", " [2, 4]", "[1][12]", " [1-2]", " ([4])", " [9]", " [1], [2]")
PIECES = (
    *SENTENCES,
    *("日产成立于1933年", "総部", "सत्य", "🙂", "e.g.", "12. May 1933"),
    *("[1]", "[2, 4]", "[1-3]", "[1][2]", "([12])", "[99]", "[2024]", "[1", "]", "[", "[a]"),
    *(".", "!", "?", "。", "।", "…", ",", ";", "(", ")", '"', "”", "'", "**", "_", "|", "---", "—"),
    *(" ", "  ", "\n", "\n\n", "\r\n", "\t", "- ", "* ", "1. ", "2) ", "## ", "> "),
)  # fmt: skip
_LINE_MARKER = re.compile(r"^[ \t]*(?:(?:[-*>]|#+|\d+[.)])[ \t]+)+", re.MULTILINE)


def random_answer(seed: int) -> str:
    draw = random.Random(seed)
    return "".join(draw.choice(PIECES) + draw.choice(("", " ")) for _ in range(draw.randint(0, 20)))


def said(claims: Sequence[Claim]) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.cited) for claim in claims]


def numbers(claims: Sequence[Claim]) -> set[int]:
    return {claim.number for claim in claims}


@st.composite
def prose(draw: st.DrawFn) -> str:
    """One to three sentences on a line, citations before or behind their stops."""
    sentences = [
        draw(st.sampled_from(("{0}{1}.", "{0}.{1}", "{0}{1}!", "“{0}.”{1}", "**{0}**{1}."))).format(
            draw(st.sampled_from(SENTENCES)), draw(st.sampled_from(MARKS))
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return " ".join(sentences)


@st.composite
def answers(draw: st.DrawFn) -> str:
    """Paragraphs, headings and lists."""
    blocks = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(("prose", "heading", "bullets", "ordered")))
        if kind == "prose":
            blocks.append(draw(prose()))
        elif kind == "heading":
            blocks.append(f"## {draw(st.sampled_from(SENTENCES))}\n{draw(prose())}")
        else:
            items = draw(st.lists(prose(), min_size=2, max_size=3))
            ordinals = [f"{position}." if kind == "ordered" else "-" for position in range(1, 4)]
            blocks.append("\n".join(f"{ordinal} {item}" for ordinal, item in zip(ordinals, items, strict=False)))
    return draw(st.sampled_from(("\n\n", "\n"))).join(blocks)


def test_claims_are_sentences_items_and_headings_with_what_they_cite() -> None:
    for answer, claims in [
        ("It was 1933 [1]. It grew [2, 4].", [("It was 1933.", (1,)), ("It grew.", (2, 4))]),
        ("Dr. Kral [1] came. He left [2].", [("Dr. Kral came.", (1,)), ("He left.", (2,))]),
        ("It stood in the U.S. [1] It fell [2].", [("It stood in the U.S.", (1,)), ("It fell.", (2,))]),
        ('He said "No." [1] She left.', [('He said "No."', (1,)), ("She left.", ())]),
        ("It grew. [1] (It fell.) [2]", [("It grew.", (1,)), ("(It fell.)", (2,))]),
        ("成立于1933年[1]。总部在横滨。[2]它大。", [("成立于1933年。", (1,)), ("总部在横滨。", (2,)), ("它大。", ())]),
        ("[1] It grew.\n[2] It fell.", [("It grew.", (1,)), ("It fell.", (2,))]),
        ("It was founded\nin 1933 [1]\nand grew [2].", [("It was founded\nin 1933\nand grew.", (1, 2))]),
        ("[1]\n\nIt grew.", [("It grew.", (1,))]),
        ("Cars:\n- Leaf [1]\n- Micra\n* Juke [2]", [("Cars:", ()), ("Leaf", (1,)), ("Micra", ()), ("Juke", (2,))]),
        ("## Cars\nLeaf is one [1].\n> Quoted.", [("Cars", ()), ("Leaf is one.", (1,)), ("Quoted.", ())]),
        ("12. May 1933 [1]", [("12. May 1933", (1,))]),
        ("It grew [1].\n\n---\n\nIt fell.", [("It grew.", (1,)), ("It fell.", ())]),
        ("It grew [9] in [2024].", [("It grew in [2024].", ())]),
        ("", []),
        ("[1]", []),
    ]:
        assert said(split_claims(answer, KNOWN)) == claims


def test_an_abbreviation_does_not_end_a_claim_and_a_word_that_looks_like_one_does() -> None:
    for claim in ("It was led by Gen. Kral.", "It closed in Oct. 1912.", "Besrour et al. Show it."):
        assert said(split_claims(f"{claim[:-1]} [1]. It fell [2].", KNOWN)) == [(claim, (1,)), ("It fell.", (2,))]
    for word in ("Portugal", "Fog", "March", "general", "Peep"):
        assert len(split_claims(f"It was {word}. It fell.")) == 2
    for answer in (
        "The prize went to Amartya Sen [1]. He was born elsewhere [2].",
        "It opened in Dec [1]. It closed soon [2].",
        "He studied Art. She did not [2].",
    ):
        assert len(split_claims(answer)) == 2, answer


def test_a_claim_tells_where_it_stands_and_without_known_numbers_every_number_is_cited() -> None:
    answer = "- It grew. [1][2]\n- It fell ([4])."
    claims = split_claims(answer)
    assert [answer[claim.start : claim.end] for claim in claims] == ["It grew. [1][2]", "It fell ([4])."]
    assert [claim.number for claim in claims] == [1, 2]
    assert said(split_claims("It grew [7, 999]. It fell [0].")) == [("It grew.", (7, 999)), ("It fell.", (0,))]


def test_a_thousand_random_texts_are_split_and_joined_without_loss() -> None:
    for seed in range(1_000):
        answer = random_answer(seed)
        parsed = parse_citations(answer, KNOWN)
        everything = parse_citations(answer, range(1_000))
        claims = split_claims(answer, KNOWN)
        assert join_claims(answer, claims) == answer
        assert set(parsed.numbers) | set(parsed.out_of_range) == set(everything.numbers)
        assert KNOWN.issuperset(parsed.numbers)
        assert KNOWN.isdisjoint(parsed.out_of_range)
        assert {number for claim in claims for number in claim.cited} == (set(parsed.numbers) if claims else set())
        assert_nothing_said_stands_outside(answer, claims)
        assert (99 in parsed.out_of_range) == ("[99]" in answer)


def assert_nothing_said_stands_outside(answer: str, claims: Sequence[Claim]) -> None:
    outside = list(answer)
    end = 0
    for claim in claims:
        assert end <= claim.start < claim.end
        end = claim.end
        outside[claim.start : claim.end] = " " * (claim.end - claim.start)
    rest = strip_citations(_LINE_MARKER.sub("", "".join(outside)))
    assert not re.search(r"[^\W_]", rest), (answer, rest)


def test_what_is_left_of_an_answer() -> None:
    for answer, removed, left in [
        ("It grew [1]. It fell [2]. It ended.", {2}, "It grew [1]. It ended."),
        ("It grew [1]. It fell. [2]", {2}, "It grew [1]."),
        ("It grew [1]. It fell. [2]", {1}, "It fell. [2]"),
        ("It grew.\n\nIt fell.\n\nIt ended.\n", {2}, "It grew.\n\nIt ended.\n"),
        ("Cars:\n- Leaf\n- Juke\n\nIn sum.", {3}, "Cars:\n- Leaf\n\nIn sum."),
        ("- Leaf. Old.\n- Juke.", {1}, "- Old.\n- Juke."),
        ("- Leaf. Old.\n- Juke.", {1, 2}, "- Juke."),
        ("## Cars\nLeaf is one.", {1}, "Leaf is one."),
        ("It grew.\n## Cars\nLeaf is one.", {2, 3}, "It grew."),
        ("日产成立于1933年[1]。总部在横滨。[2]它很大。", {2}, "日产成立于1933年[1]。它很大。"),
        ("It grew. It fell.", {1, 2}, ""),
        ("It grew.\n\n---\n", {1}, ""),
    ]:
        assert join_claims(answer, split_claims(answer), remove=removed) == left


def test_the_mark_stands_behind_the_citations_and_removal_goes_before_marking() -> None:
    answer = "It grew. [1] It fell [9].\n- It ended"
    claims = split_claims(answer)
    marked = join_claims(answer, claims, mark={1, 2, 3})
    assert marked == f"It grew. [1] {MARK} It fell [9]. {MARK}\n- It ended {MARK}"
    assert join_claims(answer, claims, remove={1}, mark={1, 3}) == f"It fell [9].\n- It ended {MARK}"


def test_marks_behind_claims_are_put_in_words_and_prose_stays() -> None:
    text = f"It grew [1]. {MARK} The {MARK} tag is old [2].\n- Marn {MARK}\n- Kesh"
    words = f"It grew [1]. (unsure) The {MARK} tag is old [2].\n- Marn (unsure)\n- Kesh"
    assert marks_in_words(text, "(unsure)") == words
