from __future__ import annotations

import numpy as np

from agents.offline.alignment import LONGEST_QUOTE, Excerpt, excerpt_around, passage_sentences
from tests.agents.offline.office import ENGINES, FAQ, LEASE, TOOLS, passage


def texts(*args: str) -> list[str]:
    return [sentence.text for sentence in passage_sentences([passage(1, "a.md", *args)])]


def around(text: str, place: int, worth: list[float] | None = None) -> str:
    sentences = passage_sentences([passage(1, "a.md", text)])
    return excerpt_around(place, sentences, np.array(worth or [0.0] * len(sentences))).quote()


def test_headings_and_questions_are_no_sentences_but_what_those_below_them_stand_under() -> None:
    sentences = passage_sentences([LEASE])
    assert "Rent" not in {sentence.text for sentence in sentences}
    (rent,) = (sentence for sentence in sentences if "monthly" in sentence.text)
    assert rent.heading == "Rent"
    assert "rent" in rent.words.split()
    answers = passage_sentences([FAQ])
    assert [sentence.text for sentence in answers] == [
        "Gloves and respirators lie in the red cabinet beside the paint shop.",
        "The yard pays for it, once the trial period is over.",
    ]
    assert "Where do I get gloves and a respirator?" in answers[0].heading
    assert "Who pays for the training on the crane?" in answers[1].heading


def test_items_stand_under_the_opening_of_their_list_and_are_quoted_together_or_each_for_itself() -> None:
    items = passage_sentences([TOOLS])
    expected = ["seacocks are closed", "the bilge pump runs", "the cradle is free", "the crane strap is not worn"]
    assert [item.text for item in items] == expected
    assert all("These things have to be checked before a launch:" in item.heading for item in items)
    assert excerpt_around(2, items, np.zeros(4)).sentences == tuple(items)
    assert around("- The mast is new.\n- The sail is old.", 0) == "a.md: The mast is new."
    assert texts("The yard has one rule:") == ["The yard has one rule:"], "a colon with no list below"
    rows = passage_sentences([ENGINES])
    assert all(row.is_row for row in rows)
    assert excerpt_around(0, rows, np.zeros(2)).sentences == (rows[0],)


def test_what_holds_citations_alone_is_nothing_and_text_without_a_stop_is_cut_between_two_words() -> None:
    assert texts("[3]\n\nIt rains. [4]") == ["It rains."]
    (sentence,) = texts("word " * 1000)
    assert LONGEST_QUOTE - 10 < len(sentence) <= LONGEST_QUOTE
    assert sentence.endswith("word")


def test_neighbours_of_one_paragraph_are_quoted_together_the_worthier_first_up_to_the_limit() -> None:
    text = "The mast is new. It came in May.\n\nThe sail is old."
    assert around(text, 0) == "a.md: The mast is new. It came in May."
    assert around(text, 2) == "a.md: The sail is old."
    long = "The yard has a long and busy history that begins with a single shed beside the river and a few good men."
    text = " ".join([long, "The mast is new.", long.replace("shed", "barn"), long.replace("shed", "hut")])
    assert "shed" not in around(text, 2, [0.0, 0.0, 0.0, 1.0])
    assert "hut" in around(text, 2, [0.0, 0.0, 0.0, 1.0])
    assert "shed" in around(text, 1, [1.0, 0.0, 0.5, 0.0])


def test_a_quote_names_what_it_stands_under_unless_its_words_do_and_a_title_unless_it_opens_with_it() -> None:
    for text, title, quote in (
        ("## Mast\n\nThe mast is new.", "Kestrel (boat)", "Kestrel: The mast is new."),
        ("## Spars\n\nThe mast is new.", "Kestrel (boat)", "Kestrel: Spars: The mast is new."),
        ("It is large. Honda makes cars.", "Honda (company)", "Honda: It is large. Honda makes cars."),
        ("The old Kestrel is a boat.", "Kestrel", "The old Kestrel is a boat."),
        ("maker: Honda; cars: 3", "Honda (company)", "Honda: cars: 3"),
    ):
        assert Excerpt(tuple(passage_sentences([passage(1, "a.md", text, title)]))).quote() == quote
