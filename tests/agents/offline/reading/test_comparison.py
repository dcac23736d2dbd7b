from __future__ import annotations

import pytest

from agents.offline.reading.comparison import Side, compare


def short(question: str, one: str, other: str) -> str | None:
    found = compare(question, [Side("Kestrel", one), Side("Alcyon", other)])
    return found[1] if found else None


@pytest.mark.parametrize(
    ("question", "one", "other", "answer"),
    [
        ("Which came first?", "Built on 3 May 2021.", "Built 2021-05-02.", "Alcyon (2021-05-02; Kestrel: 3 May 2021)"),
        ("Which is newer?", "Built on 3 May 2021.", "Built in 2019.", "Kestrel (3 May 2021; Alcyon: 2019)"),
        ("Which is cheaper?", "It costs EUR 1,200.", "It costs 900 EUR.", "Alcyon (900 EUR; Kestrel: EUR 1,200)"),
        ("Which costs more?", "1.200,50 EUR", "1'300 EUR", "Alcyon (1'300 EUR; Kestrel: 1.200,50 EUR)"),
        ("Which is longer?", "It is 12 m long.", "It is 9.5 m long.", "Kestrel (12 m; Alcyon: 9.5 m)"),
        ("Who has been there longer?", "Since 2019.", "Since 2021.", "Kestrel (2019; Alcyon: 2021)"),
    ],
)
def test_two_dates_or_numbers_are_compared_and_both_are_told(question: str, one: str, other: str, answer: str) -> None:
    assert short(question, one, other) == answer


def test_the_winner_is_told_by_its_place() -> None:
    sides = [Side("Kestrel", "12 m"), Side("Alcyon", "9 m")]
    assert [compare("Which is longer?", sides), compare("Which is shorter?", sides)] == [
        (0, "Kestrel (12 m; Alcyon: 9 m)"),
        (1, "Alcyon (9 m; Kestrel: 12 m)"),
    ]


def test_both_may_stand_in_the_cells_of_one_row() -> None:
    row = "part: mast height; Kestrel: 12 m; Alcyon: 14 m"
    assert short("Which is taller?", row, row) == "Alcyon (14 m; Kestrel: 12 m)"


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("Which is nicer?", "12 m", "9 m"),
        ("Which is older and cheaper?", "12 EUR", "9 EUR"),
        ("Which is longer?", "12 m", "900 cm"),
        ("Which is cheaper?", "$5", "€4"),
        ("Which is cheaper?", "EUR 5, or EUR 6 with tax", "EUR 4"),
        ("Which is lower?", "12 kg; 5 EUR", "13 kg; 4 EUR"),
        ("Which came first?", "From 3 May 2021 to 2022.", "In 2020."),
        ("Which came first?", "In 2021.", "In 2021."),
        ("Which came first?", "In May 2021.", "In 2021."),
        ("Which came first?", "In spring.", "In 2021."),
        ("Which came first?", "", ""),
    ],
    ids=[
        "no word of comparison",
        "two of them",
        "other units",
        "other currencies",
        "two candidates on one side",
        "two units on both",
        "two dates on one side",
        "equal",
        "equal as far as told",
        "one side untold",
        "nothing",
    ],
)
def test_nothing_is_said_where_it_is_not_certain(question: str, one: str, other: str) -> None:
    assert short(question, one, other) is None
