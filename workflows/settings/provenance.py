"""The setting that filters passages by where they come from."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from graph.metadata_filter import MAX_CHARACTERS
from graph.relationships.provenance import first_moment_after


class Provenance(BaseModel):
    """Conditions on where passages come from; all that are given are to hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"maxProperties": 3})

    source: str = Field(
        default="",
        max_length=MAX_CHARACTERS,
        description="Name, address or path of a source: a file, a page, or the host of a website. Empty: any.",
        examples=["handbook.pdf"],
    )
    newer_than: str = Field(
        default="",
        max_length=40,
        description="Date in ISO 8601: only documents that were updated after it. Empty: any.",
        examples=["2025-01-01"],
    )
    cited_before: bool = Field(
        default=False,
        description="Only passages that answers cited in this conversation, or to this user.",
    )

    @field_validator("newer_than")
    @classmethod
    def check_date(cls, date: str) -> str:
        """Return the date as it is. Raises BadInput where it is none."""
        if date:
            first_moment_after(date)
        return date
