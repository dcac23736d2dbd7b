from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from agents.rewriter import OfflineRewriter, Rewriting
from agents.roles import Turn
from graph.retrieve.known_names import KnownNames
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder, passage_of, publish_workspace

PASSAGES = [
    passage_of("velmora", "Port of Velmora", "The Port of Velmora is a harbour. It was built by Ida Brandt."),
    passage_of("karv", "Karv", "Karv is a port. It stands in Ostra."),
    passage_of("ida", "Ida Brandt", "Ida Brandt was an engineer. She was born in Lisk."),
    passage_of("orlo", "Orlo Sund", "Orlo Sund was a mason. He was born in Kesh."),
    passage_of("emil", "Emil Tarn", "Emil Tarn was a painter. He died in Lisk."),
    passage_of("ostra", "Ostra", "Ostra is a country. Its capital is Marn."),
    passage_of("marn", "Marn", "Marn is a town. The Velm flows through it."),
]
BUILT = Turn("When was the Port of Velmora built?", "The Port of Velmora was built in 1911. [1]", ("velmora",))
BUILDER = Turn("Who built the Port of Velmora?", "Port of Velmora: It was built by Ida Brandt. [1]", ("velmora",))
CAPITAL = Turn("What is the capital of Ostra?", "Ostra: Its capital is Marn. [1]", ("ostra",))
TWO_MEN = Turn("Did Orlo Sund or Emil Tarn paint the town hall?", "Emil Tarn was a painter. [2]", ("emil",))


@pytest.fixture(scope="module")
def rewriter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineRewriter]:
    root = tmp_path_factory.mktemp("rewriter")
    publish_workspace(root, PASSAGES)
    index = open_index(root, HashEmbedder())
    yield OfflineRewriter(KnownNames(index.graph))
    index.close()


def read(rewriter: OfflineRewriter, question: str, *turns: Turn) -> str:
    return rewriter.rewrite(question, turns).question


def test_a_pronoun_becomes_the_name_that_it_most_likely_means(rewriter: OfflineRewriter) -> None:
    for turn, question, whole in [
        (BUILT, "And who built it?", "Who built Port of Velmora?"),
        (BUILT, "How large are its docks?", "How large are Port of Velmora's docks?"),
        (BUILDER, "Where was she born?", "Where was Ida Brandt born?"),
        (BUILDER, "What was her trade?", "What was Ida Brandt's trade?"),
        (CAPITAL, "Which river flows through it?", "Which river flows through Marn?"),
        (CAPITAL, "Who lives there?", "Who lives in Marn?"),
        (CAPITAL, "who came from there", "who came from Marn"),
    ]:
        assert read(rewriter, question, turn) == whole


def test_a_fragment_asks_the_last_question_again(rewriter: OfflineRewriter) -> None:
    for question, whole in [
        ("And Karv?", "When was the Karv built?"),
        ("what about the Karv?", "When was the Karv built?"),
        ("in 1952?", "When was the Port of Velmora built in 1952?"),
        ("why?", "Why was the Port of Velmora built?"),
        ("And where?", "Where was the Port of Velmora built?"),
        ("Are you sure? I thought it was 1945", "When was the Port of Velmora built?"),
        ("No, I meant Karv", "When was the Karv built?"),
        ("What about Port Sund?", "When was the Port Sund built?"),
        ("And of Karv?", "When was the Port of Karv built?"),
    ]:
        assert read(rewriter, question, BUILT) == whole


def test_a_phrase_takes_the_place_of_one_like_it(rewriter: OfflineRewriter) -> None:
    last = Turn("Who won the race in 1948?")
    assert read(rewriter, "and in 1952?", last) == "Who won the race in 1952?"
    assert read(rewriter, "1960?", last) == "Who won the race in 1960?"


def test_a_phrase_takes_its_name_with_it_whole(rewriter: OfflineRewriter) -> None:
    for asked, question, whole in [
        ("Who is the mayor of Karv?", "And of Port Sund?", "Who is the mayor of Port Sund?"),
        ("Who is the mayor of Port Sund?", "and of Karv?", "Who is the mayor of Karv?"),
        ("Who lives in Port Sund?", "and in New Karv?", "Who lives in New Karv?"),
        ("When did World War I end?", "What about World War II?", "When did World War II end?"),
    ]:
        assert read(rewriter, question, Turn(asked)) == whole


