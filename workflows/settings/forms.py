"""Shared parts of the forms: the ranges of settings, and conditions on where passages come from.

The fields name everything themselves: type checkers do not look into ``**``, and would ask for every setting.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from graph.metadata_filter import MAX_CHARACTERS

Temperature = Annotated[float, Field(ge=0, le=2)]
Share = Annotated[float, Field(ge=0, le=1)]
Damping = Annotated[float, Field(ge=0, le=0.99)]
SeedWeight = Annotated[float, Field(ge=0, le=10)]
Price = Annotated[float, Field(ge=0, le=1e6)]
Retries = Annotated[int, Field(ge=0, le=5)]
UpToThree = Annotated[int, Field(ge=0, le=3)]
FoundCount = Annotated[int, Field(ge=1, le=200)]
KeptCount = Annotated[int, Field(ge=1, le=50)]


class Provenance(BaseModel):
    """Conditions on where passages come from; all that are given are to hold."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, json_schema_extra={"maxProperties": 3}
    )

    source: str = Field(default="", max_length=MAX_CHARACTERS, examples=["handbook.pdf"])
    """Name, address or path of a source: a file, a page, or the host of a website. Empty: any."""
    newer_than: str = Field(default="", max_length=40, examples=["2025-01-01"])
    """Date in ISO 8601: only documents that were updated after it. Empty: any."""
    cited_before: bool = False
    """Only passages that answers cited in this conversation, or to this user."""

    @field_validator("newer_than")
    @classmethod
    def check_date(cls, date: str) -> str:
        """Return the date as it is. Raises BadInput where it is none."""
        if date:
            from graph.moments import last_moment

            last_moment(date)
        return date
