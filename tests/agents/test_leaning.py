from __future__ import annotations

from agents.leaning import asks_nothing, chosen_reading, leaning_of, question_back, readings_in

STAND_ALONE = (
    "What was it that the council decided in March?",
    "When was the port of Velmora built?",
    "What is an escrow account? It sounds like a savings account.",
    "And who was Hypatia?",
    "Velmora Ferry Company",
    "Which tax forms does a sole proprietor with two employees in Denmark file every year?",
    "Können Sie den Hafen von Velmora beschreiben?",
)
LEAN = (
    ("And who built it?", "And"),
    ("How long is it?", "it"),
    ("Does this apply to tenants?", "this"),
    ("Can you give an example?", "an example"),
    ("Is insurance more expensive?", "more"),
    ("what about Karv?", "what about"),
    ("Are you sure?", "Are you sure"),
    ("Und wer hat es gebaut?", "Und"),
)
FRAGMENTS = (
    *("Karv?", "in 1952?", "If I rent?", "prices", "港"),
    *("of Ida Brandt?", "In the old port?", "since the port of 1911?", "Anna Maria Brandt?", "The Port of Velmora?"),
)
ASKED_ON = ("why?", "And when?", "in what year?", "since when", "Warum nicht?", "pourquoi ?", "How much?")


def test_a_question_leans_by_a_word_or_as_a_fragment_and_stands_alone_where_it_names_what_it_is_about() -> None:
    for question in STAND_ALONE:
        assert leaning_of(question) == "", question
    for question, word in LEAN:
        assert f"“{word}”" in leaning_of(question), question
    for question in FRAGMENTS:
        assert leaning_of(question) == "it is a fragment", question
    for question in ASKED_ON:
        assert leaning_of(question) == "it asks on", question


def test_a_definite_noun_leans_where_it_was_spoken_of_or_is_all_that_a_question_names() -> None:
    question = "How long does the migration take?"
    assert leaning_of(question) == ""
    assert leaning_of(question, "You have to do a migration to version 2.") == "“the migration” was spoken of before"
    assert leaning_of("Who was the founder?") == "“the founder” names something said before"
    assert leaning_of("Who discovered the electron near the coast of Denmark?") == ""
    assert leaning_of("Who paid for the port of Velmora?", "The port was built in 1911.") == "", "a name beside it"


ORLO, EMIL = "When was Orlo Sund born?", "When was Emil Tarn born?"


def test_a_reading_is_chosen_by_number_by_place_or_by_its_own_words() -> None:
    back = question_back([ORLO, EMIL])
    assert back == "Which do you mean: “When was Orlo Sund born?” or “When was Emil Tarn born?”"
    for reply, chosen in (
        ("1", ORLO),
        ("the second one", EMIL),
        ("The former", ORLO),
        ("Emil Tarn", EMIL),
        (ORLO, ORLO),
    ):
        assert chosen_reading(reply, readings_in(back)) == chosen, reply
    for reply in ("3", "0", "-5", "the third", "born", "Ida Brandt", "", "When was the port built?"):
        assert chosen_reading(reply, readings_in(back)) is None, reply
    assert chosen_reading("1", readings_in("He said “yes” or “no”. [1]")) is None, "nothing was asked back"


def test_greetings_thanks_and_signs_alone_ask_nothing_and_all_else_something() -> None:
    for text in ("thanks!", "Hello", "ok", "?", "...", "👍", "Thank you very much", "Danke schön"):
        assert asks_nothing(text), text
    for text in ("why?", "no", "thanks, and when was Karv built?", "港", "Okra"):
        assert not asks_nothing(text), text
