"""Moments from which and as of which something stands: ISO 8601 in UTC, all of one length, so that text sorts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from graph.errors import BadInput
from graph.metadata_filter import date_span

ALWAYS = ""
"""Before every moment."""

FOREVER = "~"
"""After every moment."""

_TICK = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def now() -> str:
    """Return the present moment."""
    return _text(datetime.now(UTC))


def first_moment(date: str) -> str:
    """Return the moment at which a date begins: a year, a month, a day, or a time of day, in UTC where it says none.

    Raises:
        BadInput: it is no date of ISO 8601.
    """
    return _text(_EPOCH + timedelta(seconds=_span(date)[0]))


def last_moment(date: str) -> str:
    """Return the last moment of a date, which for a time of day is that time. Raises as `first_moment` does."""
    first, following = _span(date)
    if first == following:
        return first_moment(date)
    try:
        return _text(_EPOCH + timedelta(seconds=following) - _TICK)
    except OverflowError:
        return _text(_LAST)


def shown(moment: str) -> str:
    """Return a moment for people: a date alone where a day begins, else without fractions of a second."""
    day, _, clock = moment.partition("T")
    return day if clock == "00:00:00.000000Z" else f"{day}T{clock[:8]}Z"


def _span(date: str) -> tuple[float, float]:
    span = date_span(date)
    if span is None:
        raise BadInput(
            f"{date[:60]!a} is no date", "Give an ISO 8601 date, such as 2024, 2024-03, 2024-03-31 or 2024-03-31T12:00Z"
        )
    return span


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
