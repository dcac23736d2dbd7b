from __future__ import annotations

from agents.offline.comparison import Side, compare


def short(question: str, one: str, other: str) -> str | None:
    found = compare(question, [Side("Kestrel", one), Side("Alcyon", other)])
    return found[1] if found else None


def test_of_sentences_two_dates_are_compared_and_both_are_told() -> None:
    for question, one, other, answer in [
        ("Which came first?", "Built on 3 May 2021.", "Built 2021-05-02.", "Alcyon (2021-05-02; Kestrel: 3 May 2021)"),
        ("Which is newer?", "Built on 3 May 2021.", "Built in 2019.", "Kestrel (3 May 2021; Alcyon: 2019)"),
        ("Which boat was launched first?", "Launched 1998.", "Launched in 1996.", "Alcyon (1996; Kestrel: 1998)"),
        ("Which is older?", "Born in Kiel in 1960.", "Born 1961.", "Kestrel (1960; Alcyon: 1961)"),
        ("Who has been there longer?", "Since 2019.", "Since 2021.", "Kestrel (2019; Alcyon: 2021)"),
    ]:
        assert short(question, one, other) == answer


def test_of_sentences_no_numbers_are_compared() -> None:
    for question, one, other in [
        ("Which is cheaper?", "It costs EUR 1,200.", "It costs 900 EUR."),
        ("Which has more berths?", "It has 14 berths.", "It has 9 berths."),
        ("Which is cheaper?", "Price: 1200 EUR", "Price: 900 EUR"),
    ]:
        assert short(question, one, other) is None


def test_the_winner_is_told_by_its_place() -> None:
    sides = [Side("Kestrel", "Built in 1998."), Side("Alcyon", "Built in 1996.")]
    assert [compare("Which is newer?", sides), compare("Which is older?", sides)] == [
        (0, "Kestrel (1998; Alcyon: 1996)"),
        (1, "Alcyon (1996; Kestrel: 1998)"),
    ]


def test_both_may_stand_in_the_cells_of_one_row() -> None:
    row = "part: mast height; Kestrel: 12 m; Alcyon: 14 m"
    assert short("Which is taller?", row, row) == "Alcyon (14 m; Kestrel: 12 m)"


def test_a_cell_is_a_value_where_it_holds_nothing_else() -> None:
    for one, other, answer in [
        ("EUR 1,200", "900 EUR", "Alcyon (price: 900 EUR; Kestrel: EUR 1,200)"),
        ("1.200,50 EUR", "1'300 EUR", "Kestrel (price: 1.200,50 EUR; Alcyon: 1'300 EUR)"),
        ("0.125 EUR", "0.5 EUR", "Kestrel (price: 0.125 EUR; Alcyon: 0.5 EUR)"),
        ("EUR 9 a day", "EUR 12 a day", "Kestrel (price: EUR 9 a day; Alcyon: EUR 12 a day)"),
        ("€1,200", "€900", "Alcyon (price: €900; Kestrel: €1,200)"),
        ("17", "19", "Kestrel (price: 17; Alcyon: 19)"),
        ("over 1,200 EUR", "over 900 EUR", None),
        ("from 300 EUR", "from 200 EUR", None),
        ("300 EUR or more", "200 EUR or more", None),
        ("EUR 5-6", "EUR 4", None),
        ("EUR 5 to 6", "EUR 4", None),
        ("5 EUR, 6 EUR with tax", "4 EUR", None),
        ("EUR 5 per hour", "EUR 30 per day", None),
        ("EUR 5 million", "EUR 900", None),
        ("$5", "€4", None),
        ("5 EUR", "4", None),
        ("1.200 EUR", "2.5 EUR", None),
        ("5 EUR", "5 EUR", None),
        ("on request", "4 EUR", None),
        ("", "4 EUR", None),
    ]:
        assert short("Which is cheaper?", f"boat: Kestrel; price: {one}", f"boat: Alcyon; price: {other}") == answer


