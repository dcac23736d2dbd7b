"""A source as it is shown: the words that an answer cites, the heading over them, and how it moved for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents.answers.citations import quotable
from graph.sentences import TextUnit, text_units

_READ = 1_000
_SHOWN = 240


def excerpt_of(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> str:
    """Return the cited words of a passage among those around them, without Markdown; of one not cited, its beginning.

    Around them stand the sentences of their paragraph, those behind them first, as far as there is room.
    """
    start, end = _cited_span(passage, citations) or (0, 0)
    text = passage["text"][: end + _READ]
    units = text_units(text)
    if not units:
        return ""
    first = next((place for place, unit in enumerate(units) if unit.end > start), len(units) - 1)
    last = max(first, next((place for place, unit in enumerate(units) if unit.end >= end), len(units) - 1))
    room = _SHOWN - (units[last].end - units[first].start)
    while last + 1 < len(units) and (end == 0 or _goes_on(text, units[last], units[last + 1])) and room > 0:
        last += 1
        room -= units[last].end - units[last - 1].end
    while end and first and _goes_on(text, units[first - 1], units[first]):
        room -= units[first].start - units[first - 1].start
        if room < 0:
            break
        first -= 1
    shown = " ".join(" ".join(quotable(text[unit.start : unit.end]) for unit in units[first : last + 1]).split())
    shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
    return f"… {shown}" if text[: units[first].opens].strip() else shown


def _goes_on(text: str, unit: TextUnit, following: TextUnit) -> bool:
    """Tell whether two units stand in one paragraph."""
    return not unit.is_heading and not following.is_heading and "\n\n" not in text[unit.end : following.opens]


def section_of(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> str:
    """Return the heading over the cited words, where the passage holds one, else the section that it begins in."""
    section, span = str(passage["metadata"].get("section") or ""), _cited_span(passage, citations)
    if span is None:
        return section
    start = span[0]
    read = passage["text"][: start + _READ]
    over = [quotable(read[unit.start : unit.end]) for unit in text_units(read) if unit.is_heading and unit.end <= start]
    is_named = over and over[-1] not in ("", passage["title"], section.split(" > ")[-1])
    return over[-1] if is_named else section


def _cited_span(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> tuple[int, int] | None:
    """Return where the first citation of a passage begins and ends; None where its words are not known."""
    spans = ((mark.get("start"), mark.get("end")) for mark in citations if mark["number"] == passage["number"])
    return next(((start, end) for start, end in spans if start is not None and end is not None), None)


def place_of(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> str:
    """Return where the cited words of a passage stand: its source, the heading over them and the page."""
    return " · ".join(filter(None, (passage["source"], section_of(passage, citations), pages_of(passage))))


def pages_of(passage: Mapping[str, Any]) -> str:
    """Return the pages of a passage in words; empty where it has none."""
    page, last = (passage["metadata"].get(key) for key in ("page", "page_end"))
    return "" if page is None else f"page {page}" if last is None else f"pages {page} to {last}"


def moved(passage: Mapping[str, Any]) -> str:
    """Return from where a passage moved and why; empty where it did not move."""
    place = passage.get("personal")
    if not place or place["before"] == passage["number"]:
        return ""
    way = "up" if place["before"] > passage["number"] else "down"
    why = place["reasons"][0]["told"] if place["reasons"] and way == "up" else "others moved"
    return f"moved {way} from {place['before']}: {why}"