def test_what_is_narrowed_otherwise_is_asked_so(rewriter: OfflineRewriter) -> None:
    for asked, question, whole in [
        (
            "What was decided at the council meeting in March?",
            "No, I meant the council meeting in October",
            "What was decided at the council meeting in October?",
        ),
        (
            "What did the council meeting decide?",
            "I meant the council meeting of the harbour in October 1952",
            "What did the council meeting of the harbour in October 1952 decide?",
        ),
        ("Who sat on the council in March?", "the council of Karv?", "Who sat on the council of Karv in March?"),
    ]:
        assert read(rewriter, question, Turn(asked)) == whole


def test_a_choice_is_between_the_two_that_were_spoken_of(rewriter: OfflineRewriter) -> None:
    one, other = Turn("What does Karv charge?"), Turn("How deep is the Port of Velmora?")
    assert read(rewriter, "Which is cheaper?", one, other) == "Which is cheaper? (Karv and Port of Velmora)"
    assert read(rewriter, "Which is cheaper?", other) == "Which is cheaper? (Port of Velmora)"


def test_what_cannot_be_put_into_words_is_named_in_brackets(rewriter: OfflineRewriter) -> None:
    assert read(rewriter, "Which is more important?", Turn("What is the difference between rent and lease?")) == (
        "Which is more important? (difference between rent and lease)"
    )
    assert read(rewriter, "Wo wurde sie geboren?", BUILDER) == "Wo wurde sie geboren? (Ida Brandt)"


def test_the_second_one_is_counted_in_the_question(rewriter: OfflineRewriter) -> None:
    last = Turn("Which is older, Karv or the Port of Velmora?", "Karv. [1]")
    assert read(rewriter, "Who built the second one?", last) == "Who built Port of Velmora?"


def test_both_are_the_two_that_were_spoken_of_last(rewriter: OfflineRewriter) -> None:
    last = Turn("When was Karv built?")
    assert (
        read(rewriter, "Which of them is larger?", BUILT, last) == "Which of them is larger? (Port of Velmora and Karv)"
    )


def test_he_who_could_be_two_people_asks_back(rewriter: OfflineRewriter) -> None:
    found = rewriter.rewrite("When was he born?", [TWO_MEN])
    assert found.choices == ("When was Orlo Sund born?", "When was Emil Tarn born?")


def test_she_is_not_one_of_two_men(rewriter: OfflineRewriter) -> None:
    assert rewriter.rewrite("When was she born?", [TWO_MEN]).choices == ()


def test_somebody_of_the_turn_before_the_last_is_remembered(rewriter: OfflineRewriter) -> None:
    assert (
        read(rewriter, "Where was she born?", BUILDER, Turn("How deep is the harbour?")) == "Where was Ida Brandt born?"
    )


def test_turns_that_lean_themselves_are_completed_first(rewriter: OfflineRewriter) -> None:
    asked_on = Turn("And who built it?", BUILDER.answer)
    assert read(rewriter, "Where was she born?", BUILT, asked_on) == "Where was Ida Brandt born?"


def test_the_names_that_were_put_in_are_told(rewriter: OfflineRewriter) -> None:
    assert rewriter.rewrite("Where was she born?", [BUILDER]).names == ("Ida Brandt",)


def test_without_turns_a_question_stays_as_it_is(rewriter: OfflineRewriter) -> None:
    assert rewriter.rewrite("And who built it?", []) == Rewriting("And who built it?")


TEXT = st.text(max_size=80) | st.sampled_from(["why?", "and it?", "(", "What about", "he", "the second one", "¿y?"])


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXT.filter(str.strip), st.lists(st.builds(Turn, TEXT, TEXT), max_size=4))
def test_any_words_are_completed_alike_twice(rewriter: OfflineRewriter, question: str, turns: Sequence[Turn]) -> None:
    found = rewriter.rewrite(question, turns)
    assert found.question.strip()
    assert len(found.choices) != 1
    assert rewriter.rewrite(question, turns) == found
