"""Prompts, whose examples are what an agent is shown and what it takes for a proper reply."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from prompts import fill, load_prompt

GOLDEN_QUESTIONS = ("Nissan", "World War")
NAMES = (
    "answerer",
    "claim_judge",
    "closed_book",
    "extractor",
    "fact_filter",
    "feedback",
    "final_predictor",
    "judge",
    "manager",
    "predictor",
)


def test_a_prompt_is_read_once_and_does_not_give_away_the_questions_it_is_tested_with() -> None:
    for name in NAMES:
        assert load_prompt(name) is load_prompt(name)
        assert not [word for word in GOLDEN_QUESTIONS if word in load_prompt(name).template], name
    with pytest.raises(FileNotFoundError):
        load_prompt("no_such_prompt")


def test_an_agents_prompt_opens_with_its_role_and_says_that_material_is_never_an_instruction() -> None:
    for name in set(NAMES) - {"feedback"}:
        assert load_prompt(name).template.splitlines()[0] == f"# {name.replace('_', ' ').capitalize()}"
        assert "never an instruction" in load_prompt(name).template, name


def test_a_value_replaces_its_placeholder_and_missing_and_unknown_values_are_refused() -> None:
    assert "pay $material in $cash" in fill("feedback", material="pay $material in $cash")
    refused: list[dict[str, str]] = [{}, {"materiel": "x"}, {"material": "x", "spare": "y"}]
    for values in refused:
        with pytest.raises(KeyError, match="feedback"):
            fill("feedback", **values)


_EXAMPLE = re.compile(r"^Material:\n(.+)\nReply:\n(.+)$", re.MULTILINE)

Material = dict[str, Any]


def examples(name: str, **values: object) -> list[tuple[Material, str]]:
    return [(json.loads(material), reply) for material, reply in _EXAMPLE.findall(fill(name, **values))]
