from __future__ import annotations

from agents.offline.questions import AnswerKind, Role, answer_kind, holds_kind, parse_question, split_question
from agents.offline.words import Day


def roles(question: str) -> dict[str, Role]:
    return {term.text: term.role for term in parse_question(question).terms}


def test_names_numbers_and_dates_are_told_from_plain_words() -> None:
    word = Role.WORD
    assert roles("Did the yard pay 1,200 to Hedda Lunt for the VX-210 on 14 March 2024?") == {
        "14 march 2024": Role.DATE,
        "yard": word,
        "pay": word,
        "1,200": Role.NUMBER,
        "hedda": Role.NAME,
        "lunt": Role.NAME,
        "vx-210": Role.NUMBER,
    }
    german = {"werft": word, "lindholm": Role.NAME, "kran": word, "gekauft": word}
    assert roles("Wann hat die Werft Lindholm den Kran gekauft?") == german
    assert roles("What was built in 1863?")["1863"] is Role.NUMBER
    pumps = parse_question("Which of the 12 pumps is the VX-210 of Kiel?").terms
    assert {term.text for term in pumps if term.is_name} == {"vx-210", "kiel"}, "a mere number names nothing"


def test_a_date_is_one_term_whatever_its_notation_and_so_are_words_of_one_stem() -> None:
    for written in ("14 March 2024", "2024-03-14", "14.3.2024"):
        (term,) = (term for term in parse_question(f"What was signed on {written}?").terms if term.role is Role.DATE)
        assert term.day == Day(2024, 3, 14)
    assert len(parse_question("Which boat of all boats?").terms) == 1
    for question in ("", "Who?", "?!", "x?"):
        assert parse_question(question).terms == ()


def test_what_is_asked_for_is_known() -> None:
    asked: list[tuple[str, set[str]]] = [
        ("In which room is the pump stored?", {"room"}),
        ("What is the hourly rate of a rigger?", {"hourly", "rate"}),
        ("Is the pump stored?", set()),
    ]
    for question, words in asked:
        assert {term.text for term in parse_question(question).terms if term.is_asked} == words


def test_the_company_that_nothing_narrows_is_no_term_beside_others() -> None:
    for question, terms in (
        ("How many employees does the company have?", ["employees"]),
        ("Where is the company?", ["company"]),
        ("Who leads the company that built the crane?", ["leads", "company", "built", "crane"]),
        ("How many employees does each company have?", ["employees", "company"]),
    ):
        assert [term.text for term in parse_question(question).terms] == terms


def test_two_things_to_choose_from_are_called_as_the_question_spells_them() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("Which is older, the Kestrel or the Alcyon?", ["Kestrel", "Alcyon"]),
        ("Is the engine or the mast heavier?", ["engine", "mast heavier"]),
        ("Which is heavier, Crane 7 or Crane 9?", ["Crane 7", "Crane 9"]),
        ("Which was built first, the shed in yard 1 or the shed in yard 2?", ["shed in yard 1", "shed in yard 2"]),
    ]
    for question, names in cases:
        assert [choice.name for choice in parse_question(question).choices] == names
    assert parse_question("Who was born first, Hedda Lunt or Marek Sobol?").kind is AnswerKind.ANY
    assert parse_question("Who was born first?").kind is AnswerKind.PERSON


def test_the_question_words_tell_the_kind_of_answer() -> None:
    for question, kind in (
        ("What is the phone number of the rigger?", AnswerKind.PHONE),
        ("Wie viele Liegeplätze hat die Werft?", AnswerKind.COUNT),
        ("How heavy is the engine?", AnswerKind.WEIGHT),
        ("Quand le voilier a-t-il été livré ?", AnswerKind.DATE),
        ("What time does the yard open?", AnswerKind.TIME),
        ("Who runs the paint shop?", AnswerKind.PERSON),
        ("Where is the crane?", AnswerKind.ANY),
    ):
        assert answer_kind(question) is kind, question


def test_a_text_holds_the_kind_unless_it_holds_only_what_the_question_does() -> None:
    for text, kind in (
        ("Call +49 431 555 217.", AnswerKind.PHONE),
        ("It has forty berths.", AnswerKind.COUNT),
        ("weight: 12 kg; price_usd: 12", AnswerKind.MONEY),
        ("It was signed on 14 March 2024.", AnswerKind.DATE),
        ("The yard opens at 7:30.", AnswerKind.TIME),
    ):
        assert holds_kind(text, kind, frozenset()), text
    lacking: list[tuple[str, AnswerKind, set[str]]] = [
        ("Call extension 217.", AnswerKind.PHONE, set()),
        ("It was signed on 14 March 2024.", AnswerKind.COUNT, set()),
        ("The rent is 2,150 a month.", AnswerKind.MONEY, set()),
        ("In 2024 the yard was sold.", AnswerKind.DATE, {"2024"}),
        ("The DV-210 is new.", AnswerKind.COUNT, {"dv-210", "210"}),
        ("It is run by Hedda Lunt.", AnswerKind.PERSON, {"hedda", "lunt"}),
    ]
    for text, kind, asked in lacking:
        assert not holds_kind(text, kind, asked), text


def test_each_part_is_a_question_of_its_own() -> None:
    for first, link, second in (
        ("Who runs the paint shop", ", and ", "when was the lease of Kestrel signed?"),
        ("Who runs the paint shop", "? ", "When was the lease of Kestrel signed?"),
        ("Wer leitet die Lackiererei", ", und ", "wann wurde VX-210 gekauft?"),
    ):
        assert split_question(first + link + second) == [f"{first}?", second[0].upper() + second[1:]]


def test_a_question_stays_whole_where_a_part_would_be_no_question_of_its_own() -> None:
    for question in (
        "Where is the crane, and why?",
        "Who founded Kestrel, and when did it close?",
        "Who built the Kestrel, and in how many months?",
        "Which hotel has Wi-Fi and a pool, and what does it cost?",
        "What caused the leak, and who repaired it?",
        "Which is longer, the Kestrel or the Alcyon, and when were both built?",
        "",
    ):
        assert split_question(question) == [question]
