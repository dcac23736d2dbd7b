from __future__ import annotations

from agents.answers.claims import split_claims
from agents.answers.quotes import parts_of_quotes
from agents.offline.alignment import Excerpt, passage_sentences
from agents.offline.evidence import Evidence
from agents.offline.quoting import quote_evidence
from agents.roles import REFUSAL
from tests.agents.offline.office import BOATS, ENGINES, LEASE, PHONES, TEAM, passage, read

RENT = "What is the monthly rent of the slipway?"


def test_each_sentence_is_followed_by_its_citation_which_spans_what_is_quoted() -> None:
    answer = quote_evidence([read(RENT, LEASE)])
    assert answer.text == (
        "slipway-lease.md: **The monthly rent of the slipway is EUR 2,150.** [1] It is due on the third working day. "
        "[1] A deposit of EUR 6,450 was paid. [1]"
    )
    assert all(claim.cited == (1,) for claim in split_claims(answer.text))
    (citation,) = answer.citations
    assert citation.passage_id == LEASE.id
    assert LEASE.text[citation.start : citation.end] == (
        "The monthly rent of the slipway is EUR 2,150. It is due on the third working day. "
        "A deposit of EUR 6,450 was paid."
    )
    assert answer.is_evidence
    assert not answer.refused


def test_the_parts_of_a_question_follow_each_other_and_what_is_quoted_for_both_is_quoted_once() -> None:
    rent, notice, again = (read(asked, LEASE) for asked in (RENT, "How much notice does the lease need?", RENT))
    answer = quote_evidence([notice, rent, again])
    assert answer.plain_text.count("monthly rent") == answer.plain_text.count("six months") == 1
    assert answer.plain_text.index("six months") < answer.plain_text.index("monthly rent")
    (citation,) = answer.citations
    assert "six months" in LEASE.text[citation.start : citation.end], "it spans the first"


def test_a_computed_answer_stands_first_and_cites_once_what_it_was_computed_from_alone() -> None:
    answer = quote_evidence([read("Which is heavier, the DV-210 or the DV-340?", ENGINES, LEASE, BOATS)])
    assert answer.text.startswith(f"DV-340 (weight: 251 kg; DV-210: 184 kg) [{ENGINES.number}]\n\n")


def test_what_is_also_related_is_a_list_of_three_at_most_and_repeats_nothing() -> None:
    excerpts = [Excerpt((each,), each) for each in passage_sentences([LEASE, TEAM])]
    answer = quote_evidence([Evidence("", tuple(excerpts[:1]), tuple(excerpts))])
    first, related = parts_of_quotes(answer.text)
    assert first == excerpts[0].quote(" [1]")
    assert related == "\n".join(f"- {each.quote(f' [{each.passage.number}]')}" for each in excerpts[1:4])


def test_rows_lines_and_marked_words_are_shown_as_their_form_asks() -> None:
    sheet = passage(4, "kp40.pdf", "Data sheet\n\nWeight: 46 kg\nHead: 32 m\nNoise: 68 dB")
    marked = passage(2, "a.md", "The **slipway** was let [1] by `Orrin` [9].")
    for question, one, text in (
        (
            "What is the extension of Marek Sobol?",
            PHONES,
            "phones.csv: Marek Sobol: **extension: 230**; phone: +49 431 555 230 [3]",
        ),
        ("What is the weight?", sheet, "kp40.pdf: Data sheet: **Weight: 46 kg**; Head: 32 m; Noise: 68 dB [4]"),
        ("Who let the slipway?", marked, "a.md: The slipway was let by Orrin. [2]"),
    ):
        assert quote_evidence([read(question, one)]).text == text


def test_without_evidence_it_is_a_refusal_that_tells_why_also_of_a_part() -> None:
    siemens = "When does the Siemens contract end?"
    note = f"No evidence for '{siemens}': the passages found do not hold siemens"
    answer = quote_evidence([read(siemens)])
    assert (answer.text, answer.plain_text, answer.citations, answer.notes) == (REFUSAL, REFUSAL, (), (note,))
    assert answer.refused
    assert not answer.is_evidence
    part = quote_evidence([read(RENT), read(siemens)])
    assert (part.refused, part.notes) == (False, (note,))


def test_a_name_that_was_read_as_another_is_told() -> None:
    answer = quote_evidence([read("What does Hedda Lundt run?", TEAM)])
    assert "**Hedda Lunt runs the paint shop.** [2]" in answer.text
    assert answer.notes == ("'lundt' stands in no passage found: it is read as 'lunt'",)
