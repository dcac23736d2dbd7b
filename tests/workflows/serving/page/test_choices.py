"""The settings of a turn in plain words."""

from __future__ import annotations

from typing import Any

from workflows.serving.page.turns import differing


def test_settings_that_differ_from_the_defaults_are_told() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"workflow": "ragenta"}, ["Thorough: checks each claim"]),
        ({"as_of": "2024-05-01", "personalise": True}, ["As of 2024-05-01", "Personal"]),
        ({"workspace": "vault"}, ["Workspace: vault"]),
        ({"where": {"year": {"$gte": 1990, "$lte": 2000}}}, ["year at least 1990", "year at most 2000"]),
        ({"where": {"source": "a\u202e.md", "draft": {"$ne": True}}}, ["source is a.md", "draft is not true"]),
        ({"where": {"source": {"$in": ["a", "b"]}}}, ['source $in ["a", "b"]']),
    ]
    for settings, words in cases:
        assert differing(settings) == words
