from __future__ import annotations

import re

from agents.answers.citations import quotable, strip_citations
from agents.answers.claims import split_claims
from agents.answers.quotes import parts_of_quotes, unmarked
from agents.offline.alignment import Excerpt, passage_sentences
from agents.offline.evidence import Evidence, find_evidence
from agents.offline.quoting import quote_evidence
from agents.roles import REFUSAL
from tests.agents.offline.office import BOATS, HULLS, LEASE, PHONES, TEAM, passage, read

RENT = "What is the monthly rent of the slipway?"


def test_each_sentence_is_followed_by_its_citation() -> None:
    answer = quote_evidence([read(RENT, LEASE)])
    assert answer.text == (
        "slipway-lease.md: **The monthly rent of the slipway is EUR 2,150.** [1] It is due on the third working day. "
        "[1] A deposit of EUR 6,450 was paid. [1]"
    )
    assert all(claim.cited == (1,) for claim in split_claims(answer.text))


def test_a_citation_spans_what_is_quoted() -> None:
    (citation,) = quote_evidence([read(RENT, LEASE)]).citations
    assert citation.passage_id == LEASE.id
    assert LEASE.text[citation.start : citation.end] == (
        "The monthly rent of the slipway is EUR 2,150. It is due on the third working day. "
        "A deposit of EUR 6,450 was paid."
    )


def test_it_is_called_evidence() -> None:
    answer = quote_evidence([read(RENT, LEASE)])
    assert answer.is_evidence
    assert not answer.refused


def test_excerpts_are_paragraphs() -> None:
    answer = quote_evidence([read("What is the phone number of the person who runs the paint shop?", TEAM, PHONES)])
    assert [re.findall(r"\[\d\]", paragraph)[0] for paragraph in answer.text.split("\n\n")] == ["[3]", "[2]"]
    assert answer.plain_text == unmarked(strip_citations(answer.text))


def test_excerpts_of_one_passage_stand_as_they_are_asked_for_and_its_citation_spans_the_first() -> None:
    asked = "How much notice does the lease need?", RENT
    answer = quote_evidence([read(each, LEASE) for each in asked])
    assert answer.plain_text.index("six months") < answer.plain_text.index("monthly rent")
    (citation,) = answer.citations
    assert "six months" in LEASE.text[citation.start : citation.end]


def test_the_parts_of_a_question_follow_each_other_and_what_is_quoted_for_both_is_quoted_once() -> None:
    rent, notice, again = (read(asked, LEASE) for asked in (RENT, "How much notice does the lease need?", RENT))
    answer = quote_evidence([rent, notice, again])
    assert answer.plain_text.count("monthly rent") == answer.plain_text.count("six months") == 1


def test_excerpts_of_two_parts_that_share_a_sentence_are_one() -> None:
    rent, due, deposit = passage_sentences([LEASE])[2:5]
    answer = quote_evidence([Evidence("", (Excerpt((due, deposit)),)), Evidence("", (Excerpt((rent, due)),))])
    assert answer.plain_text == f"slipway-lease.md: {rent.text} {due.text} {deposit.text}"
    assert [(each.start, each.end) for each in answer.citations] == [(rent.start, deposit.end)]


def test_a_computed_answer_stands_first_and_cites_what_it_was_computed_from_alone() -> None:
    answer = quote_evidence([read("Which costs less, oak or larch?", HULLS, LEASE, BOATS)])
    assert answer.text.startswith("larch (EUR 19; oak: EUR 31) [12]\n\n")


def test_a_computed_answer_from_one_excerpt_cites_it_once() -> None:
    both = passage(1, "a.md", "The Kestrel was launched in 2021. The Alcyon was launched in 2019.")
    answer = quote_evidence([read("Which was launched first, the Alcyon or the Kestrel?", both, LEASE)])
    assert answer.text.startswith("Alcyon (2019; Kestrel: 2021) [1]\n\na.md: The Kestrel")


def test_what_is_also_related_is_a_list_of_three_at_most_and_repeats_nothing() -> None:
    excerpts = [Excerpt((each,), each) for each in passage_sentences([LEASE, TEAM])]
    answer = quote_evidence([Evidence("", tuple(excerpts[:1]), tuple(excerpts))])
    first, related = parts_of_quotes(answer.text)
    assert first == excerpts[0].quote(" [1]")
    assert related == "\n".join(f"- {each.quote(f' [{each.passage.number}]')}" for each in excerpts[1:4])
    assert parts_of_quotes(first) == (first, "")


def test_a_row_is_shown_by_its_name_with_the_asked_column_marked() -> None:
    answer = quote_evidence([read("What is the extension of Marek Sobol?", PHONES)])
    assert answer.text == "phones.csv: Marek Sobol: **extension: 230**; phone: +49 431 555 230 [3]"


def test_lines_without_a_stop_are_cited_together() -> None:
    sheet = passage(4, "kp40.pdf", "Data sheet\n\nWeight: 46 kg\nHead: 32 m\nNoise: 68 dB")
    answer = quote_evidence([read("What is the weight?", sheet)])
    assert answer.text == "kp40.pdf: Data sheet: **Weight: 46 kg**; Head: 32 m; Noise: 68 dB [4]"


def test_without_evidence_it_is_a_refusal_that_tells_why() -> None:
    answer = quote_evidence([read("When does the Siemens contract end?")])
    assert (answer.text, answer.plain_text, answer.citations) == (REFUSAL, REFUSAL, ())
    assert answer.refused
    assert not answer.is_evidence
    assert answer.notes == (
        "No evidence for 'When does the Siemens contract end?': the passages found do not hold siemens",
    )


def test_a_part_without_evidence_is_told_beside_the_evidence_for_the_other() -> None:
    answer = quote_evidence([read(RENT), read("When does the Siemens contract end?")])
    assert not answer.refused
    assert len(answer.notes) == 1
    assert "Siemens" in answer.notes[0]


def test_a_name_that_was_read_as_another_is_told() -> None:
    answer = quote_evidence([read("What does Hedda Lundt run?", TEAM)])
    assert "**Hedda Lunt runs the paint shop.** [2]" in answer.text
    assert answer.notes == ("'lundt' stands in no passage found: it is read as 'lunt'",)


def test_nothing_asked_is_a_refusal() -> None:
    assert quote_evidence([]).refused
    assert quote_evidence([Evidence("Who?", refusal="nothing is asked")]).refused


def test_citations_and_signs_of_a_passage_are_not_taken_over() -> None:
    marked = passage(2, "a.md", "The **slipway** was let [1] by `Orrin` [9].")
    answer = quote_evidence([find_evidence("Who let the slipway?", [marked], None)])
    assert answer.text == "a.md: The slipway was let by Orrin. [2]"
    assert quotable(marked.text) in answer.text
