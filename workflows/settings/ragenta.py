"""The settings of a run of workflow ragenta: those of every workflow, and how passages and claims are judged."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from agents.roles import DEFAULT_N
from graph.retrieve.modes import Mode
from workflows.settings.enums import Workflow
from workflows.settings.forms import FoundCount, KeptCount, UpToThree, offered
from workflows.settings.mara import Context


class RagentaContext(Context):
    """The settings of a run of RAGentA. Passages come from hybrid retrieval, or from a walk with mode ``mara``."""

    workflow: ClassVar[Workflow] = Workflow.RAGENTA

    mode: Mode = Field(
        default=Mode.HYBRID,
        description="How to rank passages: hybrid of dense and sparse similarity (hybrid), relation-aware walk (mara),"
        " or any other mode.",
        json_schema_extra=offered("Retrieval · mode", "retrieve_passages", "walk_graph"),
    )
    top_k: FoundCount = Field(
        default=20,
        description="Number of passages to retrieve and judge.",
        json_schema_extra=offered("Retrieval · passages retrieved", "retrieve_passages", "walk_graph"),
    )
    judge_passages: bool = Field(
        default=True,
        description="Judge each passage with predictor and judge; if off, the best retrieved passages are kept.",
        json_schema_extra=offered("Judge · judge passages", "line_up_passages"),
    )
    n: float = Field(
        default=DEFAULT_N,
        ge=-5,
        le=5,
        description="Keep a passage whose score is at least the mean of all scores minus n standard deviations.",
        json_schema_extra=offered("Judge · n, standard deviations below the mean", "keep_passages"),
    )
    judge_floor: float = Field(
        default=0.0,
        ge=-50,
        le=50,
        description="Lowest score that a kept passage may have: log P(Yes) - log P(No); 0 means even odds.",
        json_schema_extra=offered("Judge · floor", "keep_passages"),
    )
    min_kept: int = Field(
        default=2,
        ge=0,
        le=50,
        description="Passages to keep even below the threshold, if they reach the floor.",
        json_schema_extra=offered("Judge · fewest kept", "keep_passages"),
    )
    answer_passages: KeptCount = Field(
        default=10,
        description="Passages to keep for the answer, and for each follow-up question, at most.",
        json_schema_extra=offered("Judge · most kept", "keep_passages"),
    )
    check_claims: bool = Field(
        default=True,
        description="Check each sentence of the answer with the claim judge, and ask follow-ups for missing parts.",
        json_schema_extra=offered("Claims · check them", "write_answer"),
    )
    max_follow_ups: UpToThree = Field(
        default=3,
        description="Follow-up questions per round, at most.",
        json_schema_extra=offered("Follow-ups · questions in a round", "check_claims"),
    )
    follow_up_rounds: UpToThree = Field(
        default=1,
        description="Rounds of follow-up questions; 0 means none.",
        json_schema_extra=offered("Follow-ups · rounds", "plan_follow_ups"),
    )
    follow_up_passages: KeptCount = Field(
        default=10,
        description="Number of passages to retrieve for a follow-up question.",
        json_schema_extra=offered("Follow-ups · passages retrieved", "search_follow_up"),
    )
    follow_up_calls: int = Field(
        default=80,
        ge=0,
        le=1000,
        description="Model calls that all follow-up questions may use together.",
        json_schema_extra=offered("Follow-ups · budget of model calls", "plan_follow_ups"),
    )
    follow_up_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="Seconds after which no new call is made for follow-up questions; calls in flight are awaited.",
        json_schema_extra=offered("Follow-ups · budget of seconds", "plan_follow_ups"),
    )
