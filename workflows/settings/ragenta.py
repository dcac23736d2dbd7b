"""The settings of a run of workflow ragenta: those of every workflow, and how passages and claims are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from agents.roles import DEFAULT_N
from graph.retrieve.modes import Mode
from workflows.settings.enums import Workflow
from workflows.settings.forms import FoundCount, KeptCount, UpToThree
from workflows.settings.mara import Context


class FollowUps(BaseModel):
    """Follow-up questions, and what they may take."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, json_schema_extra={"maxProperties": 4}
    )

    rounds: UpToThree = 1
    """Rounds of follow-up questions; 0 means none."""
    questions: UpToThree = 3
    """Follow-up questions per round, at most."""
    passages: KeptCount = 10
    """Number of passages to retrieve for a follow-up question."""
    calls: int = Field(default=80, ge=0, le=1000)
    """Model calls that all follow-up questions may use together, retries not counted."""


class RagentaContext(Context):
    """The settings of a run of RAGentA. Passages come from hybrid retrieval, or from a walk with mode ``mara``."""

    workflow: ClassVar[Workflow] = Workflow.RAGENTA
    earlier: ClassVar[Mapping[str, str]] = {
        **Context.earlier,
        "max_follow_ups": "follow_ups.questions",
        **{f"follow_up_{part}": f"follow_ups.{part}" for part in ("rounds", "passages", "calls")},
    }

    mode: Mode = Field(default=Mode.HYBRID, title="Retrieval · mode")
    """How to rank passages: hybrid of dense and sparse similarity (hybrid), relation-aware walk (mara), or any other
    mode.
    """
    top_k: FoundCount = Field(default=20, title="Retrieval · passages retrieved")
    """Number of passages to retrieve and judge."""
    judge_passages: bool = Field(default=True, title="Judge · judge passages")
    """Judge each passage with predictor and judge; if off, the best retrieved passages are kept."""
    n: float = Field(default=DEFAULT_N, ge=-5, le=5, title="Judge · n, standard deviations below the mean")
    """Keep a passage whose score is at least the mean of all scores minus n standard deviations."""
    judge_floor: float = Field(default=0.0, ge=-50, le=50, title="Judge · floor")
    """Lowest score that a kept passage may have: log P(Yes) - log P(No); 0 means even odds."""
    min_kept: int = Field(default=2, ge=0, le=50, title="Judge · fewest kept")
    """Passages to keep even below the threshold, if they reach the floor."""
    answer_passages: KeptCount = Field(default=10, title="Judge · most kept")
    """Passages to keep for the answer, and for each follow-up question, at most."""
    check_claims: bool = Field(default=True, title="Claims · check them")
    """Check each sentence of the answer with the claim judge, and ask follow-ups for missing parts."""
    follow_ups: FollowUps = Field(
        default=FollowUps(), examples=[{"rounds": 2, "questions": 1}], title="Follow-ups · rounds and budget"
    )
    """Follow-up questions for the parts that an answer misses, and what they may take."""
