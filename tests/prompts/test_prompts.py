from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import prompts
from prompts import fill, load_prompt

ROOT = Path(prompts.__file__).parent.parent
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


def test_the_managers_examples_weigh_the_type_that_their_question_asks_for_first() -> None:
    lines = [json.loads(line) for line in load_prompt("manager").template.splitlines() if line.startswith("{")]
    replies = {material["question"].split()[0]: reply for material, reply in zip(lines[::2], lines[1::2], strict=True)}
    for reply in replies.values():
        assert sum(reply["entity_entity"].values()) == pytest.approx(1)
        assert sum(reply["entity_passage"].values()) == pytest.approx(1)
    why = replies["Why"]["entity_entity"]
    assert max(why, key=why.get) == "CAUSALITY"
    assert replies["Why"]["passage_weight"] < 0.05


def test_a_value_replaces_its_placeholder_and_missing_and_unknown_values_are_refused() -> None:
    assert "pay $material in $cash" in fill("feedback", material="pay $material in $cash")
    refused: list[dict[str, str]] = [{}, {"materiel": "x"}, {"material": "x", "spare": "y"}]
    for values in refused:
        with pytest.raises(KeyError, match="feedback"):
            fill("feedback", **values)


def test_importing_the_prompts_reads_no_prompt() -> None:
    script = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import prompts\n"
        "assert not [path for path in opened if path.endswith('.md')], opened"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
