from __future__ import annotations

from collections.abc import Iterator

import pytest

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
    asked_on = Turn("And who built it?", BUILDER.answer)
    for turns, question, whole in (
        ([BUILT], "And who built it?", "Who built Port of Velmora?"),
        ([BUILT], "How large are its docks?", "How large are Port of Velmora's docks?"),
        ([BUILDER], "Where was she born?", "Where was Ida Brandt born?"),
        ([CAPITAL], "Which river flows through it?", "Which river flows through Marn?"),
        ([CAPITAL], "Who lives there?", "Who lives in Marn?"),
        ([BUILDER, Turn("How deep is the harbour?")], "Where was she born?", "Where was Ida Brandt born?"),
        ([BUILT, asked_on], "Where was she born?", "Where was Ida Brandt born?"),
    ):
        assert read(rewriter, question, *turns) == whole
    assert rewriter.rewrite("Where was she born?", [BUILDER]).names == ("Ida Brandt",)
    assert rewriter.rewrite("And who built it?", []) == Rewriting("And who built it?"), "without turns it stays"


def test_a_fragment_asks_the_last_question_again(rewriter: OfflineRewriter) -> None:
    for question, whole in (
        ("And Karv?", "When was the Karv built?"),
        ("in 1952?", "When was the Port of Velmora built in 1952?"),
        ("why?", "Why was the Port of Velmora built?"),
        ("Are you sure? I thought it was 1945", "When was the Port of Velmora built?"),
        ("No, I meant Karv", "When was the Karv built?"),
    ):
        assert read(rewriter, question, BUILT) == whole


def test_a_phrase_takes_the_place_of_one_like_it_and_its_name_with_it_whole(rewriter: OfflineRewriter) -> None:
    march = "What was decided at the council meeting in March?"
    for asked, question, whole in (
        ("Who won the race in 1948?", "and in 1952?", "Who won the race in 1952?"),
        ("Who won the race in 1948? (Karv)", "1960?", "Who won the race in 1960? (Karv)"),
        ("When did World War I end?", "What about World War II?", "When did World War II end?"),
        (march, "No, I meant the council meeting in October", march.replace("March", "October")),
        (
            "What did the council meeting decide?",
            "I meant the council meeting of the harbour in October 1952",
            "What did the council meeting of the harbour in October 1952 decide?",
        ),
        ("Who sat on the council in March?", "the council of Karv?", "Who sat on the council of Karv in March?"),
    ):
        assert read(rewriter, question, Turn(asked)) == whole


def test_what_cannot_be_put_into_words_is_named_in_brackets(rewriter: OfflineRewriter) -> None:
    karv, port = Turn("What does Karv charge?"), Turn("How deep is the Port of Velmora?")
    difference = Turn("What is the difference between rent and lease?")
    for turns, question, named in (
        ([karv, port], "Which is cheaper?", "Karv and Port of Velmora"),
        ([difference], "Which is more important?", "difference between rent and lease"),
        ([Turn("Which is cheaper? (Karv)")], "Which is more important?", "Karv"),
        ([BUILDER], "Wo wurde sie geboren?", "Ida Brandt"),
        ([BUILT, Turn("When was Karv built?")], "Which of them is larger?", "Port of Velmora and Karv"),
    ):
        assert read(rewriter, question, *turns) == f"{question} ({named})"


def test_the_second_one_is_counted_in_the_question(rewriter: OfflineRewriter) -> None:
    last = Turn("Which is older, Karv or the Port of Velmora?", "Karv. [1]")
    assert read(rewriter, "Who built the second one?", last) == "Who built Port of Velmora?"


def test_he_who_could_be_two_people_asks_back_and_she_is_not_one_of_two_men(rewriter: OfflineRewriter) -> None:
    choices = ("When was Orlo Sund born?", "When was Emil Tarn born?")
    assert rewriter.rewrite("When was he born?", [TWO_MEN]).choices == choices
    assert rewriter.rewrite("When was she born?", [TWO_MEN]).choices == ()
