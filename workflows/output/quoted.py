"""A source as it is shown: the words that an answer cites, the heading over them, and how it moved for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents.answers.citations import quotable
from graph.sentences import text_units

_READ = 1_000
_SHOWN = 240


def excerpt_of(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> str:
    """Return the cited words of a passage and those that follow, without Markdown; of one not cited, its beginning."""
    start = _cited_at(passage, citations) or 0
    read = passage["text"][: start + _READ]
    units = [unit for unit in text_units(read) if unit.end > start]
    words = " ".join(" ".join(quotable(read[unit.start : unit.end]) for unit in units).split())
    shown = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
    return f"… {shown}" if read[:start].strip() else shown


def section_of(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> str:
    """Return the heading over the cited words, where the passage holds one, else the section that it begins in."""
    section, start = str(passage["metadata"].get("section") or ""), _cited_at(passage, citations)
    if start is None:
        return section
    read = passage["text"][: start + _READ]
    over = [quotable(read[unit.start : unit.end]) for unit in text_units(read) if unit.is_heading and unit.end <= start]
    is_named = over and over[-1] not in ("", passage["title"], section.split(" > ")[-1])
    return over[-1] if is_named else section


def _cited_at(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> int | None:
    """Return where the first citation of a passage begins; None where its words are not known."""
    places = (mark.get("start") for mark in citations if mark["number"] == passage["number"])
    return next((place for place in places if place is not None), None)


def place_of(passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]) -> str:
    """Return where the cited words of a passage stand: its source, the heading over them and the page."""
    page, last = (passage["metadata"].get(key) for key in ("page", "page_end"))
    pages = "" if page is None else f"page {page}" if last is None else f"pages {page} to {last}"
    return " · ".join(filter(None, (passage["source"], section_of(passage, citations), pages)))


def moved(passage: Mapping[str, Any]) -> str:
    """Return from where a passage moved and why; empty where it did not move."""
    place = passage.get("personal")
    if not place or place["before"] == passage["number"]:
        return ""
    way = "up" if place["before"] > passage["number"] else "down"
    why = place["reasons"][0]["told"] if place["reasons"] and way == "up" else "others moved"
    return f"moved {way} from {place['before']}: {why}"
