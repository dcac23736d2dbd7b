"""Shared parts of the forms: the ranges of settings, and where Studio offers a setting.

The title of a field, "group · name", is what Studio's form calls it. The fields name everything themselves: type
checkers do not look into ``**``, and would ask for every setting.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

Temperature = Annotated[float, Field(ge=0, le=2)]
Share = Annotated[float, Field(ge=0, le=1)]
Damping = Annotated[float, Field(ge=0, le=0.99)]
SeedWeight = Annotated[float, Field(ge=0, le=10)]
Price = Annotated[float, Field(ge=0, le=1e6)]
Retries = Annotated[int, Field(ge=0, le=5)]
UpToThree = Annotated[int, Field(ge=0, le=3)]
FoundCount = Annotated[int, Field(ge=1, le=200)]
KeptCount = Annotated[int, Field(ge=1, le=50)]


def offered_at(*nodes: str) -> dict[str, JsonValue]:
    """Return what tells Studio to offer a setting at these nodes of a workflow's drawing."""
    return {"langgraph_nodes": list(nodes)}
