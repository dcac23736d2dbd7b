from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.questions import AnswerKind, Role, parse_question
from agents.offline.words import Day


def roles(question: str) -> dict[str, Role]:
    return {term.text: term.role for term in parse_question(question).terms}


def test_names_numbers_and_dates_are_told_from_plain_words() -> None:
    assert roles("Did the yard pay 1,200 to Hedda Lunt for the VX-210 on 14 March 2024?") == {
        "14 march 2024": Role.DATE,
        "yard": Role.WORD,
        "pay": Role.WORD,
        "1,200": Role.NUMBER,
        "hedda": Role.NAME,
        "lunt": Role.NAME,
        "vx-210": Role.NUMBER,
    }


def test_a_code_names_something_and_a_mere_number_does_not() -> None:
    names = {term.text for term in parse_question("Which of the 12 pumps is the VX-210 of Kiel?").terms if term.is_name}
    assert names == {"vx-210", "kiel"}


def test_the_first_word_and_adjectives_of_places_are_no_names() -> None:
    assert roles("Storage of Danish boats?") == {"storage": Role.WORD, "danish": Role.WORD, "boats": Role.WORD}


def test_a_german_noun_behind_its_article_is_no_name() -> None:
    assert roles("Wann hat die Werft Lindholm den Kran gekauft?") == {
        "werft": Role.WORD,
        "lindholm": Role.NAME,
        "kran": Role.WORD,
        "gekauft": Role.WORD,
    }


def test_a_date_is_one_term_whatever_its_notation() -> None:
    for written in ("14 March 2024", "2024-03-14", "14.3.2024"):
        (term,) = (term for term in parse_question(f"What was signed on {written}?").terms if term.role is Role.DATE)
        assert term.day == Day(2024, 3, 14)


def test_a_year_alone_is_a_number() -> None:
    assert roles("What was built in 1863?")["1863"] is Role.NUMBER


def test_what_is_asked_for_is_known() -> None:
    for question, asked in [
        ("In which room is the pump stored?", {"room"}),
        ("What is the hourly rate of a rigger?", {"hourly", "rate"}),
        ("Name the owner of the slipway.", {"owner"}),
        ("Is the pump stored?", set()),
    ]:
        assert {term.text for term in parse_question(question).terms if term.is_asked} == asked


def test_words_of_one_stem_are_one_term() -> None:
    assert len(parse_question("Which boat of all boats?").terms) == 1


def test_a_question_may_hold_nothing() -> None:
    for question in ["", "Who?", "?!", " \n"]:
        assert parse_question(question).terms == ()


class TestChoices:
    def test_the_two_things_are_called_as_the_question_spells_them(self) -> None:
        for question, names in [
            ("Which is older, the Kestrel or the Alcyon?", ["Kestrel", "Alcyon"]),
            ("Which of the two, Hedda Lunt or Marek Sobol, came first?", ["Hedda Lunt", "Marek Sobol"]),
            ("Does the Kestrel or the Alcyon weigh more?", ["Kestrel", "Alcyon"]),
            ("Is the engine or the mast heavier?", ["engine", "mast heavier"]),
            ("What costs more, the DV-210 or the DV-340?", ["DV-210", "DV-340"]),
            ("Was ist älter, die Kestrel oder die Alcyon?", ["Kestrel", "Alcyon"]),
            ("Which is heavier, Crane 7 or Crane 9?", ["Crane 7", "Crane 9"]),
            ("Which is cheaper, the old pump or the new pump?", ["old pump", "new pump"]),
            ("Which was built first, the shed in yard 1 or the shed in yard 2?", ["shed in yard 1", "shed in yard 2"]),
        ]:
            parsed = parse_question(question)
            assert [choice.name for choice in parsed.choices] == names

    def test_the_name_of_one_of_them_is_an_answer_of_any_kind(self) -> None:
        assert parse_question("Who was born first, Hedda Lunt or Marek Sobol?").kind is AnswerKind.ANY
        assert parse_question("Who was born first?").kind is AnswerKind.PERSON

    def test_other_questions_have_none(self) -> None:
        for question in ["Who built the Kestrel?", "Who built the Kestrel and the Alcyon?", "Is it or?"]:
            assert parse_question(question).choices == ()


def test_the_company_that_nothing_narrows_is_no_term_beside_others() -> None:
    for question, terms in [
        ("How many employees does the company have?", ["employees"]),
        ("Who is the chairman of our firm?", ["chairman"]),
        ("Wie viele Mitarbeiter hat das Unternehmen?", ["mitarbeiter"]),
        ("Combien de salariés compte l'entreprise ?", ["salariés", "compte"]),
        ("Where is the company?", ["company"]),
        ("Who leads the company that built the crane?", ["leads", "company", "built", "crane"]),
        ("How many employees does each company have?", ["employees", "company"]),
    ]:
        assert [term.text for term in parse_question(question).terms] == terms


def test_a_plural_asks_for_a_list_and_a_verb_does_not() -> None:
    for question, asks_list in [
        ("Which boats does Hedda Lunt paint?", True),
        ("What boats are there?", True),
        ("List the boats.", True),
        ("Who are the riggers?", True),
        ("Which was built first?", False),
        ("Which is larger?", False),
        ("Which has more berths?", False),
        ("What does the crane lift?", False),
        ("What is stored there?", False),
        ("Which boat is it?", False),
    ]:
        assert parse_question(question).asks_list is asks_list


@given(st.text(alphabet="Who is the Kestrel, and when was 14.3.2024 or-? é日\n", max_size=80))
def test_any_text_is_taken_apart(text: str) -> None:
    parsed = parse_question(text)
    assert len({term.stem for term in parsed.terms}) == len(parsed.terms)
    assert all(0 <= place < len(parsed.terms) for choice in parsed.choices for place in choice.terms)
    assert all(choice.name in text for choice in parsed.choices)