ROW = "customer: {}; pumps_installed: {}; pumps_repaired: {}; since: {}; costs: {}"
ROWS = ROW.format("Kestrel", 14, 2, 2017, "EUR 7,900"), ROW.format("Alcyon", 6, 3, 1998, "EUR 900")


def test_of_rows_the_column_that_is_asked_for_is_compared_and_no_other() -> None:
    for question, answer in [
        ("Which has more pumps installed?", "Kestrel (pumps_installed: 14; Alcyon: 6)"),
        ("Which customer has more pumps repaired?", "Alcyon (pumps_repaired: 3; Kestrel: 2)"),
        ("Which has fewer installed pumps?", "Alcyon (pumps_installed: 6; Kestrel: 14)"),
        ("Which is cheaper?", "Alcyon (costs: EUR 900; Kestrel: EUR 7,900)"),
        ("Who has been a customer longer?", "Alcyon (since: 1998; Kestrel: 2017)"),
        ("Which has more pumps?", None),
        ("Which has more pumps in stock?", None),
        ("Which was founded first?", None),
        ("Which customer is older?", None),
        ("Which is larger?", None),
        ("Which is longer?", None),
        ("Which came first?", None),
    ]:
        assert short(question, *ROWS) == answer


def test_a_column_without_such_a_value_is_none_that_may_be_meant() -> None:
    rows = "site: Kestrel; opened: 2004; built: 1968", "site: Alcyon; opened: 1999; built: 1970"
    assert short("Which site opened first?", *rows) == "Alcyon (opened: 1999; Kestrel: 2004)"
    assert short("Which site was built first?", *rows) == "Kestrel (built: 1968; Alcyon: 1970)"


def test_a_column_of_a_part_is_not_the_thing_itself() -> None:
    for question, answer in [
        ("Which is heavier?", "Alcyon (weight_kg: 40; Kestrel: 30)"),
        ("Which has the longer warranty?", "Kestrel (warranty: 36 months; Alcyon: 24 months)"),
        ("Which is longer?", None),
        ("Which has the longer range?", None),
    ]:
        row = "model: {}; weight_kg: {}; cable_length: {} m; warranty: {} months"
        assert short(question, row.format("Kestrel", 30, 2, 36), row.format("Alcyon", 40, 3, 24)) == answer


def test_a_year_in_a_column_of_numbers_is_a_number() -> None:
    rows = "site: Kestrel; pumps: 1998; since: 2017", "site: Alcyon; pumps: 2003; since: 2011"
    assert short("Which has more pumps?", *rows) == "Alcyon (pumps: 2003; Kestrel: 1998)"


def test_a_row_tells_of_what_its_first_cell_names() -> None:
    for one, other, is_computed in [
        ("id: 17; boat: Kestrel II; berths: 14", "id: 18; boat: Alcyon; berths: 9", True),
        ("id: E-17; boat: Kestrel; berths: 14", "id: E-18; boat: Alcyon; berths: 9", True),
        ("boat: Kestrel Yacht Club; berths: 14", "boat: Alcyon; berths: 9", False),
        ("boat: Lark; owner: Kestrel; berths: 14", "boat: Wren; owner: Alcyon; berths: 9", False),
        ("boat: Kestrel; berths: 14", "boat: Wren; owner: Alcyon; berths: 9", False),
    ]:
        assert (short("Which has more berths?", one, other) is not None) == is_computed


def test_nothing_is_computed_where_another_row_of_the_name_tells_another_value() -> None:
    one, other, later = (f"boat: {name}; berths: {n}" for name, n in (("Kestrel", 14), ("Alcyon", 9), ("Alcyon", 16)))

    def compared(*rows: str) -> tuple[int, str] | None:
        return compare("Which has more berths?", [Side("Kestrel", one, "", rows), Side("Alcyon", other, "", rows)])

    assert compared(one, other, "boat: Alcyon; masts: 2", "boat: Lark; berths: 2") == (
        0,
        "Kestrel (berths: 14; Alcyon: 9)",
    )
    assert compared(one, other, later) is None


