from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.offline.evidence import find_evidence
from agents.offline.questions import split_question
from agents.roles import NumberedPassage
from tests.agents.offline.office import (
    BOATS,
    ENGINES,
    LEASE,
    PHONES,
    PRICES_2023,
    PRICES_2025,
    TEAM,
    TOOLS,
    YARD,
    passage,
    quoted,
    read,
)


def unlike(texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts so that none is like the first one."""
    return np.array([[1, 0], *([[0.1, 1]] * (len(texts) - 1))], np.float32)


KESTREL_OR_ALCYON = "the Kestrel or the Alcyon?"


def test_the_sentence_that_bears_on_a_question_comes_first() -> None:
    for question, source, words in (
        ("Who runs the paint shop?", "team.md", "Hedda Lunt runs the paint shop."),
        ("What is the monthly rent of the slipway?", "slipway-lease.md", "EUR 2,150"),
        ("What is the price of the DV-340?", "engines.md", "EUR 11,450"),
        ("Wann hat die Werft Lindholm den Kran gekauft?", "protokoll.md", "3. Februar 2023"),
    ):
        evidence = read(question)
        assert (evidence.refusal, evidence.misspelt) == ("", ()), question
        assert evidence.excerpts[0].passage.source == source, question
        assert words in evidence.excerpts[0].quote()


def test_nothing_is_quoted_where_something_of_a_question_stands_nowhere_and_the_reason_is_told() -> None:
    cases: list[tuple[str, tuple[NumberedPassage, ...], str]] = [
        ("When does the Siemens contract end?", YARD, "do not hold siemens"),
        ("Wann hat die Werft Brandt den Kran gekauft?", YARD, "do not hold brandt"),
        ("Which was launched first, the Kestrel or the Merlin?", YARD, "do not hold merlin"),
        ("How heavy is the crane strap?", (TOOLS,), "hold no weight that would answer it"),
        ("Which is lighter, the mast or the keel?", (BOATS,), "do not hold both of the things compared"),
        ("Why did the harbour master resign after the storm?", (TEAM, ENGINES), "hold too little of the question"),
    ]
    for question, passages, reason in cases:
        evidence = read(question, *passages)
        assert (evidence.excerpts, evidence.refusal) == ((), f"the passages found {reason}")
    for question in ("", "Who?", "?"):
        assert read(question).refusal == "nothing is asked"
    assert find_evidence("Who runs the paint shop?", [], None).refusal == "no passage was found"


def test_what_is_unlike_the_question_is_refused_where_meanings_are_compared() -> None:
    assert find_evidence("Who runs the paint shop?", [TEAM], unlike).excerpts
    for question, one in (("Who runs the paint shop?", TEAM), ("Which extensions did Marek Sobol sell?", PHONES)):
        assert find_evidence(question, [one], unlike, 0.3).refusal, question


def test_questions_in_documents_are_no_evidence_but_their_answers_are() -> None:
    for question, answer in (("Where do I get a respirator?", "in the red cabinet"),):
        evidence = read(question)
        assert answer in evidence.excerpts[0].sentences[0].text
        assert not any(sentence.text.endswith("?") for each in evidence.excerpts for sentence in each.sentences)
    open_question = passage(1, "minutes.md", "The meeting began at nine.\n\nWho pays for the training?")
    assert "Who pays" not in quoted(read("Who pays for the training?", open_question))


def customer(number: int, name: str, manager: str, pumps: int) -> NumberedPassage:
    row = f"customer: {name}; account_manager: {manager}; pumps_installed: {pumps}"
    return passage(number, "customers.csv", row, name)


CUSTOMERS = (
    customer(1, "Tyne", "Hedda Lunt", 14),
    customer(2, "Havn", "Marek Sobol", 6),
    customer(3, "Polar", "Hedda Lunt", 9),
    customer(4, "Moor", "Ines Caro", 3),
)


def test_rows_that_hold_the_whole_question_are_quoted_and_no_others_however_unlike_the_question() -> None:
    for question, rows in (
        ("Which customers does Hedda Lunt manage?", {1, 3}),
        ("How many pumps are installed?", {1, 2, 3}),
    ):
        evidence = find_evidence(question, CUSTOMERS, unlike, 0.3)
        assert {excerpt.passage.number for excerpt in evidence.excerpts} == rows, question
    for question, short in (
        ("Which has more pumps, Havn or Moor?", "Havn (pumps_installed: 6; Moor: 3)"),
        ("Which has more pumps, Hedda Lunt or Ines Caro?", ""),
    ):
        assert find_evidence(question, CUSTOMERS, unlike, 0.3).short == short


def test_each_part_of_a_question_has_its_own_evidence() -> None:
    parts = split_question("Who runs the paint shop, and when was the lease of the Slipway signed?")
    assert [read(part).excerpts[0].passage for part in parts] == [TEAM, LEASE]


def test_a_person_named_in_one_document_is_looked_up_in_another() -> None:
    evidence = read("What is the phone number of the person who runs the paint shop?")
    assert [excerpt.passage for excerpt in evidence.excerpts] == [PHONES, TEAM]
    assert "+49 431 555 217" in evidence.excerpts[0].quote()
    assert "230" not in quoted(evidence)
    rigger = read("What is the extension of the rigger?")
    assert "Marek Sobol: extension: 230" in quoted(rigger)


def test_two_dates_or_numbers_are_compared_in_sentences_and_in_the_column_that_is_asked_for() -> None:
    for question, short in (
        ("Which is heavier, the DV-210 or the DV-340?", "DV-340 (weight: 251 kg; DV-210: 184 kg)"),
        ("Which is larger, the DV-210 or the DV-340?", ""),
    ):
        evidence = read(question)
        assert evidence.short == short
        assert "DV" not in question or ("184 kg" in quoted(evidence) and "251 kg" in quoted(evidence))
    later = read(f"Which was launched later, {KESTREL_OR_ALCYON}")
    assert "2021-08-20" in later.excerpts[0].quote(), "it wins"
    assert "3 May 2019" in later.excerpts[1].quote()
    text = "The Kestrel was launched in 2019 and sold in 2021.\n\nThe Alcyon was launched in 2020."
    two_candidates = read(f"Which was launched first, {KESTREL_OR_ALCYON}", passage(1, "a.md", text))
    assert two_candidates.short == ""
    assert {"2019", "2020"} <= set(quoted(two_candidates).replace(".", "").split())


def test_lines_of_a_data_sheet_of_each_are_compared() -> None:
    one = passage(1, "KP-40.pdf", "Data sheet KP-40\nWeight: 46 kg\nShipping weight: 90 kg")
    other = passage(2, "KP-60.pdf", "Data sheet KP-60\nWeight: 71 kg\nShipping weight: 80 kg")
    for comparative, short in (("heavier", "KP-60 (Weight: 71 kg; KP-40: 46 kg)"), ("larger", "")):
        assert read(f"Which is {comparative}, the KP-40 or the KP-60?", one, other).short == short


def test_the_newer_document_comes_first_and_without_dates_the_higher_ranked() -> None:
    for passages in ((PRICES_2023, PRICES_2025), (PRICES_2025, PRICES_2023)):
        evidence = read("What is the hourly rate of a rigger?", *passages)
        assert [excerpt.passage for excerpt in evidence.excerpts] == [PRICES_2025]
        assert [excerpt.passage for excerpt in evidence.related] == [PRICES_2023]
    rule = "The crane lifts {} tonnes at most."
    old = passage(1, "a.md", f"# Crane rules\n\nValid from 1 May 2020.\n\n{rule.format(6)}")
    new = passage(2, "b.md", f"# Crane rules\n\nStand: 3. Juni 2023\n\n{rule.format(8)}")
    asked = "How many tonnes does the crane lift at most?"
    assert "8 tonnes" in read(asked, old, new).excerpts[0].quote(), "the date stands at the head"
    undated = passage(1, "a.md", rule.format(6)), passage(2, "b.md", rule.format(8))
    assert "6 tonnes" in read(asked, *undated).excerpts[0].quote()


def test_a_list_is_quoted_whole() -> None:
    for question in ("List everything that is checked before a launch.", "What has to be checked before a launch?"):
        for item in ("seacocks are closed", "the bilge pump runs", "the cradle is free", "the crane strap is not worn"):
            assert item in quoted(read(question))


WORDS = ["who", "when", "which", "Kestrel", "Hedda", "rent", "DV-210", "2024", "first", "or", "and", "crane", "?"]
questions = st.one_of(
    st.text(alphabet="Who is the Kestrel, and when was VX-210 14.3.2024 or-? é日\n", max_size=60),
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
)
