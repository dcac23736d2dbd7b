from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.words import Day, date_spans, days_in, month_names, month_number

MONTHS = (
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
)

NOTATIONS = (
    "{d} {english} {y}",
    "{d}th of {english} {y}",
    "{english} {d}, {y}",
    "{y}-{m:02}-{d:02}",
    "{d}.{m}.{y}",
    "{d:02}.{m:02}.{y}",
    "{d}/{m}/{y}",
    "{d}-{m}-{y}",
    "{d}. {german} {y}",
    "{d} {french} {y}",
)
days = st.dates(date(1500, 1, 1), date(2099, 12, 31))


@given(days, st.sampled_from(NOTATIONS), st.sampled_from(["", "signed on ", "(", "Kiel, "]))
def test_a_date_is_the_same_in_every_notation(day: date, notation: str, before: str) -> None:
    names = [months.split()[day.month - 1] for months in MONTHS]
    written = notation.format(
        d=day.day, m=day.month, y=day.year, **dict(zip(("english", "german", "french"), names, strict=True))
    )
    text = f"{before}{written}, as agreed"
    assert days_in(text) == [Day(day.year, day.month, day.day)]
    ((start, end),) = date_spans(text)
    assert text[start:end] == written


def test_days_are_read_in_order_and_what_is_not_told_of_a_date_is_nought() -> None:
    for written, day in (
        ("March 2024", Day(2024, 3)),
        ("im Jänner 2023", Day(2023, 1)),
        ("le 1er août 2022", Day(2022, 8, 1)),
        ("founded in 1203", Day(1203)),
        ("on 15 June 1215", Day(1215, 6, 15)),
        ("14.03.24", Day(2024, 3, 14)),
        ("03/04/2024", Day(2024, 4, 3)),
        ("03/14/2024", Day(2024, 3, 14)),
    ):
        assert days_in(written) == [day], written
    assert days_in("From 2 May 2021 to 2022-06-30, renewed 2024.") == [Day(2021, 5, 2), Day(2022, 6, 30), Day(2024)]
    assert Day(2023) < Day(2023, 4) < Day(2023, 4, 1) < Day(2024)


def test_what_is_no_date_is_none_and_a_day_without_a_year_has_a_place_alone() -> None:
    for written in ("45.13.2024", "2024-13-45", "32 March 2024", "room 1499", "costs 1200 EUR", "part 20240", "in may"):
        assert days_in(written) == [], written
    assert date_spans("on 14 March it was") == [(3, 11)]
    assert days_in("on 14 March it was") == []


def test_months_are_known_by_their_names() -> None:
    for months in MONTHS:
        names = months.split()
        assert [month_number(name) for name in names] == list(range(1, 13))
        assert all(name.casefold() in month_names(number) for number, name in enumerate(names, 1))
    assert month_number("Monday") == 0


@given(st.text(alphabet="0123456789-./ marchMäz,", max_size=30))
def test_any_text_has_spans_and_possible_days(text: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end in date_spans(text))
    assert all(day.month <= 12 and day.day <= 31 for day in days_in(text))
