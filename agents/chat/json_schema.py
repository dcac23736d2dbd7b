"""JSON schemas as they are sent with a request: bounded everywhere, so that no reply under a grammar runs on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

Schema = dict[str, Any]


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object with these properties, all required and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(items: Schema, at_most: int, at_least: int = 0) -> Schema:
    """Return the schema of a list of so many items."""
    least = {"minItems": at_least} if at_least else {}
    return {"type": "array", "items": items, **least, "maxItems": at_most}


def text_of(at_most: int) -> Schema:
    """Return the schema of a text of so many characters."""
    return {"type": "string", "maxLength": at_most}


def one_of(words: Sequence[str]) -> Schema:
    """Return the schema of one of several words."""
    return {"type": "string", "enum": list(words)}


def number_of(known: Collection[int]) -> Schema:
    """Return the schema of the number of one thing that the prompt shows, in a form that grammars enforce."""
    return {"type": "integer", "enum": sorted(known)} if known else {"type": "integer"}


def numbers_of(known: Collection[int], at_most: int | None = None) -> Schema:
    """Return the schema of a list that chooses by number among what the prompt shows."""
    return list_of(number_of(known), len(known) if at_most is None else min(len(known), at_most))


def share(least: float = 0, most: float = 1) -> Schema:
    """Return the schema of a number between two others."""
    return {"type": "number", "minimum": least, "maximum": most}
