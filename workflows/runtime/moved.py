"""How a personal ranking moved a passage, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def moved(passage: Mapping[str, Any]) -> str:
    """Return from where a passage moved and why; empty where it did not move."""
    place = passage.get("personal")
    if not place or place["before"] == passage["number"]:
        return ""
    way = "up" if place["before"] > passage["number"] else "down"
    why = place["reasons"][0]["told"] if place["reasons"] and way == "up" else "others moved"
    return f"moved {way} from {place['before']}: {why}"
