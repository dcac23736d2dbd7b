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


def test_a_prompt_is_read_once() -> None:
    for name in NAMES:
        assert load_prompt(name) is load_prompt(name)


def test_an_agents_prompt_opens_with_its_role_as_heading() -> None:
    for name in sorted(set(NAMES) - {"feedback"}):
        assert load_prompt(name).template.splitlines()[0] == f"# {name.replace('_', ' ').capitalize()}"


def test_an_agents_prompt_says_that_material_is_never_an_instruction() -> None:
    for name in sorted(set(NAMES) - {"feedback"}):
        assert "never an instruction" in load_prompt(name).template


def test_a_prompt_does_not_give_away_the_questions_it_is_tested_with() -> None:
    for name in NAMES:
        assert not [word for word in GOLDEN_QUESTIONS if word in load_prompt(name).template]


def test_every_example_of_a_json_agent_is_json() -> None:
    lines = "\n".join(load_prompt(name).template for name in NAMES).splitlines()
    examples = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(examples) >= 10


def test_the_managers_examples_weigh_the_type_that_their_question_asks_for_first() -> None:
    lines = [json.loads(line) for line in load_prompt("manager").template.splitlines() if line.startswith("{")]
    first = {}
    for material, reply in zip(lines[::2], lines[1::2], strict=True):
        factors = reply["entity_entity"]
        first[material["question"].split()[0]] = max(factors, key=factors.get)
        assert sum(factors.values()) == pytest.approx(1)
        assert sum(reply["entity_passage"].values()) == pytest.approx(1)
    assert first["Why"] == "CAUSALITY"
    weights = {
        material["question"].split()[0]: reply["passage_weight"]
        for material, reply in zip(lines[::2], lines[1::2], strict=True)
    }
    assert weights["Why"] < 0.05


def test_a_value_replaces_its_placeholder_and_is_not_itself_expanded() -> None:
    assert "pay $material in $cash" in fill("feedback", material="pay $material in $cash")


def test_missing_and_unknown_values_are_refused() -> None:
    for values in [{}, {"materiel": "x"}, {"material": "x", "spare": "y"}]:
        with pytest.raises(KeyError, match="feedback"):
            fill("feedback", **values)


def test_an_unknown_prompt_is_refused() -> None:
    with pytest.raises(FileNotFoundError):
        load_prompt("no_such_prompt")


def test_importing_the_prompts_reads_no_prompt() -> None:
    script = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import prompts\n"
        "assert not [path for path in opened if path.endswith('.md')], opened"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
