"""The choices of the settings, beside those of `graph`."""

from __future__ import annotations

from enum import StrEnum


class Workflow(StrEnum):
    """The workflows that answer questions."""

    MARA = "mara"
    RAGENTA = "ragenta"


class ResultKind(StrEnum):
    """What a result says."""

    ANSWER = "answer"
    """An agent's words."""
    EVIDENCE = "evidence"
    """Quotes of passages, which no model checked."""
    REFUSAL = "refusal"
    """That the passages do not hold it."""
    CLARIFICATION = "clarification"
    """A question back: what was asked could mean several things."""


class UnsupportedClaims(StrEnum):
    """What becomes of a claim that no passage supports."""

    MARK = "mark"
    REMOVE = "remove"


class IndexingEngine(StrEnum):
    """The engines that extract and embed while documents are indexed."""

    LOCAL = "local"
    """This process."""
    RAY = "ray"
    """Workers of Ray, on this machine or on a cluster."""