def test_a_number_of_a_name_is_no_value() -> None:
    sides = [Side("Crane 7", "Crane 7 was built in 1998."), Side("Crane 9", "Crane 9 was built in 1996.")]
    assert compare("Which was built first, Crane 7 or Crane 9?", sides) == (1, "Crane 9 (1996; Crane 7: 1998)")
    rows = [Side(f"Crane {n}", f"name: Crane {n}; lifts: {lifts} t") for n, lifts in ((7, 9), (9, 7))]
    assert compare("Which lifts more, Crane 7 or Crane 9?", rows) == (0, "Crane 7 (lifts: 9 t; Crane 9: 7 t)")


def test_what_is_asked_may_stand_in_the_heading_but_its_attribute_stands_at_the_value() -> None:
    sides = [Side("Kestrel", "Opened: 1998", "Boat halls"), Side("Alcyon", "Opened: 2003", "Boat halls")]
    assert compare("Which of the halls opened earlier, by year?", sides) is None
    found = compare("Which boat hall opened earlier?", sides)
    assert found == (0, "Kestrel (1998; Alcyon: 2003)")
    row = "part: boom; Kestrel: 12 m; Alcyon: 14 m"
    assert compare("Which is taller?", [Side(name, row, "Height") for name in ("Kestrel", "Alcyon")]) is None


def test_nothing_is_said_where_it_is_not_certain() -> None:
    for question, one, other in [
        ("Which is nicer?", "12 m", "9 m"),
        ("Which is older and cheaper?", "12 EUR", "9 EUR"),
        ("Which is longer?", "It is 12 m long.", "It is 900 cm long."),
        ("Which is cheaper?", "It costs $5.", "It costs €4."),
        ("Which is cheaper?", "It costs EUR 5 per hour.", "It costs EUR 30 per day."),
        ("Which is cheaper?", "It costs EUR 5 million.", "It costs EUR 900."),
        ("Which is cheaper?", "It costs EUR 5, or EUR 6 with tax.", "It costs EUR 4."),
        ("Which is cheaper?", "It costs EUR 5-6.", "It costs EUR 4."),
        ("Which is cheaper?", "It costs EUR 5 to 6.", "It costs EUR 4."),
        ("Which is lower?", "12 kg; 5 EUR", "13 kg; 4 EUR"),
        ("Which came first?", "Built from 3 May 2021 to 2022.", "Built in 2020."),
        ("Which came first?", "Built in 2021.", "Built in 2021."),
        ("Which came first?", "Built in May 2021.", "Built in 2021."),
        ("Which came first?", "Built in spring.", "Built in 2021."),
        ("Which came first?", "", ""),
        ("Which is larger?", "Founded in 1933.", "Founded in 1958."),
        ("Which is older?", "Founded in 1933.", "Born in 1906."),
        ("Which is older?", "Repaired in 1933.", "Repaired in 1958."),
        ("Which was founded first?", "Built in 1933.", "Founded in 1958."),
        ("Which was founded first?", "Founded by Moen, it moved in 1933.", "Founded in 1958."),
        ("Which was founded first?", "The boat founded by Moen moved to Kiel in 1933.", "Founded in 1958."),
        ("Which was founded first?", "It was founded in Kiel and sold in 1933.", "Founded in 1958."),
        ("Which costs more?", "Deposit: EUR 5", "Deposit: EUR 4"),
        ("Which has more berths?", "It has 14 masts.", "It has 9 masts."),
        ("Which is longer?", "Her mast is 12 m long.", "Her mast is 9 m long."),
        ("Which is cheaper?", "Storage costs EUR 5.", "Storage costs EUR 4."),
        ("Which opened first?", "Its first factory opened in 1933.", "It opened in 1958."),
        ("Which costs more in winter?", "It costs EUR 5.", "It costs EUR 4."),
    ]:
        assert short(question, one, other) is None
