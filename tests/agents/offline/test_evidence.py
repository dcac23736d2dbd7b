from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.answers.citations import quotable
from agents.offline import alignment
from agents.offline.evidence import (
    MOST_LISTED,
    best_sentence,
    find_each_evidence,
    find_evidence,
    holds_anything,
)
from agents.offline.questions import split_question
from agents.roles import NumberedPassage
from graph.embedding.embeddings import TextCache
from graph.errors import DependencyMissing
from tests.agents.offline.office import (
    BOATS,
    ENGINES,
    FAQ,
    HULLS,
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


def sources(question: str) -> list[str]:
    """The files that evidence from the whole yard is quoted from, in order."""
    return [excerpt.passage.source for excerpt in read(question).excerpts]


def unlike(texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts so that none is like the first one."""
    return np.array([[1, 0], *([[0.1, 1]] * (len(texts) - 1))], np.float32)


def like_a_rise(texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts so that those that tell of a rise are like each other, and the first one like no other."""
    question, *sentences = ([1, 0, 0] if "rise" in text else [0, 0.1, 1] for text in texts)
    return np.array([question if question[0] else [0, 1, 0], *sentences], np.float32)


def test_the_sentence_that_bears_on_a_question_comes_first() -> None:
    for question, source, words in [
        ("Who runs the paint shop?", "team.md", "Hedda Lunt runs the paint shop."),
        ("What is the monthly rent of the slipway?", "slipway-lease.md", "EUR 2,150"),
        ("When was the lease of the slipway signed?", "slipway-lease.md", "14 March 2024"),
        ("How much notice does the lease need?", "slipway-lease.md", "six months' notice"),
        ("What is the price of the DV-340?", "engines.md", "EUR 11,450"),
        ("How much does the DV-340 weigh?", "engines.md", "251 kg"),
        ("What was signed on 2024-03-14?", "slipway-lease.md", "14 March 2024"),
        ("What was signed on 14.3.2024?", "slipway-lease.md", "14 March 2024"),
        ("Wer leitet die Lackiererei?", "protokoll.md", "Frau Petersen leitet die Lackiererei."),
        ("Wann hat die Werft Lindholm den Kran gekauft?", "protokoll.md", "3. Februar 2023"),
        ("Was kostet der Kran?", "protokoll.md", "41.800 Euro"),
        ("Quand le voilier Alcyon a-t-il été livré ?", "compte-rendu.md", "9 août 2022"),
        ("Quel est le prix du mât ?", "compte-rendu.md", "3 200 euros"),
    ]:
        found = read(question)
        assert found.refusal == ""
        assert found.excerpts[0].passage.source == source
        assert words in found.excerpts[0].quote()


class TestRefusal:
    def test_a_name_or_code_that_stands_in_nothing_cited_is_refused(self) -> None:
        for question, absent in [
            ("When does the Siemens contract end?", "siemens"),
            ("Who wrote Hamlet?", "hamlet"),
            ("What does the DV-500 weigh?", "dv-500"),
            ("Who runs the paint shop of Nissan?", "nissan"),
            ("Who wrote Hamlet in Kyoto?", "hamlet, kyoto"),
            ("Wann hat die Werft Brandt den Kran gekauft?", "brandt"),
            ("Which was launched first, the Kestrel or the Merlin?", "merlin"),
        ]:
            found = read(question)
            assert found.excerpts == ()
            assert found.refusal == f"the passages found do not hold {absent}"

    def test_nothing_of_the_asked_kind_is_refused(self) -> None:
        for question, passages, kind in [
            ("What is the e-mail address of Ines Caro?", YARD, "e-mail address"),
            ("What is the phone number of Hedda Lunt?", (TEAM,), "phone number"),
            ("When was the crane cabinet bought?", (FAQ,), "date"),
            ("What does the training on the crane cost?", (FAQ,), "amount of money"),
            ("How heavy is the crane strap?", (TOOLS,), "weight"),
            ("How many people run the paint shop?", (TEAM,), "number"),
        ]:
            assert read(question, *passages).refusal == f"the passages found hold no {kind} that would answer it"

    def test_one_of_two_compared_things_is_not_enough(self) -> None:
        found = read("Which is lighter, the mast or the keel?", BOATS)
        assert found.refusal == "the passages found do not hold both of the things compared"

    def test_too_little_of_a_question_is_refused(self) -> None:
        found = read("Why did the harbour master resign after the storm?", TEAM, ENGINES)
        assert found.refusal == "the passages found hold too little of the question"

    def test_what_is_unlike_the_question_is_refused_where_meanings_are_compared(self) -> None:
        assert find_evidence("Who runs the paint shop?", [TEAM], unlike).excerpts
        assert find_evidence("Who runs the paint shop?", [TEAM], unlike, 0.3).refusal

    def test_a_row_that_holds_a_part_of_the_question_is_unlike_it_too(self) -> None:
        for question in [
            "Which phones does Marek Sobol repair?",
            "Which extensions did Marek Sobol sell?",
            "What is an extension?",
            "What is a name?",
        ]:
            assert find_evidence(question, [PHONES], unlike, 0.3).refusal

    def test_nothing_asked_finds_nothing(self) -> None:
        for question in ["", "Who?", "?"]:
            assert read(question).refusal == "nothing is asked"

    def test_without_passages_there_is_nothing(self) -> None:
        assert find_evidence("Who runs the paint shop?", [], None).refusal == "no passage was found"
        assert find_evidence("Who?", [passage(1, "a.md", "# Heading only")], None).refusal


class TestQuestionsInDocuments:
    def test_they_are_no_evidence_but_their_answers_are(self) -> None:
        for question, answer in [
            ("Where do I get a respirator?", "in the red cabinet"),
            ("Who pays for the training on the crane?", "The yard pays for it"),
        ]:
            found = read(question)
            assert answer in found.excerpts[0].sentences[0].text
            assert not any(sentence.text.endswith("?") for each in found.excerpts for sentence in each.sentences)

    def test_a_question_without_an_answer_below_it_answers_nothing(self) -> None:
        open_question = passage(1, "minutes.md", "The meeting began at nine.\n\nWho pays for the training?")
        assert "Who pays" not in quoted(read("Who pays for the training?", open_question))


class TestTables:
    CUSTOMERS = tuple(
        passage(
            number, "customers.csv", f"customer: {name}; account_manager: {manager}; pumps_installed: {pumps}", name
        )
        for number, (name, manager, pumps) in enumerate(
            [
                ("Tyne", "Hedda Lunt", 14),
                ("Havn", "Marek Sobol", 6),
                ("Polar", "Hedda Lunt", 9),
                ("Moor", "Ines Caro", 3),
            ],
            1,
        )
    )

    def test_rows_that_hold_the_whole_question_are_quoted_and_no_others(self) -> None:
        for question, rows in [
            ("Which customers does Hedda Lunt manage?", {1, 3}),
            ("Which customers are managed by Hedda Lunt?", {1, 3}),
            ("What customers does Hedda Lunt manage?", {1, 3}),
            ("Who are the customers of Hedda Lunt?", {1, 3}),
            ("What does Hedda Lunt manage?", {1, 3}),
            ("Who manages Havn?", {2}),
            ("How many pumps does Havn have?", {2}),
            ("How many pumps are installed?", {1, 2, 3}),
            ("Which customers does the company have?", {1, 2, 3, 4}),
            ("List all customers.", {1, 2, 3, 4}),
        ]:
            found = find_evidence(question, self.CUSTOMERS, unlike, 0.3)
            assert {excerpt.passage.number for excerpt in found.excerpts} == rows

    def test_rows_of_two_names_are_compared_however_unlike_the_question(self) -> None:
        for question, short in [
            ("Which has more pumps, Havn or Moor?", "Havn (pumps_installed: 6; Moor: 3)"),
            ("Which has more pumps, Hedda Lunt or Ines Caro?", ""),
        ]:
            assert find_evidence(question, self.CUSTOMERS, unlike, 0.3).short == short

    def test_the_company_need_not_be_said(self) -> None:
        sites = passage(
            1, "sites.csv", "site: Leeds; employees: 41; opened: 1999\nsite: Kiel; employees: 12; opened: 2004"
        )
        assert "employees: 41" in quoted(read("How many employees does the company have?", sites))
        assert "143 people" in quoted(
            read("How many employees does the company have?", passage(1, "a.md", "Tyne employs 143 people."))
        )
        assert read("How many lorries does the company have?", sites).refusal


class TestParts:
    MINUTES = passage(1, "minutes.md", "All prices rise by 3 % on 1 May 2026. Masts are excepted.")

    def test_a_sentence_quoted_for_one_part_is_evidence_for_another_that_it_holds(self) -> None:
        question = "When do all prices rise by 3 %, and what is excepted?"
        rising, excepted = find_each_evidence(question, [self.MINUTES], like_a_rise, 0.3)
        assert find_evidence(excepted.question, [self.MINUTES], like_a_rise, 0.3).refusal
        assert (rising.refusal, excepted.refusal) == ("", "")
        assert [excerpt.quote() for excerpt in excepted.excerpts] == ["minutes.md: Masts are excepted."]

    def test_a_part_of_which_no_quoted_sentence_tells_is_refused(self) -> None:
        question = "When do all prices rise by 3 %, and what is postponed?"
        rising, postponed = find_each_evidence(question, [self.MINUTES], like_a_rise, 0.3)
        assert (rising.refusal, bool(postponed.refusal)) == ("", True)


class TestTwoSteps:
    def test_a_person_named_in_one_document_is_looked_up_in_another(self) -> None:
        found = read("What is the phone number of the person who runs the paint shop?")
        assert [excerpt.passage for excerpt in found.excerpts] == [PHONES, TEAM]
        assert "+49 431 555 217" in found.excerpts[0].quote()
        assert "230" not in quoted(found)

    def test_what_does_not_name_it_is_no_second_step(self) -> None:
        found = read("What is the extension of the rigger?")
        assert "Marek Sobol: extension: 230" in quoted(found)
        assert "Ines Caro; extension" not in quoted(found)


class TestComparison:
    def test_dates_and_numbers_are_compared(self) -> None:
        for question, short in [
            ("Which was launched first, the Kestrel or the Alcyon?", "Kestrel (3 May 2019; Alcyon: 2021-08-20)"),
            ("Which was launched later, the Kestrel or the Alcyon?", "Alcyon (2021-08-20; Kestrel: 3 May 2019)"),
            ("Which costs less, oak or larch?", "larch (EUR 19; oak: EUR 31)"),
            ("Which is heavier, oak or larch?", "oak (910 kg; larch: 740 kg)"),
        ]:
            assert read(question).short == short

    def test_what_wins_is_quoted_first(self) -> None:
        found = read("Which was launched later, the Kestrel or the Alcyon?")
        assert "2021-08-20" in found.excerpts[0].quote()
        assert "3 May 2019" in found.excerpts[1].quote()
        assert found.compared == found.excerpts[:2]

    def test_both_sides_may_stand_in_one_row(self) -> None:
        found = read("Which costs less, oak or larch?", HULLS, LEASE)
        assert [excerpt.passage for excerpt in found.compared] == [HULLS]
        assert found.excerpts[0] in found.compared

    def test_nothing_is_computed_where_a_side_has_two_candidates(self) -> None:
        two = passage(
            1, "a.md", "The Kestrel was launched in 2019 and sold in 2021.\n\nThe Alcyon was launched in 2020."
        )
        found = read("Which was launched first, the Kestrel or the Alcyon?", two)
        assert found.short == ""
        assert {"2019", "2020"} <= set(quoted(found).replace(".", "").split())

    def test_of_a_row_the_column_that_is_asked_for_is_compared(self) -> None:
        for question, short in [
            ("Which is heavier, the DV-210 or the DV-340?", "DV-340 (weight: 251 kg; DV-210: 184 kg)"),
            ("Which is cheaper, the DV-210 or the DV-340?", "DV-210 (price: EUR 7,900; DV-340: EUR 11,450)"),
            ("Which has more power, the DV-210 or the DV-340?", "DV-340 (power: 54 hp; DV-210: 29 hp)"),
            ("Which is larger, the DV-210 or the DV-340?", ""),
        ]:
            found = read(question)
            assert found.short == short
            assert "184 kg" in quoted(found)
            assert "251 kg" in quoted(found)

    def sheets(self, *lines: str) -> list[NumberedPassage]:
        return [
            passage(n, f"{name}.pdf", f"Data sheet {name}\n{line}")
            for n, (name, line) in enumerate(zip(("KP-40", "KP-60"), lines, strict=True), 1)
        ]

    def test_lines_of_a_data_sheet_of_each_are_compared(self) -> None:
        sheets = self.sheets("Weight: 46 kg\nShipping weight: 90 kg", "Weight: 71 kg\nShipping weight: 80 kg")
        assert read("Which is heavier, the KP-40 or the KP-60?", *sheets).short == "KP-60 (Weight: 71 kg; KP-40: 46 kg)"
        assert read("Which is larger, the KP-40 or the KP-60?", *sheets).short == ""

    def test_lines_of_a_sheet_of_both_are_not(self) -> None:
        sheets = self.sheets("Weight: 46 kg\nReplaces: KP-60", "Weight: 71 kg\nReplaces: none")
        assert read("Which is heavier, the KP-40 or the KP-60?", *sheets).short == ""


class TestSuperseded:
    def test_the_newer_document_comes_first_whatever_their_order(self) -> None:
        for passages in ((PRICES_2023, PRICES_2025), (PRICES_2025, PRICES_2023)):
            found = read("What is the hourly rate of a rigger?", *passages)
            assert [excerpt.passage for excerpt in found.excerpts] == [PRICES_2025]
            assert [excerpt.passage for excerpt in found.related] == [PRICES_2023]

    def test_a_document_may_tell_its_date_at_its_head(self) -> None:
        old = passage(1, "a.md", "# Crane rules\n\nValid from 1 May 2020.\n\nThe crane lifts 6 tonnes at most.")
        new = passage(2, "b.md", "# Crane rules\n\nStand: 3. Juni 2023\n\nThe crane lifts 8 tonnes at most.")
        found = read("How many tonnes does the crane lift at most?", old, new)
        assert "8 tonnes" in found.excerpts[0].quote()

    def test_without_dates_the_order_of_passages_decides(self) -> None:
        one = passage(1, "a.md", "The crane lifts 6 tonnes at most.")
        other = passage(2, "b.md", "The crane lifts 8 tonnes at most.")
        assert "6 tonnes" in read("How many tonnes does the crane lift?", one, other).excerpts[0].quote()

    def test_the_year_that_is_asked_for_goes_before_the_newer_one(self) -> None:
        assert sources("What was the hourly rate of a rigger in 2023?")[0] == "prices_2023-01.md"


class TestMisspelt:
    def test_a_misspelt_name_is_found_and_told(self) -> None:
        for question, misspelt in [
            ("What does Hedda Lundt run?", ("lundt", "lunt")),
            ("What is the phone number of Mareck Sobol?", ("mareck", "marek")),
            ("What is the phone number of Marek Sobohl?", ("sobohl", "sobol")),
        ]:
            found = read(question)
            assert found.misspelt == (misspelt,)
            assert misspelt[1].title() in found.excerpts[0].quote()

    def test_a_name_that_stands_is_never_read_as_another(self) -> None:
        assert read("What does Hedda Lunt run?").misspelt == ()


def test_a_list_is_quoted_whole() -> None:
    for question in ["List everything that is checked before a launch.", "What has to be checked before a launch?"]:
        for item in ("seacocks are closed", "the bilge pump runs", "the cradle is free", "the crane strap is not worn"):
            assert item in quoted(read(question))


def test_a_list_may_take_more_excerpts() -> None:
    staff = passage(
        1, "staff.md", "\n\n".join(f"{name} is a rigger." for name in ["Ada", "Bo", "Cyd", "Dee", "Eve", "Fay"])
    )
    assert len(read("List all riggers.", staff).excerpts) == MOST_LISTED
    assert len(read("Who is a rigger?", staff).excerpts) < MOST_LISTED


def test_each_part_of_a_question_has_its_own_evidence() -> None:
    parts = split_question("Who runs the paint shop, and when was the lease of the slipway signed?")
    assert [read(part).excerpts[0].passage for part in parts] == [TEAM, LEASE]


@pytest.mark.parametrize(
    "question", ["Who runs the paint shop?", "What was signed on 2024-03-14?", "Who wrote Hamlet?"]
)
def test_without_the_packaged_vectors_it_still_reads(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(texts: Sequence[str]) -> NDArray[np.float32]:
        raise DependencyMissing("the packaged model is not installed")

    before = read(question)
    monkeypatch.setattr(alignment, "_WORDS", TextCache(absent))
    after = read(question)
    assert [each.passage for each in after.excerpts[:1]] == [each.passage for each in before.excerpts[:1]]
    assert after.refusal == before.refusal


class TestOnePassage:
    def test_it_is_told_whether_it_holds_anything_of_a_question(self) -> None:
        for question, holds in [
            ("Who runs the paint shop?", True),
            ("Who paints boats in the workshop?", True),
            ("What does Hedda earn?", True),
            ("Which glacier feeds the Rhône?", False),
            ("Who?", False),
            ("", False),
        ]:
            assert holds_anything(question, TEAM) is holds

    def test_a_date_is_held_in_any_notation(self) -> None:
        assert holds_anything("What happened on 2024-03-14?", LEASE)
        assert not holds_anything("What happened on 2024-03-15?", LEASE)

    def test_its_best_sentence_holds_most_of_the_question(self) -> None:
        found = best_sentence("Who keeps the books?", TEAM)
        assert found is not None
        assert found.text == "Ines Caro keeps the books and answers for the insurance."
        assert best_sentence("Which glacier feeds the Rhône?", TEAM) is None
        assert best_sentence("", TEAM) is None


questions = st.one_of(
    st.text(alphabet="Who is the Kestrel, and when was VX-210 14.3.2024 or-? é日\n", max_size=60),
    st.lists(
        st.sampled_from(
            ["who", "when", "which", "Kestrel", "Hedda", "rent", "DV-210", "2024", "first", "or", "and", "crane", "?"]
        ),
        max_size=8,
    ).map(" ".join),
)
contents = st.lists(
    st.sampled_from(
        [
            "# Rent\n",
            "The Kestrel was launched in 2019. ",
            "Who?\n",
            "\n\n",
            "- **Hedda** [2]\n",
            "a: DV-210; b: 3 kg\n",
            "日é",
        ]
    ),
    max_size=8,
).map("".join)


@given(questions, st.lists(contents, max_size=4))
def test_whatever_it_is_asked_it_quotes_what_stands_there_or_says_why_not(question: str, texts: list[str]) -> None:
    passages = [passage(number, f"{number}.md", text) for number, text in enumerate(texts, 1)]
    found = find_evidence(question, passages, None)
    assert bool(found.refusal) == (not found.excerpts)
    assert set(found.compared) <= set(found.excerpts)
    for excerpt in found.excerpts:
        assert excerpt.passage in passages
        assert quotable(excerpt.passage.text[excerpt.start : excerpt.end]) in excerpt.quote() or all(
            quotable(sentence.text) in excerpt.quote() for sentence in excerpt.sentences
        )
        assert all(sentence.text in excerpt.passage.text for sentence in excerpt.sentences)
    again = find_evidence(question, passages, None)
    assert [each.quote() for each in again.excerpts] == [each.quote() for each in found.excerpts]
    assert (again.refusal, again.short, again.misspelt) == (found.refusal, found.short, found.misspelt)
