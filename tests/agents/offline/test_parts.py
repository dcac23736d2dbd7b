from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.questions import split_question


def test_each_part_is_a_question_of_its_own() -> None:
    for question, parts in [
        (
            "Who runs the paint shop, and when was the lease signed?",
            ["Who runs the paint shop?", "When was the lease signed?"],
        ),
        (
            "Who runs the paint shop? When was the lease signed?",
            ["Who runs the paint shop?", "When was the lease signed?"],
        ),
        (
            "Wer leitet die Lackiererei, und wann wurde der Kran gekauft?",
            ["Wer leitet die Lackiererei?", "Wann wurde der Kran gekauft?"],
        ),
        (
            "When was the Kestrel built, and when was the Alcyon built?",
            ["When was the Kestrel built?", "When was the Alcyon built?"],
        ),
    ]:
        assert split_question(question) == parts


def test_a_pronoun_of_a_later_part_becomes_the_name_of_the_first() -> None:
    for question, later in [
        ("Who founded Kestrel, and when did it close?", "When did Kestrel close?"),
        ("What does DV-210 mean and what does it cost?", "What does DV-210 cost?"),
        ("How do I fix DV-210, and what does it cost?", "What does DV-210 cost?"),
        ("How heavy is the Crane 7, and what does it cost?", "What does the Crane 7 cost?"),
        ("Who built the Moor Bridge, and how heavy is it?", "How heavy is the Moor Bridge?"),
        ("When was Tavin & Loom founded, and who owns it?", "Who owns Tavin & Loom?"),
        ("Where is Kestrel? And who is its owner?", "Who is Kestrel's owner?"),
        ("Where does Ines Caro work, and what is her phone number?", "What is Ines Caro's phone number?"),
        ("Who is Ines Caro, and when did the yard hire her?", "When did the yard hire Ines Caro?"),
    ]:
        assert split_question(question)[1] == later


def test_names_that_no_english_pronoun_means_stand_in_brackets() -> None:
    for question, later in [
        ("When was Kestrel founded, and who was the founder?", "Who was the founder? (Kestrel)"),
        ("Wer leitet die Werft Lindholm, und wann wurde sie gegründet?", "Wann wurde sie gegründet? (Lindholm)"),
        ("How far is it from Bergen to Kiel, and what does the trip cost?", "What does the trip cost? (Bergen, Kiel)"),
    ]:
        assert split_question(question)[1] == later


def test_it_stays_whole_where_a_part_would_be_no_question_of_its_own() -> None:
    for question in [
        "Is it red and blue?",
        "Where is the crane, and why?",
        "Which hotel has Wi-Fi, and in which city?",
        "In which city is the hotel with Wi-Fi and pool?",
        "Who built the Kestrel, and in how many months?",
        "Which hotel has Wi-Fi and a pool, and what does it cost?",
        "Who founded Kestrel, and when was he born?",
        "What caused the leak, and who repaired it?",
        "Which is longer, the Kestrel or the Alcyon, and when were both built?",
        "Who?",
        "",
    ]:
        assert split_question(question) == [question]


@given(st.text(alphabet="Who is the Kestrel, and when was it 14.3.2024 or-? é日\n", max_size=80))
def test_any_text_has_parts(text: str) -> None:
    assert split_question(text)
