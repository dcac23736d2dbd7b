from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.questions import AnswerKind, answer_kind, holds_kind


def test_the_question_words_tell_the_kind_of_answer() -> None:
    for question, kind in [
        ("What is the e-mail address of Ines Caro?", AnswerKind.EMAIL),
        ("Wie lautet die Mailadresse der Werft?", AnswerKind.EMAIL),
        ("What is the phone number of the rigger?", AnswerKind.PHONE),
        ("How many berths does the yard have?", AnswerKind.COUNT),
        ("Wie viele Liegeplätze hat die Werft?", AnswerKind.COUNT),
        ("Combien de voiliers sont à quai ?", AnswerKind.COUNT),
        ("How heavy is the engine?", AnswerKind.WEIGHT),
        ("What does the DV-210 weigh?", AnswerKind.WEIGHT),
        ("How much does storage cost?", AnswerKind.MONEY),
        ("What is the monthly rent?", AnswerKind.MONEY),
        ("Was kostet der Kran der Werft?", AnswerKind.MONEY),
        ("Quel est le prix du mât ?", AnswerKind.MONEY),
        ("How long is the slipway?", AnswerKind.MEASURE),
        ("When was the lease signed?", AnswerKind.DATE),
        ("In which year was the yard founded?", AnswerKind.DATE),
        ("Wann wurde der Kran gekauft?", AnswerKind.DATE),
        ("Quand le voilier a-t-il été livré ?", AnswerKind.DATE),
        ("What time does the yard open?", AnswerKind.TIME),
        ("Who runs the paint shop?", AnswerKind.PERSON),
        ("Wer leitet die Lackiererei?", AnswerKind.PERSON),
        ("Where is the crane?", AnswerKind.ANY),
        ("Is the price fixed?", AnswerKind.ANY),
        ("Was the lease signed in May by the yard?", AnswerKind.ANY),
        ("", AnswerKind.ANY),
    ]:
        assert answer_kind(question) is kind


def test_a_text_holds_the_kind() -> None:
    for text, kind in [
        ("Write to ines@kestrel.example.", AnswerKind.EMAIL),
        ("Call +49 431 555 217.", AnswerKind.PHONE),
        ("It has 40 berths.", AnswerKind.COUNT),
        ("It has forty berths.", AnswerKind.COUNT),
        ("The engine weighs 184 kg.", AnswerKind.WEIGHT),
        ("The rent is EUR 2,150.", AnswerKind.MONEY),
        ("weight: 12 kg; price_usd: 12", AnswerKind.MONEY),
        ("The slipway is 38 m long.", AnswerKind.MEASURE),
        ("It was signed on 14 March 2024.", AnswerKind.DATE),
        ("The yard opens at 7:30.", AnswerKind.TIME),
        ("The shop is run by Hedda Lunt.", AnswerKind.PERSON),
        ("", AnswerKind.ANY),
    ]:
        assert holds_kind(text, kind, frozenset())


def test_a_text_without_it_does_not_nor_one_that_holds_only_what_the_question_does() -> None:
    for text, kind, asked in [
        ("Write to Ines Caro.", AnswerKind.EMAIL, set()),
        ("Call extension 217.", AnswerKind.PHONE, set()),
        ("It has many berths.", AnswerKind.COUNT, set()),
        ("It was signed on 14 March 2024.", AnswerKind.COUNT, set()),
        ("The rent is 2,150 a month.", AnswerKind.MONEY, set()),
        ("The engine has 29 hp.", AnswerKind.WEIGHT, set()),
        ("The rent was paid in time.", AnswerKind.DATE, set()),
        ("In 2024 the yard was sold.", AnswerKind.DATE, {"2024"}),
        ("The DV-210 is new.", AnswerKind.COUNT, {"dv-210", "210"}),
        ("It is run by Hedda Lunt.", AnswerKind.PERSON, {"hedda", "lunt"}),
    ]:
        assert not holds_kind(text, kind, asked)


@given(st.text(max_size=60), st.sampled_from(AnswerKind))
def test_any_text_is_looked_through(text: str, kind: AnswerKind) -> None:
    assert isinstance(answer_kind(text), AnswerKind)
    assert holds_kind(text, kind, frozenset()) in (True, False)
