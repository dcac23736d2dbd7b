"""The choices of the settings, beside those of `graph`."""

from __future__ import annotations

from enum import StrEnum


class Workflow(StrEnum):
    """The workflows that answer questions."""

    MARA = "mara"
    RAGENTA = "ragenta"


class ResultKind(StrEnum):
    """The kind of a result."""

    ANSWER = "answer"
    """An agent's words."""
    EVIDENCE = "evidence"
    """Quotes of passages, which no model checked."""
    REFUSAL = "refusal"
    """That the passages do not hold it."""
    CLARIFICATION = "clarification"
    """A question back: what was asked could mean several things."""


class UnsupportedClaims(StrEnum):
    """The fate of a claim that no passage supports."""

    MARK = "mark"
    REMOVE = "remove"


class GraphFormat(StrEnum):
    """The forms of an exported graph."""

    JSONL = "jsonl"
    MATRICES = "matrices"
    """A folder with a sparse matrix (.npz) for each relation type of the facts."""


class Format(StrEnum):
    """The format of the answers."""

    JSONL = "jsonl"
    """One answer a line."""
    JSON = "json"
    """A list of answers."""
    DEBUG = "debug"
    """One whole result a line."""

    @property
    def file(self) -> str:
        """The name of the file."""
        return {Format.JSONL: "answers.jsonl", Format.JSON: "answers.json", Format.DEBUG: "debug.jsonl"}[self]
