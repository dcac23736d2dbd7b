from __future__ import annotations

import pytest

from graph.errors import BadInput
from graph.moments import first_moment, last_moment, now, shown


def test_a_date_has_a_first_and_a_last_moment_and_a_time_of_day_is_one() -> None:
    for date, first, last in [
        ("2024", "2024-01-01T00:00:00.000000Z", "2024-12-31T23:59:59.999999Z"),
        ("2024-02", "2024-02-01T00:00:00.000000Z", "2024-02-29T23:59:59.999999Z"),
        ("2024-03-31", "2024-03-31T00:00:00.000000Z", "2024-03-31T23:59:59.999999Z"),
        ("2024-03-31T12:00+02:00", "2024-03-31T10:00:00.000000Z", "2024-03-31T10:00:00.000000Z"),
        ("0099-01-01", "0099-01-01T00:00:00.000000Z", "0099-01-01T23:59:59.999999Z"),
        ("9999", "9999-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"),
    ]:
        assert (first_moment(date), last_moment(date)) == (first, last)


def test_anything_else_is_refused() -> None:
    for date in ("", "yesterday", "2024-13", "31.3.2024", "2024-02-30", "2024-03-31T25:00"):
        for moment in (first_moment, last_moment):
            with pytest.raises(BadInput, match="is no date"):
                moment(date)


def test_now_is_a_moment_and_days_are_shown_without_a_clock() -> None:
    moment = now()
    assert first_moment(moment) == last_moment(moment) == moment <= now()
    assert shown("2024-03-31T00:00:00.000000Z") == "2024-03-31"
    assert shown("2024-03-31T10:20:30.400000Z") == "2024-03-31T10:20:30Z"
