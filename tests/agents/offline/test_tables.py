"""Rows are listed and counted where each word of a question is a cell or a name of one table, and nowhere else."""

from __future__ import annotations

from agents.offline.alignment import passage_sentences
from agents.offline.questions import parse_question
from agents.offline.tables import MOST_LISTED, Listing, list_rows
from agents.roles import NumberedPassage

ROWS = (
    "Member: Anna Berg; Town: Ulm; Section: Rowing; Coach: Ines Caro; Joined: 2011",
    "Member: Bo Carlsen; Town: Ulm; Section: Sailing; Coach: Marek Sobol; Joined: 2015",
    "Member: Cem Dogan; Town: Neu-Ulm; Section: Rowing; Coach: Ines Caro; Joined: 2019",
    "Member: Dora Eck; Town: Sailing; Section: Rowing; Coach: Ines Caro; Joined: 2020",
)
MEMBERS = [NumberedPassage(n, f"m{n}", row[8 : row.index(";")], row, "members.csv") for n, row in enumerate(ROWS, 1)]
BERTHS = NumberedPassage(
    9, "b", "Boats", "# Boats\n\nBoat: Möwe; Berth: North pier\nBoat: Falke; Berth: South pier", "boats.md"
)
ALL = {"members.csv": MEMBERS, "boats.md": [BERTHS]}


def listed(question: str, *rows: NumberedPassage) -> Listing | None:
    """Return what is listed where some rows were found."""
    sentences = passage_sentences(rows or [MEMBERS[0], BERTHS])
    return list_rows(parse_question(question), sentences, ALL.__getitem__)


def test_of_many_rows_all_are_counted_and_the_first_ones_listed() -> None:
    crates = [
        NumberedPassage(n, f"c{n}", "", f"Crate: {1000 - n}; Hall: {'East' if n % 2 else 'West'}", "crates.csv")
        for n in range(1, 2 * MOST_LISTED + 3)
    ]
    sentences = passage_sentences(crates[:1])
    listing = list_rows(parse_question("How many crates are in the east hall?"), sentences, lambda _: crates)
    assert listing is not None
    assert listing.count == "51 of the 102 rows of crates.csv have Hall: East; the first 50 by name"
    assert [excerpt.passage.number for excerpt in listing.excerpts] == [*range(101, 1, -2)]


def test_all_rows_are_listed_whose_cells_a_question_names() -> None:
    of_the_members = "of the 4 rows of members.csv"
    for question, count, names in (
        ("Which members does Ines Caro coach?", f"3 {of_the_members} have Coach: Ines Caro", "ACD"),
        ("How many members are in the rowing section?", f"3 {of_the_members} have Section: Rowing", "ACD"),
        (
            "Which members live in Ulm and are in the sailing section?",
            f"1 {of_the_members} has Town: Ulm, Section: Sailing",
            "B",
        ),
        ("Which members are in the sailing section?", f"1 {of_the_members} has Section: Sailing", "B"),
        ("How many members are there?", "4 rows in members.csv", "ABCD"),
        ("Which boats lie at the north pier?", "1 of the 2 rows of boats.md has Berth: North pier", "M"),
        ("How many members joined in 2015?", f"1 {of_the_members} has Joined: 2015", "B"),
    ):
        listing = listed(question)
        assert listing is not None, question
        assert listing.count == count
        assert [excerpt.quote().removeprefix("Boats: ")[0] for excerpt in listing.excerpts] == [*names]


def test_nothing_is_listed_or_counted_where_a_word_is_no_cell_and_no_name_or_the_cell_of_two_columns() -> None:
    for question in (
        "Which members are not in the rowing section?",
        "How many members joined after 2015?",
        "How many members are in the rowing or sailing section?",
        "How many members from Ulm won a race?",
        "How many boats are in Ulm?",
        "Who coaches Anna Berg?",
        "Which members are in sailing?",
    ):
        assert listed(question) is None, question
    assert listed("Which members does Ines Caro coach?", BERTHS) is None, "none of its rows was found"
