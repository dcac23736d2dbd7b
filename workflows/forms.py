"""How a setting looks in Studio's form: its title, which begins with its group, and the nodes that go by it."""

from __future__ import annotations

from typing import TypedDict

from pydantic import JsonValue


class Shown(TypedDict):
    """What a pydantic field takes for that."""

    title: str
    json_schema_extra: dict[str, JsonValue]


def shown(title: str, *nodes: str) -> Shown:
    """Return how a field is shown.

    Args:
        title: "group · name"; a setting that stands for itself has a name alone.
        nodes: at these nodes of a drawing Studio offers the setting.
    """
    return Shown(title=title, json_schema_extra={"langgraph_nodes": list(nodes)})
